#pragma once

#include <memory>
#include <string>

#include "transport/fabric.h"

namespace wb {

struct UcxOptions {
  std::string interface;           // of the data network; no default
  std::string transports = "tcp";  // "tcp", "shm" or "auto"
};

/// A Fabric over UCX active messages: one ucp_worker at a time, one network interface, one thread.
///
/// Payloads of kRendezvousBytes and more are announced, and the receiver pulls them into the place
/// it has chosen; smaller ones travel with their header. Either way the receiving fabric answers
/// each message (wire_header.h), and only that ends the Send.
///
/// With "shm", every peer must be reached through shared memory; with "auto" those that have this
/// host's identity (host_identity.h) and offer it too are, and all others by TCP. What an endpoint
/// runs on is checked once it is connected, and a lane that should not be ends it with an error
/// that names both. Either way a peer's death shows within a millisecond or so: the listener's
/// connection, which carries no payload over shared memory, breaks.
///
/// A peer that is killed amid sending may leave the queue that all its peers share at a standstill
/// (stuck_queue.h). Then every endpoint fails within two seconds or so, and the fabric goes on with
/// another worker, under the address it has.
///
/// Connections are made through a UCX listener, not from worker addresses: what UCX creates by
/// itself for a peer's first message it also destroys by itself when the peer dies, and connections
/// that two workers open to each other it pairs, so that closing one direction would close the
/// other.
///
/// Whoever reaches the listener's or the data port is inside the trust boundary: UCX 1.13 aborts
/// the process on some frames (the listener takes the first eight bytes for a length: twenty zeros
/// are enough), and a forged put writes where it says. Bind it to a network of your own. Our own
/// headers are checked in full all the same, and a peer that breaks their form loses its endpoint.
class UcxFabric final : public Fabric {
 public:
  /// `regions` outlives the fabric. INVALID_ARGUMENT for other transports; NOT_FOUND for an
  /// interface that is not there lists those that are; FAILED_PRECONDITION when UCX does not run as
  /// it must (ucx_stack.h).
  static absl::StatusOr<std::unique_ptr<UcxFabric>> Create(const UcxOptions& options,
                                                           const RegionTable& regions);
  /// Closes every endpoint by force, and waits up to two seconds for what is outstanding.
  ~UcxFabric() override;
  UcxFabric(const UcxFabric&) = delete;
  UcxFabric& operator=(const UcxFabric&) = delete;

  const FabricTraits& traits() const override;
  const std::string& address() const override;
  void SetReceiver(Receiver receiver) override;
  /// FAILED_PRECONDITION for a peer that "shm" cannot reach.
  absl::StatusOr<EndpointId> Connect(const std::string& address) override;
  absl::Status Send(EndpointId endpoint,
                    std::span<const std::byte> header,
                    const MemoryRef& payload,
                    std::uint64_t tag) override;
  absl::Status Accept(AnnouncementId id, const Landing& landing) override;
  absl::Status Refuse(AnnouncementId id, absl::Status reason) override;
  const LaneTraits* lane(EndpointId endpoint) const override;
  void CloseForced(EndpointId endpoint) override;
  bool Progress(std::vector<FabricEvent>& events) override;
  int wakeup_fd() const override;
  absl::StatusOr<bool> Arm() override;

 private:
  class State;
  explicit UcxFabric(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace wb
