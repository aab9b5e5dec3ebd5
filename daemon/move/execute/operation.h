#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "daemon/move/execute/worker_times.h"
#include "transport/copy/copier.h"

namespace wb {

struct Attempt;
struct OutLane;

/// One message or copy that has not ended. A chunk goes out as kPacking, kSending; comes in as
/// kReceiving, kUnpacking. While it is kPacking, kUnpacking or kCopying a copier has its steps.
struct Operation {
  enum class Phase : std::uint8_t {
    kFree,
    kHelloOut,
    kHelloIn,
    kPacking,
    kSending,
    kReceiving,
    kUnpacking,
    kCopying,
  };
  static constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};

  Phase phase = Phase::kFree;
  bool has_checksum = false;
  bool over_shm = false;     // of what comes in: by shared memory
  std::uint32_t stream = 0;  // index into Attempt::out, in or local
  std::uint32_t chunk = 0;
  std::uint32_t slot = kNoSlot;       // of the arena, if the chunk is packed
  std::uint64_t tag = 0;              // its name in fabric and copier; never reused
  std::uint64_t checksum = 0;         // out: of what was packed; in: as announced
  Attempt* attempt = nullptr;         // of all but hellos
  OutLane* lane = nullptr;            // of what goes out
  std::span<const std::byte> memory;  // the chunk's bytes in one run: its slot, or the region
  std::vector<CopyStep> steps;        // empty while a copier has them
  std::array<BusyTime*, 2> busy{};    // what its present phase counts for; see OperationTable::Time
};

/// Gives the operation's steps to the copier, with its `memory` to be summed if it has a checksum.
/// The job comes back with the operation's tag.
void Submit(Copier& copier, Operation& operation);

/// The operations of one executor. Their addresses are stable and their places reused, so that
/// nothing is allocated once as many were alive as ever are. Loop-confined.
class OperationTable {
 public:
  using Now = std::function<Timers::Clock::time_point()>;

  explicit OperationTable(Now now) : now_(std::move(now)) {}

  /// A fresh one with its tag set.
  Operation& New(Operation::Phase phase);
  /// nullptr for a tag that names none (any more).
  Operation* Find(std::uint64_t tag);
  /// Its phase counts for `first` (and `second`) from now on, and no longer for those before.
  void Time(Operation& operation, BusyTime* first, BusyTime* second = nullptr);
  /// Ends what it counts for.
  void Free(Operation& operation);
  std::size_t size() const { return operations_.size() - free_.size(); }

 private:
  Now now_;
  std::deque<Operation> operations_;
  std::vector<std::uint32_t> free_;
  std::uint64_t next_generation_ = 1;
};

}  // namespace wb
