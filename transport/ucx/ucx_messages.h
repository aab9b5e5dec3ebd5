#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

#include "absl/status/status.h"

#include "transport/fabric.h"
#include "transport/ucx/slot_table.h"
#include "transport/ucx/ucx_endpoints.h"
#include "transport/ucx/wire_header.h"

namespace wb {

/// The messages of one ucp_worker: sends until they are answered, announcements until they have a
/// place, receives until they have landed. Everything that happens becomes a FabricEvent.
///
/// UCX's callbacks end here; they come within ucp_worker_progress only. Loop-confined. Outlives
/// every request of the worker: its endpoints are closed and forgotten before it goes.
class UcxMessages {
 public:
  UcxMessages(ucp_worker_h worker,
              UcxEndpoints& endpoints,
              const RegionTable& regions,
              const FabricTraits& traits);
  ~UcxMessages() = default;
  UcxMessages(const UcxMessages&) = delete;
  UcxMessages& operator=(const UcxMessages&) = delete;

  /// Makes UCX call us for each active message.
  absl::Status Listen();
  void SetReceiver(Fabric::Receiver receiver) { receiver_ = std::move(receiver); }

  absl::Status Send(UcxEndpoint& endpoint,
                    std::span<const std::byte> header,
                    const MemoryRef& payload,
                    std::uint64_t tag);
  absl::Status Accept(AnnouncementId id, const Landing& landing);
  absl::Status Refuse(AnnouncementId id, const absl::Status& reason);

  /// Ends what no request of UCX will end: announcements that are held, and sends that only wait
  /// for their answer. The rest ends as UCX closes the endpoint, which is marked ended already.
  void EndOperations(const UcxEndpoint& endpoint);

  void AddEvent(FabricEvent event) { events_.push_back(std::move(event)); }
  bool has_events() const { return !events_.empty(); }
  /// Messages and answers that have come through shared memory.
  std::uint64_t shm_arrivals() const { return shm_arrivals_; }
  /// Appends what has happened since the last call.
  void TakeEvents(std::vector<FabricEvent>& events);
  /// Endpoints whose peers broke the protocol since the last call, and how.
  std::vector<std::pair<EndpointId, absl::Status>> TakeOffenders() {
    return std::exchange(offenders_, {});
  }

 private:
  struct Operation {
    UcxMessages* owner = nullptr;
    std::uint64_t id = 0;
    EndpointId endpoint;
    std::uint64_t tag = 0;
  };
  struct Sending : Operation {
    WireHeader header;
    bool in_ucx = false;  // UCX still reads header and payload
    ucs_status_t ucx_status = UCS_OK;
    bool answered = false;
    absl::Status answer;
  };
  struct Receiving : Operation {
    std::uint64_t message = 0;  // the sender's number
  };
  struct Answering : Operation {
    WireHeader header;
  };
  /// A message that has arrived; its payload is at the sender (announced) or in `eager`.
  struct Held {
    EndpointId endpoint;
    std::uint64_t message = 0;
    std::uint64_t bytes = 0;
    bool offered = false;          // the receiver is deciding
    void* descriptor = nullptr;    // of UCX, to pull with; null for an eager message
    std::vector<std::byte> eager;  // the payload of an eager message that is kept
  };
  /// A landing whose memory was looked up.
  struct Place {
    std::span<std::byte> memory;
    std::uint64_t tag = 0;
  };
  /// An active message as UCX hands it over.
  struct Arrival {
    UcxEndpoint* endpoint = nullptr;
    ParsedHeader header;
    bool announced = false;
    void* data = nullptr;  // descriptor if announced, else the payload
    std::size_t bytes = 0;
  };

  static ucs_status_t OnMessage(void* argument,
                                const void* header,
                                std::size_t header_bytes,
                                void* data,
                                std::size_t bytes,
                                const ucp_am_recv_param_t* param);
  static ucs_status_t OnAnswer(void* argument,
                               const void* header,
                               std::size_t header_bytes,
                               void* data,
                               std::size_t bytes,
                               const ucp_am_recv_param_t* param);
  static void OnSent(void* request, ucs_status_t status, void* argument);
  static void OnReceived(void* request, ucs_status_t status, std::size_t bytes, void* argument);
  static void OnAnswerSent(void* request, ucs_status_t status, void* argument);

  /// What arrived, if it may be looked at: its endpoint is open and its form right.
  absl::StatusOr<Arrival> Check(const void* header,
                                std::size_t header_bytes,
                                const ucp_am_recv_param_t& param);
  /// Asks the receiver, and does what it says; the answer is for UCX.
  ucs_status_t Offer(const Arrival& arrival);
  absl::StatusOr<std::optional<Landing>> Ask(const Arrival& arrival, AnnouncementId id);
  absl::Status LandNow(const Arrival& arrival, const Held& held, const Landing& landing);
  static ucs_status_t Keep(const Arrival& arrival, Held& held);
  /// Puts an eager payload in its place, or has UCX pull an announced one.
  void LandEager(const Held& held, std::span<const std::byte> payload, const Place& place);
  void LandAnnounced(const Held& held, void* descriptor, const Place& place);
  Receiving& Begin(const Held& held, std::uint64_t tag);
  void FinishIfOver(Sending& sending);
  void FinishReceive(const Receiving& receiving, ucs_status_t status);
  void Answer(EndpointId endpoint, std::uint64_t message, const absl::Status& status);
  void Complete(EndpointId endpoint);
  absl::Status WhyEnded(EndpointId endpoint, ucs_status_t otherwise);

  ucp_worker_h worker_;
  UcxEndpoints& endpoints_;
  const RegionTable& regions_;
  const FabricTraits& traits_;
  Fabric::Receiver receiver_;
  SlotTable<Sending> sending_;
  SlotTable<Receiving> receiving_;
  SlotTable<Answering> answering_;
  SlotTable<Held> held_;
  std::uint64_t shm_arrivals_ = 0;
  std::vector<FabricEvent> events_;
  std::vector<std::pair<EndpointId, absl::Status>> offenders_;
};

}  // namespace wb
