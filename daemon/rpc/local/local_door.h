#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/move/coordinator.h"
#include "daemon/move/session_calls.h"
#include "daemon/rpc/local/admission.h"
#include "daemon/rpc/local/local_session.h"
#include "daemon/rpc/local/memory_claims.h"
#include "planner/base/fd_handle.h"
#include "transport/loop/event_loop.h"

namespace wb {

struct LocalDoorOptions {
  std::string node;
  Incarnation incarnation;
  std::uint32_t max_workers = 64;                  // limits.workers
  std::uint64_t max_memory_bytes = 0;              // limits.memory_bytes
  std::uint64_t max_layout_bytes = 0;              // limits.message_bytes
  std::function<SessionId()> new_session_id;       // 128 random bits in hex
  std::chrono::milliseconds join_timeout{10'000};  // for a client to send its join
  std::chrono::milliseconds linger{2'000};         // for a refused one to read why
  int work_threads = 2;  // that check layouts and make workers' memory present
};

/// The local door: accepts workers on `worker.sock`, a LocalSession each, within the limits.
///
/// Invariant: every session that SessionCalls has open belongs to a live connection here.
/// Loop-confined, except that it is made and destroyed while the loop does not run.
class LocalDoor final : public SessionNotices {
 public:
  /// `listener` comes from ListenPackets. `loop` and `calls` outlive the door.
  static absl::StatusOr<std::unique_ptr<LocalDoor>> Open(EventLoop& loop,
                                                         SessionCalls& calls,
                                                         FdHandle listener,
                                                         LocalDoorOptions options);
  LocalDoor(const LocalDoor&) = delete;
  LocalDoor& operator=(const LocalDoor&) = delete;
  ~LocalDoor() override;

  void NotifyGo(const SessionId& session, Version version, std::function<void()> accepted) override;
  void NotifyStaged(const SessionId& session, Version version, AttemptId attempt) override;
  void NotifyOutcome(const SessionId& session, Version version, bool committed) override;
  void NotifySnapshot(const SessionId& session, Version version, double seconds) override;
  void CloseGone() override;

  /// Refuses new connections, new sessions and new calls from here on. Idempotent.
  void StopAccepting();
  /// A Publish or Receive is in progress, or a reply has not left yet.
  bool busy() const;
  /// Calls `then` once, when the door is not busy; at once if it is not.
  void WhenQuiet(std::function<void()> then);
  /// Ends every session: its client reads `why` and then the end of its connection.
  void Close(const absl::Status& why);

  std::size_t connections() const { return sessions_.size(); }
  const Admission& admission() const { return admission_; }

 private:
  LocalDoor(EventLoop& loop, SessionCalls& calls, FdHandle listener, LocalDoorOptions options);
  void AcceptSome();
  bool AcceptOne();
  bool DropOne();
  void Add(FdHandle socket);
  void OnSettled();
  absl::Status MakeWay(const LocalSession& newcomer);
  std::function<void()> WhenUnmapped(std::uint64_t claims);
  /// The open session, or nullptr: it has ended, and SessionCalls has been told.
  LocalSession* Find(const SessionId& session) const;

  EventLoop& loop_;
  Admission admission_;
  MemoryClaims claims_;
  MappedFiles files_;
  WorkThreads work_;  // outlives the sessions: what they have begun ends with them
  SessionContext context_;
  std::function<void()> when_quiet_;
  FdHandle listener_;
  FdHandle spare_;  // given up for a moment to hang up on a client when descriptors run out
  std::uint64_t next_connection_ = 1;
  // Destroyed before what they use. By number, so that a late event never meets a newer one.
  std::map<std::uint64_t, std::unique_ptr<LocalSession>> sessions_;
  std::shared_ptr<const char> alive_ = std::make_shared<const char>();
};

}  // namespace wb
