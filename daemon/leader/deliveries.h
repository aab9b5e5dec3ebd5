#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "daemon/leader/state.h"

namespace wb {

/// A delivery with what it belongs to.
struct DeliveryRef {
  LeaderJob& job;
  Publication& publication;
  Delivery& delivery;
};

class DeliveryEvents {
 public:
  virtual ~DeliveryEvents() = default;
  /// A delivery became prepared, decided or ended: others may go, the publication may be released.
  virtual void OnDeliveryChanged(LeaderJob& job, Publication& publication) = 0;
};

/// The verb "deliver": takes each delivery through its states by the daemons' words, and decides
/// commit. Deliveries are independent of each other here; what couples them (go together, release
/// together) is the publications' business. Called inside turns only.
class Deliveries {
 public:
  Deliveries(LeaderState& state, DeliveryEvents& events) : state_(state), events_(events) {}

  /// A rank has accepted the version; when all have, the daemons are asked to prepare.
  void Accept(const DeliveryRef& ref, std::int32_t rank, Caller caller);
  /// Lets a prepared delivery move.
  void Go(const DeliveryRef& ref);
  /// Fails it unless commit is decided or it failed before; daemons in it are told to abort. Its
  /// ranks are answered when nothing moves any more. Does not report OnDeliveryChanged: who fails
  /// several does so once, at the end.
  void Fail(const DeliveryRef& ref, const absl::Status& status);

  // What daemons report of attempts; of an unknown attempt, or out of turn: counted and dropped.
  void OnPrepared(const std::string& node, AttemptId attempt);
  void OnStaged(const std::string& node, AttemptId attempt, const BytesByPath& bytes);
  void OnFailed(const std::string& node, AttemptId attempt, const absl::Status& status);
  void OnAborted(const std::string& node, AttemptId attempt);
  void OnCommitted(const std::string& node, AttemptId attempt);
  /// The daemon of `node` is gone; deliveries that lost a member with it have been failed before.
  void DropPeer(const std::string& node);

 private:
  struct Found {
    DeliveryRef ref;
    AttemptPeer& peer;
  };
  std::optional<DeliveryRef> Find(AttemptId attempt);
  /// The delivery, if the daemon of `node` may speak of it in `state`; else counts the message.
  std::optional<Found> Expect(const std::string& node, AttemptId attempt, DeliveryState state);

  void Prepare(const DeliveryRef& ref);
  bool NeedsPart(const DeliveryRef& ref, const std::string& node);
  /// Makes the parts of these nodes, and asks each to prepare once its part is there.
  void MakeParts(const DeliveryRef& ref, std::vector<std::string> nodes);
  void OnPartMade(AttemptId attempt,
                  const std::string& node,
                  const std::shared_ptr<PrepareAttempt>& message);
  /// `message` has the plan, if it is to have one, and nothing else.
  void AskToPrepare(const DeliveryRef& ref, const std::string& node, PrepareAttempt message);
  void Commit(const DeliveryRef& ref);
  void Abort(const DeliveryRef& ref);
  void Committed(const DeliveryRef& ref);
  void Quiet(const DeliveryRef& ref);
  void AnswerRanks(const DeliveryRef& ref);
  void SendToAll(const Delivery& delivery, const FromLeader& message);
  void Advance(const DeliveryRef& ref);

  LeaderState& state_;
  DeliveryEvents& events_;
};

}  // namespace wb
