#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "client/src/call.h"
#include "client/src/enrolment.h"
#include "client/src/publication.h"
#include "client/src/quarantine.h"

namespace wb::client {

/// HeldMemory as other threads see it.
struct ShownMemory {
  std::atomic<wb_memory_state> state{WB_MEMORY_EMPTY};
  std::atomic<std::uint64_t> version{0};
};

/// A worker's session with its daemon, across daemons' deaths: a call that finds the connection
/// gone joins again first, and says what the memory holds.
///
/// Invariant: this object owns the truth about a rollout's memory. It is invalid from before the
/// daemon is allowed to write, in doubt once all has landed, and valid when a Receive ends well.
/// What the daemon says while no Receive is in progress changes it only where it is in doubt.
/// Memory that a lost daemon may still touch is in quarantine, and no call uses it until that has
/// ended.
/// Thread-compatible but for memory_state and held_version; usable only in the process that made
/// it.
class Session {
 public:
  static Result<Session> Join(Enrolment enrolment, Milliseconds timeout);

  /// From a snapshot: returns when that is taken, with no more than its version and time.
  Result<v1::PublishReply> Publish(std::uint64_t version,
                                   const PublishWish& wish,
                                   Milliseconds timeout);
  /// How the last Publish from a snapshot ended. DEADLINE_EXCEEDED: it has not, within `timeout`.
  Result<v1::PublishReply> WaitPublished(std::uint64_t version, Milliseconds timeout);
  Result<std::uint64_t> WaitForVersion(std::uint64_t at_least, Milliseconds timeout);
  Result<v1::ReceiveReply> Receive(std::uint64_t version, Milliseconds timeout);

  /// Ends the session and says why this worker cannot go on: the others hear of it. UNAVAILABLE
  /// when no daemon could be told. No call is allowed afterwards.
  Result<void> Leave(const std::string& reason);

  /// What the memory holds. These two from any thread, at any time.
  wb_memory_state memory_state() const { return shown_->state.load(); }
  std::uint64_t held_version() const { return shown_->version.load(); }
  /// Of the last Publish or WaitPublished, failed or not.
  const std::vector<v1::GroupOutcome>& outcomes() const { return outcomes_; }
  /// Told with the last Publish that succeeded: how the one before, from a snapshot, ended, if
  /// nobody had asked.
  const PastPublication& previous() const { return previous_; }
  /// Both empty while the daemon is lost.
  const std::string& id() const { return id_; }
  const std::string& node() const { return node_; }

 private:
  /// Whether the notice is what the call waits for.
  using OnNotice = std::function<Result<bool>(const v1::DaemonMessage&)>;

  Session(Enrolment enrolment, Milliseconds join_timeout);

  Result<void> CheckCaller(v1::Role role, const std::string& what) const;
  Result<void> EnsureJoined(Deadline deadline);
  Result<void> Rejoin(Deadline deadline);
  Result<v1::DaemonMessage> Exchange(v1::ClientMessage request,
                                     const Call& call,
                                     const OnNotice& on_notice);
  /// Waits until `until`; also an error when the daemon says that it has ended the session.
  Result<v1::DaemonMessage> NextMessage(Deadline until);
  Result<v1::DaemonMessage> Await(std::uint64_t id, Deadline deadline, const OnNotice& on_notice);
  Result<std::uint64_t> AskForVersion(std::uint64_t at_least, const Call& call);
  v1::PublishReply BeginPublication(const v1::DaemonMessage& notice, const Call& call);
  Result<v1::PublishReply> TakePublished(const v1::DaemonMessage& answer,
                                         const Call& call,
                                         const PublishWish& wish);
  void TellPrevious();
  /// False when the one in progress, if there is one, has not ended by `deadline`.
  bool AwaitPublication(Deadline deadline);
  Error StillMoving(const Call& call) const;
  /// Takes what comes while no answer is awaited; false for what does not fit.
  bool TakeUnasked(const v1::DaemonMessage& message);
  Result<v1::ReceiveReply> Land(std::uint64_t version, const Call& call, bool& go);
  Result<bool> OnLanding(const v1::DaemonMessage& notice, const Call& call, bool& go);
  Result<void> AcceptGo(std::uint64_t version, Deadline deadline);
  void TakeOutcome(const v1::DaemonMessage& notice);
  Error Lose(const Error& why, const Call& call);
  /// After Lose: the daemon may still touch the memory, if it lives.
  void Isolate(const Call& call);
  void EndQuarantine();
  std::string QuarantineText() const;
  Error NotReceived(Error why, std::uint64_t version, bool go) const;
  /// "in doubt as before about version 7".
  std::string MemoryText() const;
  void Hold(HeldMemory held);
  void Disconnect();

  Enrolment enrolment_;
  Milliseconds join_timeout_;
  pid_t process_;
  HeldMemory held_;  // changed by Hold alone
  std::unique_ptr<ShownMemory> shown_ = std::make_unique<ShownMemory>();
  std::vector<v1::GroupOutcome> outcomes_;
  std::optional<Publication> publication_;  // the last from a snapshot
  PastPublication previous_;
  std::optional<Door> door_;
  std::string id_;
  std::string node_;
  std::uint64_t daemon_ = 0;  // incarnation of the one that was joined last
  PeerProcess lost_;          // of the connection given up last
  std::optional<Quarantine> quarantine_;
  bool left_ = false;
};

}  // namespace wb::client
