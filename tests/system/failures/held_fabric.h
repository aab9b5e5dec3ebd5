#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "planner/base/fd_handle.h"
#include "planner/base/mutex.h"
#include "tests/support/faulty_fabric.h"

namespace wb::test {

/// What a test wants of the payloads that a daemon receives from now on, and of those held.
struct FabricOrder {
  enum class Kind : std::uint8_t {
    kHold,     // `payload` and all after it are held
    kDie,      // at `payload` the process kills itself
    kClose,    // at `payload` its endpoint is closed
    kRelease,  // what is held goes on, and nothing is done any more
  };
  Kind kind = Kind::kRelease;
  std::uint64_t payload = 0;  // 0: the next one
};

/// Orders on their way from one thread to a mover's. Thread-safe.
class FabricOrders {
 public:
  FabricOrders();
  void Give(FabricOrder order);
  std::optional<FabricOrder> Take();
  bool waiting() const;
  /// Readable while an order waits.
  int fd() const { return fd_.get(); }

 private:
  const FdHandle fd_;
  mutable Mutex mu_;
  std::optional<FabricOrder> order_ ABSL_GUARDED_BY(mu_);
};

/// A daemon's fabric under orders. As Fabric: loop-confined to the mover's thread.
class HeldFabric final : public FaultyFabric {
 public:
  /// `orders` outlives it; `reached` is called on the mover's thread when an order comes to act.
  HeldFabric(std::unique_ptr<Fabric> inner,
             const RegionTable& regions,
             FabricOrders& orders,
             std::function<void()> reached);

  bool Progress(std::vector<FabricEvent>& events) override;
  int wakeup_fd() const override { return wakeup_.get(); }
  absl::StatusOr<bool> Arm() override;

 private:
  void Obey(const FabricOrder& order);
  /// At the ordered payload and after it; whether it is held.
  bool OnPayload(const FabricOrder& order, bool first, EndpointId from);

  FabricOrders& orders_;
  const std::function<void()> reached_;
  const FdHandle wakeup_;  // the inner fabric's, or an order
};

}  // namespace wb::test
