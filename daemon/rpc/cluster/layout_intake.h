#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "weightbridge/v1/cluster.pb.h"

#include "daemon/leader/leader.h"
#include "daemon/state/cluster_messages.h"
#include "planner/base/mutex.h"
#include "planner/model/registration.h"
#include "proto/v1.h"

namespace wb {

/// What the intake does with workers. Called with its lock held, so that what happens to a worker
/// is told in the order in which it happened: none of them may block or call back.
struct IntakeSinks {
  std::function<void(PeerId, RegisterWorker)> registered;
  std::function<void(PeerId, WorkerRegistered)> refused;
  std::function<void(PeerId, const std::string& sha256)> want;
};

struct IntakeLimits {
  std::uint64_t contents_bytes = 0;                    // on the wire; larger contents are refused
  std::uint64_t kept_bytes = std::uint64_t{64} << 20;  // in memory, for later replicas
};

/// Registrations whose contents come by digest. Contents that the leader has not got are asked of
/// one daemon, whoever else offers the same meanwhile: equal replicas send them once in all. When
/// that daemon fails to send what it offered, its own workers are refused and the next is asked.
///
/// Invariant: a worker is registered whole, or refused by name, or forgotten with its session or
/// stream: nothing is half-registered. The contents kept are a cache, the last used of them, up to
/// `kept_bytes`. Thread-safe.
class LayoutIntake {
 public:
  LayoutIntake(IntakeLimits limits, IntakeSinks sinks);

  /// `call` has the identity of its worker alone, and the id of its contents.
  void Register(PeerId peer, RegisterWorker call);
  void Take(PeerId peer, const v1::ContentsPart& part);
  /// The session is no more.
  void Forget(PeerId peer, const SessionId& session);
  /// The stream is no more.
  void Forget(PeerId peer);
  /// Parts that nobody had asked for (any more); dropped.
  std::uint64_t stale_parts() const;

 private:
  struct Waiter {
    PeerId peer;
    RegisterWorker call;
  };
  /// Contents on their way, with who waits for them.
  struct Arriving {
    std::uint64_t bytes = 0;  // in all, as offered
    PeerId sender;
    std::string data;       // that have come
    bool checking = false;  // all have come
    std::deque<Waiter> waiters;
  };
  struct Kept {
    std::string sha256;
    std::uint64_t bytes = 0;  // in memory
    std::shared_ptr<const Registration> contents;
  };
  using ArrivingMap = std::map<std::string, Arriving>;

  absl::Status CheckOffer(PeerId peer, const RegisterWorker& call) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Wait(PeerId peer, RegisterWorker call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// The contents, which are now the last used; or null.
  std::shared_ptr<const Registration> Find(const std::string& sha256)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Keep(Kept kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Admit(PeerId peer, RegisterWorker call, const Registration& contents)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Refuses the sender's workers, and asks the next.
  void SenderFailed(ArrivingMap::iterator arriving, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AskNext(ArrivingMap::iterator arriving) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Drop(const std::function<bool(const Waiter&)>& gone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Finish(const std::string& sha256, std::variant<Registration, Refusals> checked)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const IntakeLimits limits_;
  const IntakeSinks sinks_;
  mutable Mutex mu_;
  ArrivingMap arriving_ ABSL_GUARDED_BY(mu_);  // by digest
  std::list<Kept> kept_ ABSL_GUARDED_BY(mu_);  // the last used first
  std::uint64_t kept_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::uint64_t stale_parts_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace wb
