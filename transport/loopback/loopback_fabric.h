#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "planner/base/fd_handle.h"
#include "planner/base/mutex.h"
#include "transport/fabric.h"

namespace wb {

/// The wires between the loopback fabrics of one process. Thread-safe: its fabrics may live on
/// different threads. One lock guards it all and is held while a payload is copied; it is made to
/// be right, not fast.
class LoopbackNetwork {
 public:
  LoopbackNetwork() = default;
  ~LoopbackNetwork() = default;
  LoopbackNetwork(const LoopbackNetwork&) = delete;
  LoopbackNetwork& operator=(const LoopbackNetwork&) = delete;

 private:
  friend class LoopbackFabric;

  /// A message on its way. `payload` is the sender's memory: it may be read only while the lock is
  /// held and `link` is open.
  struct Message {
    std::uint64_t link = 0;
    std::uint64_t operation = 0;  // of the sender
    std::vector<std::byte> header;
    std::span<const std::byte> payload;
  };
  /// What the other end has done with a message.
  struct Answer {
    std::uint64_t operation = 0;
    absl::Status status;
  };
  struct Mailbox {
    int wake_fd = -1;
    std::vector<Message> messages;
    std::vector<Answer> answers;
    std::vector<std::uint64_t> broken_links;
  };
  struct Link {
    std::uint64_t from = 0;  // fabrics
    std::uint64_t to = 0;
  };

  Mailbox* FindMailbox(std::uint64_t fabric) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Mailbox* OtherEnd(std::uint64_t link, std::uint64_t fabric) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Break(std::uint64_t link, std::uint64_t by_fabric) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Mutex mu_;
  std::uint64_t next_fabric_ ABSL_GUARDED_BY(mu_) = 1;
  std::uint64_t next_link_ ABSL_GUARDED_BY(mu_) = 1;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<Mailbox>> mailboxes_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::uint64_t, Link> links_ ABSL_GUARDED_BY(mu_);
};

/// A Fabric within the process: for tests, and the model of the contract. Its lane is memcpy, run
/// by the receiving side, so that nothing lands unless the receiver makes progress.
class LoopbackFabric final : public Fabric {
 public:
  /// `network` and `regions` outlive the fabric.
  static absl::StatusOr<std::unique_ptr<LoopbackFabric>> Create(LoopbackNetwork& network,
                                                                const RegionTable& regions);
  ~LoopbackFabric() override;
  LoopbackFabric(const LoopbackFabric&) = delete;
  LoopbackFabric& operator=(const LoopbackFabric&) = delete;

  const FabricTraits& traits() const override { return traits_; }
  const std::string& address() const override { return address_; }
  void SetReceiver(Receiver receiver) override { receiver_ = std::move(receiver); }
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
  int wakeup_fd() const override { return wake_.get(); }
  absl::StatusOr<bool> Arm() override;

 private:
  struct Sending {
    EndpointId endpoint;
    std::uint64_t tag = 0;
  };

  LoopbackFabric(LoopbackNetwork& network, const RegionTable& regions, FdHandle wake);
  EndpointId EndpointOf(std::uint64_t link);
  bool IsOpen(std::uint64_t link);
  void Announce(LoopbackNetwork::Message&& message);
  /// Copies the payload to its place and tells the sender, unless the link has broken.
  void Deliver(const LoopbackNetwork::Message& message,
               std::span<std::byte> place,
               std::uint64_t tag);
  void Answer(const LoopbackNetwork::Message& message, absl::Status status);
  /// Ends every operation of the endpoint with `status`, and forgets it.
  void EndOperations(EndpointId endpoint, const absl::Status& status);

  LoopbackNetwork& network_;
  const RegionTable& regions_;
  FdHandle wake_;
  std::uint64_t self_ = 0;
  FabricTraits traits_;
  LaneTraits lane_;
  std::string address_;
  Receiver receiver_;
  std::uint64_t next_operation_ = 1;
  std::uint64_t next_endpoint_ = 1;
  std::uint64_t next_announcement_ = 1;
  absl::flat_hash_map<EndpointId, std::uint64_t> link_of_;  // open endpoints
  absl::flat_hash_map<std::uint64_t, EndpointId> endpoint_of_;
  absl::flat_hash_map<std::uint64_t, Sending> sending_;
  absl::flat_hash_map<AnnouncementId, LoopbackNetwork::Message> held_;
  std::vector<FabricEvent> due_;  // events for the next Progress
};

}  // namespace wb
