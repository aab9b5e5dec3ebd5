#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "transport/fabric.h"
#include "transport/memory/region.h"

namespace wb::test {

/// What a faulty fabric does to the payloads it receives; they count from 0, hellos (no bytes) not
/// among them.
struct ReceiveFaults {
  std::set<std::uint64_t> corrupt;  // a byte of the landed payload is flipped
  std::set<std::uint64_t> drop;     // the announcement is never shown: it stays on its way
};

/// And to those it sends, which count likewise.
struct SendFaults {
  std::set<std::uint64_t> twice;  // sent a second time at once
  std::set<std::uint64_t> late;   // sent after the one that follows it
  std::set<std::uint64_t> fail;   // not sent: INTERNAL
};

/// Another fabric with faults. Behaves like it otherwise.
class FaultyFabric : public Fabric {
 public:
  FaultyFabric(std::unique_ptr<Fabric> inner, const RegionTable& regions)
      : inner_(std::move(inner)), regions_(regions) {}

  void Inject(ReceiveFaults faults) { faults_ = std::move(faults); }
  void InjectSends(SendFaults faults) { send_faults_ = std::move(faults); }
  /// Payloads for which `where` is true are not shown until Release, unless their endpoint ends.
  void HoldWhere(std::function<bool(std::uint64_t payload, EndpointId from)> where) {
    hold_where_ = std::move(where);
  }
  /// Shows what is held, and holds nothing more.
  void Release();
  /// While on, events of messages stay undelivered, as if the network were slow.
  void Withhold(bool on) { withhold_ = on; }
  /// Sends after this fail with `status` without being posted; OK ends it.
  void FailSends(absl::Status status) { send_status_ = std::move(status); }
  /// Payloads announced so far; connections made so far.
  std::uint64_t payloads() const { return payloads_; }
  std::uint64_t connects() const { return connects_; }
  std::size_t withheld() const { return withheld_.size(); }

  const FabricTraits& traits() const override { return inner_->traits(); }
  const std::string& address() const override { return inner_->address(); }
  void SetReceiver(Receiver receiver) override;
  absl::StatusOr<EndpointId> Connect(const std::string& address) override {
    ++connects_;
    return inner_->Connect(address);
  }
  absl::Status Send(EndpointId endpoint,
                    std::span<const std::byte> header,
                    const MemoryRef& payload,
                    std::uint64_t tag) override;
  absl::Status Accept(AnnouncementId id, const Landing& landing) override;
  absl::Status Refuse(AnnouncementId id, absl::Status reason) override {
    return inner_->Refuse(id, std::move(reason));
  }
  const LaneTraits* lane(EndpointId endpoint) const override { return inner_->lane(endpoint); }
  void CloseForced(EndpointId endpoint) override;
  bool Progress(std::vector<FabricEvent>& events) override;
  int wakeup_fd() const override { return inner_->wakeup_fd(); }
  absl::StatusOr<bool> Arm() override { return inner_->Arm(); }

 private:
  using Bytes = std::vector<std::byte>;
  /// A payload that is held.
  struct Unshown {
    AnnouncementId id;
    EndpointId from;
    std::uint64_t payload = 0;
    std::uint64_t bytes = 0;
    Bytes header;
  };
  /// A payload that is sent late.
  struct Unsent {
    EndpointId endpoint;
    Bytes header;
    MemoryRef payload;
    std::uint64_t tag = 0;
  };

  absl::StatusOr<std::optional<Landing>> OnAnnouncement(const Announcement& announcement);
  absl::StatusOr<std::optional<Landing>> Show(std::uint64_t payload,
                                              const Announcement& announcement);
  void Note(std::uint64_t payload, const Landing& landing);
  void Forget(EndpointId endpoint);
  absl::Status SendPayload(const Unsent& send);
  void SendLate();
  /// Of a payload sent twice one event is told, the better one, when both have come.
  bool AwaitsTwin(FabricEvent& event);

  std::unique_ptr<Fabric> inner_;
  const RegionTable& regions_;
  Receiver receiver_;
  ReceiveFaults faults_;
  SendFaults send_faults_;
  std::function<bool(std::uint64_t payload, EndpointId from)> hold_where_;
  std::vector<Unshown> unshown_;
  std::optional<Unsent> unsent_;
  absl::flat_hash_map<std::uint64_t, std::optional<FabricEvent>> twins_;  // by tag: the first event
  std::uint64_t sends_ = 0;
  bool withhold_ = false;
  absl::Status send_status_;
  std::uint64_t payloads_ = 0;
  std::uint64_t connects_ = 0;
  absl::flat_hash_map<AnnouncementId, std::uint64_t> held_;        // to the payload's number
  absl::flat_hash_map<std::uint64_t, MemoryRef> to_be_corrupted_;  // by tag
  std::vector<FabricEvent> withheld_;
};

}  // namespace wb::test
