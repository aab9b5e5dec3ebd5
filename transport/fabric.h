#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "planner/base/strong_id.h"
#include "transport/memory/region.h"

namespace wb {

/// One end of a connection to a peer's fabric. Never reused within a fabric.
using EndpointId = StrongId<struct EndpointTag>;
/// An announced message that has not been given a place yet. Never reused within a fabric.
using AnnouncementId = StrongId<struct AnnouncementTag>;

/// What every fabric can carry in one Send.
inline constexpr std::uint64_t kMaxHeaderBytes = 256;
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 30;

struct FabricTraits {
  std::string name;                     // what it runs on: "tcp", "shm", "auto", "loopback"
  std::uint64_t max_header_bytes = 0;   // of a Send
  std::uint64_t max_message_bytes = 0;  // of a Send's payload
};

/// The way by which an endpoint's payloads go; bytes are counted by it.
/// (The loopback fabric of tests counts as a network.)
enum class FabricPath : std::uint8_t { kTcp, kShm };

/// What an endpoint runs on, as it was found after its creation.
struct LaneTraits {
  FabricPath path = FabricPath::kTcp;
  std::string name;                 // "tcp", "shm", "loopback"
  std::string device;               // "tcp/eth0", "posix/memory", "loopback"
  std::uint64_t segment_bytes = 0;  // payloads travel in parts of this size
};

/// A peer's message before its payload has a place. `header` is valid during the call only and
/// comes from outside: check all of it.
struct Announcement {
  AnnouncementId id;
  EndpointId from;  // closing it ends the receives announced over it
  std::span<const std::byte> header;
  std::uint64_t bytes = 0;
};

/// Where an announced payload shall land; `memory.bytes` equals the announced bytes. With no bytes
/// the region is not looked at.
struct Landing {
  MemoryRef memory;
  std::uint64_t tag = 0;
};

/// A fact from the fabric. A kSent event means the buffer may be reused; it never means delivery.
/// kEndpointFailed comes once for an endpoint that ended without our asking; its operations end
/// with error events of their own, its held announcements are gone.
struct FabricEvent {
  enum class Kind : std::uint8_t { kSent, kReceived, kEndpointFailed };
  Kind kind = Kind::kSent;
  std::uint64_t tag = 0;  // of the Send or Landing
  EndpointId endpoint;    // kEndpointFailed
  absl::Status status;
};

/// Moves messages between the regions of processes. The sender announces, the receiver decides
/// where the payload lands.
///
/// Loop-confined: every call comes from the thread that made it. Nothing blocks. After
/// CloseForced(endpoint), every operation of that endpoint ends with an error event under further
/// Progress, and no byte lands through it after that. The peer's end of it fails.
///
/// Connect makes an endpoint here and, with the first message, one at the peer, where it shows as
/// Announcement::from; both can send. Each Connect makes a pair of its own: closing one pair does
/// not touch another, whoever connected to whom.
class Fabric {
 public:
  /// Called from Progress for each announcement: a place, std::nullopt to decide later by
  /// Accept or Refuse, or an error to refuse it, which reaches the sender's event (code, and up to
  /// 128 bytes of text). A place that is none (not open, a device's, read-only, out of range,
  /// another size) refuses too, and ends in a kReceived event with its tag and the error. It may
  /// call Send, Accept, Refuse and CloseForced; not Progress.
  using Receiver = std::function<absl::StatusOr<std::optional<Landing>>(const Announcement&)>;

  virtual ~Fabric() = default;
  virtual const FabricTraits& traits() const = 0;
  /// Opaque bytes by which a peer's Connect finds this fabric. Secret outside the cluster door.
  virtual const std::string& address() const = 0;
  virtual void SetReceiver(Receiver receiver) = 0;
  /// Starts connecting; failures show as events. INVALID_ARGUMENT for an address that is none.
  virtual absl::StatusOr<EndpointId> Connect(const std::string& address) = 0;
  /// Sends header and payload as one message; one kSent event with `tag` follows, once the receiver
  /// has taken or refused it: messages without one are in flight, whatever their size. The
  /// payload's memory may not change before it. An error means nothing was posted.
  virtual absl::Status Send(EndpointId endpoint,
                            std::span<const std::byte> header,
                            const MemoryRef& payload,
                            std::uint64_t tag) = 0;
  /// Gives a held announcement its place; one kReceived event with the landing's tag follows. On an
  /// error it stays held, unless NOT_FOUND says that it has ended with its endpoint.
  virtual absl::Status Accept(AnnouncementId id, const Landing& landing) = 0;
  /// Drops a held announcement; `reason` reaches the sender's event.
  virtual absl::Status Refuse(AnnouncementId id, absl::Status reason) = 0;
  /// What the endpoint runs on: known from its first message or event on, as long as its operations
  /// go on; null before and after.
  virtual const LaneTraits* lane(EndpointId endpoint) const = 0;
  /// Ends an endpoint at once. Idempotent; events of its operations follow.
  virtual void CloseForced(EndpointId endpoint) = 0;
  /// Appends what has happened to `events`; returns whether anything did.
  virtual bool Progress(std::vector<FabricEvent>& events) = 0;
  /// Readable when Progress has work. Sleep on it only after Arm returned true.
  virtual int wakeup_fd() const = 0;
  /// True: sleeping on wakeup_fd is safe now. False: call Progress again first.
  virtual absl::StatusOr<bool> Arm() = 0;
};

}  // namespace wb
