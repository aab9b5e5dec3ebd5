#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "daemon/move/session_calls.h"
#include "daemon/rpc/local/admission.h"
#include "daemon/rpc/local/memory_claims.h"
#include "daemon/rpc/local/packet_socket.h"
#include "daemon/rpc/local/session_join.h"
#include "planner/base/fd_handle.h"
#include "proto/v1.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/work_threads.h"

namespace wb {

class LocalSession;

/// What all sessions of a door share. Everything outlives the sessions.
struct SessionContext {
  EventLoop& loop;
  SessionCalls& calls;
  WorkThreads& work;  // for what is too long for the loop
  Admission& admission;
  MemoryClaims& claims;
  MappedFiles& files;
  JoinLimits join;
  Incarnation incarnation;                    // of the daemon
  std::function<SessionId()> new_session_id;  // 128 random bits in hex
  std::chrono::milliseconds join_timeout{};   // to the end of the join, whatever the client says
  std::chrono::milliseconds linger{};         // for a refused client to read why
  std::vector<char> buffer;                   // one packet; used within one call only
  bool draining = false;                      // new work is refused
  std::function<void()> settled;              // a call has ended, or replies have left
  /// Lets the newcomer have its rank, if the door has it in another session that is over; else
  /// ALREADY_EXISTS names that.
  std::function<absl::Status(const LocalSession& newcomer)> make_way;
  /// What to call, on any thread, when nothing of the memory claimed under this number is mapped
  /// any more.
  std::function<std::function<void()>(std::uint64_t claims)> when_unmapped;
};

/// One worker's connection and its lease: the join, then its calls, each answered on its id.
///
/// Invariant: SessionCalls knows the session from OpenSession on, until it refuses to open it or is
/// told CloseSession, and the end here, for whatever reason, closes it there. The end of the
/// connection is one, that of the worker's process another: its children may hold the connection.
/// After a refusal the session stays only until the client has read why, for at most `linger`.
/// Loop-confined.
class LocalSession {
 public:
  /// `ended` is called once, from the loop, when the connection is gone; the owner may destroy the
  /// session after that call has returned.
  LocalSession(SessionContext& context, FdHandle socket, std::function<void()> ended);
  LocalSession(const LocalSession&) = delete;
  LocalSession& operator=(const LocalSession&) = delete;
  ~LocalSession();

  absl::Status Start();
  /// Asks the client to declare its memory invalid; `accepted` runs when it has.
  void NotifyGo(Version version, std::function<void()> accepted);
  /// Tells the client something that it does not answer.
  void Notify(const v1::DaemonMessage& notice);
  /// Memory of another session has become free: a join may have waited for it.
  void OnMemoryFree();
  /// Refuses the client and ends the session.
  void Refuse(const absl::Status& why);
  /// Ends it now if its connection or process has ended, which the loop may not have told yet.
  bool EndsIfGone();
  /// Its worker has been let in.
  bool open() const { return step_ == Step::kOpening || step_ == Step::kOpen; }
  /// "" until the session is being opened.
  const SessionId& id() const { return id_; }
  /// Whether both are, or are to be, the same rank of the same job.
  bool IsSameRank(const LocalSession& other) const;
  /// "session 0123 of engine0/1 (pid 12), open since 3.2 s".
  std::string Describe() const;
  /// A Publish or Receive is in progress.
  bool moving() const;
  /// Replies wait for the client to read.
  bool unsent() const { return !unsent_.empty(); }

 private:
  using Clock = SessionCalls::Clock;

  enum class Step : std::uint8_t {
    kJoining,
    kClaiming,  // waits for memory that another session has left
    kPopulating,
    kOpening,
    kOpen,
    kRefused,
    kEnded
  };
  /// A session whose memory is claimed, then made present by a work thread.
  struct Populating {
    std::uint64_t id = 0;  // of the request
    Clock::time_point since;
    Clock::time_point deadline;
    SessionOpening opening;
    std::string worker;
    std::atomic<bool> cancelled{false};
    std::atomic<std::size_t> buffer{0};  // that is being made present
  };
  absl::Status WatchProcess();
  void OnReady(std::uint32_t events);
  void ReceiveSome();
  void OnPacket(Packet packet);
  void OnMessage(const v1::ClientMessage& message, std::vector<FdHandle> descriptors);
  void CheckLayout(const v1::ClientMessage& message, SessionJoin::LayoutCheck check);
  void OnLayoutChecked(std::uint64_t id, absl::StatusOr<SessionJoin::CheckedLayout> checked);
  void AwaitJoin(Clock::time_point deadline);
  void OnJoinFinish(const v1::ClientMessage& message);
  void ClaimMemory();
  void Populate(std::uint64_t id, Clock::time_point deadline);
  void OnOpeningDeadline(std::uint64_t id);
  /// DEADLINE_EXCEEDED for this worker's sake, at `stage` of its join.
  absl::Status Late(const char* stage, Clock::duration since, const std::string& text) const;
  void OnPopulated(std::uint64_t id, const absl::Status& status, Clock::time_point deadline);
  void CancelPopulating();
  std::uint32_t Interest() const;
  void OnOpened(std::uint64_t id, const SessionOpened& opened);
  void OnCall(const v1::ClientMessage& message);
  void Call(const v1::ClientMessage& message);
  void OnLeave(const v1::ClientMessage& message);
  void OnGoAccepted(const v1::ClientMessage& message);
  void RefuseOn(std::uint64_t id, const absl::Status& why);
  void Answer(std::uint64_t id, const v1::DaemonMessage& reply);
  void Send(const v1::DaemonMessage& message);
  void SendUnsent();
  void CloseCalls(const std::string& reason);
  void LetMemoryGo();
  void End(const std::string& reason);
  void LogEnd(bool refused, const std::string& reason) const;
  Clock::time_point DeadlineOf(const v1::ClientMessage& message) const;
  /// "worker policy/0 (pid 12)".
  std::string Who() const;

  SessionContext& context_;
  FdHandle socket_;
  FdHandle process_;  // of the worker, whose end is the session's; none where it cannot be known
  const std::function<void()> ended_;
  const PeerCredentials peer_;
  Step step_ = Step::kJoining;
  AdmissionTicket ticket_;
  SessionClaims claims_;
  SessionJoin join_;
  std::shared_ptr<Populating> populating_;
  bool paused_ = false;  // nothing is read: the layout is being checked
  bool mapped_ = false;  // by SessionCalls, until it says that nothing is any more
  SessionId id_;
  Clock::time_point opened_;
  std::uint64_t last_id_ = 0;                                // of the client's last message
  std::optional<TimerId> timer_;                             // of the join, or of the linger
  absl::flat_hash_map<std::uint64_t, const char*> in_call_;  // request id -> what it asks
  std::map<std::uint64_t, std::function<void()>> go_;        // version -> to tell
  std::deque<std::string> unsent_;
  // Replies come later than the connection may live: they hold this weakly.
  std::shared_ptr<const char> alive_ = std::make_shared<const char>();
};

}  // namespace wb
