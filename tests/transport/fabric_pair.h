#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

#include "tests/support/catch.h"
#include "tests/support/time_slack.h"
#include "transport/fabric.h"
#include "transport/loopback/loopback_fabric.h"
#include "transport/memory/region.h"
#include "transport/ucx/ucx_fabric.h"

namespace wb::test {

using Bytes = std::vector<std::byte>;

/// Makes loopback fabrics that can reach each other.
class LoopbackKind {
 public:
  std::unique_ptr<Fabric> Make(const RegionTable& regions) {
    return LoopbackFabric::Create(network_, regions).value();
  }

 private:
  LoopbackNetwork network_;
};

/// Makes UCX fabrics on the loopback interface.
class UcxKind {
 public:
  explicit UcxKind(std::string transports) : transports_(std::move(transports)) {}
  std::unique_ptr<Fabric> Make(const RegionTable& regions) {
    return UcxFabric::Create({.interface = "lo", .transports = transports_}, regions).value();
  }
  const std::string& transports() const { return transports_; }

 private:
  std::string transports_;
};
struct UcxTcpKind : UcxKind {
  UcxTcpKind() : UcxKind("tcp") {}
};
struct UcxShmKind : UcxKind {
  UcxShmKind() : UcxKind("shm") {}
};

/// One side of a test: a fabric, memory, and everything that has happened to it.
class Side {
 public:
  /// An announcement as it was seen, with its header kept.
  struct Seen {
    AnnouncementId id;
    EndpointId from;
    Bytes header;
    std::uint64_t bytes = 0;
  };
  using Decision = absl::StatusOr<std::optional<Landing>>;

  static constexpr RegionId kMemory{1};
  static constexpr RegionId kReadOnly{2};
  static constexpr RegionId kOfDevice{3};

  template <typename Kind>
  explicit Side(Kind& kind, std::uint64_t bytes = 16 << 20) : memory_bytes(bytes) {
    REQUIRE(regions.Add(kMemory, Region::AllocateArena(memory_bytes).value()).ok());
    fabric = kind.Make(regions);
    fabric->SetReceiver([this](const Announcement& announcement) {
      seen.push_back({announcement.id, announcement.from,
                      Bytes(announcement.header.begin(), announcement.header.end()),
                      announcement.bytes});
      return decide(seen.back());
    });
  }

  std::span<std::byte> memory() {
    return regions.ResolveWritable({kMemory, 0, memory_bytes}).value();
  }

  const std::uint64_t memory_bytes;
  RegionTable regions;
  std::unique_ptr<Fabric> fabric;
  std::vector<FabricEvent> events;
  std::vector<Seen> seen;
  /// What the receiver answers; decides later by default.
  std::function<Decision(const Seen&)> decide = [](const Seen&) -> Decision {
    return std::optional<Landing>();
  };

  const FabricEvent* Find(FabricEvent::Kind kind, std::uint64_t tag) const {
    for (const FabricEvent& event : events) {
      if (event.kind == kind && event.tag == tag) return &event;
    }
    return nullptr;
  }
  const FabricEvent* Sent(std::uint64_t tag) const { return Find(FabricEvent::Kind::kSent, tag); }
  const FabricEvent* Received(std::uint64_t tag) const {
    return Find(FabricEvent::Kind::kReceived, tag);
  }
  const FabricEvent* EndpointFailed() const { return Find(FabricEvent::Kind::kEndpointFailed, 0); }
};

inline void Fill(std::span<std::byte> memory, std::byte value) {
  std::memset(memory.data(), static_cast<int>(value), memory.size());
}

/// Whether every byte has the value; quick in a build without optimisation, too.
inline bool AllAre(std::span<const std::byte> memory, std::byte value) {
  return memory.empty() || (memory[0] == value &&
                            std::memcmp(memory.data(), memory.data() + 1, memory.size() - 1) == 0);
}

inline bool Equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// Runs the fabrics of `sides` until `done`, asleep when they have nothing to do. False when
/// `within` has passed.
inline bool RunUntil(std::initializer_list<Side*> sides,
                     const std::function<bool()>& done,
                     std::chrono::milliseconds within = std::chrono::seconds(10)) {
  const auto deadline = std::chrono::steady_clock::now() + Slack(within);
  while (!done()) {
    bool any = false;
    bool armed = true;
    std::vector<pollfd> watched;
    for (Side* side : sides) {
      any = side->fabric->Progress(side->events) || any;
      watched.push_back({side->fabric->wakeup_fd(), POLLIN, 0});
    }
    if (any) continue;
    for (Side* side : sides) armed = side->fabric->Arm().value() && armed;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    if (armed) poll(watched.data(), watched.size(), static_cast<int>(left.count()));
  }
  return true;
}

/// Lets the fabrics run for a while in which nothing is expected to happen.
inline void RunFor(std::initializer_list<Side*> sides, std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  RunUntil(
      sides, [&] { return std::chrono::steady_clock::now() >= until; }, time);
}

}  // namespace wb::test
