#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "daemon/leader/deliveries.h"
#include "daemon/leader/late.h"
#include "daemon/leader/state.h"

namespace wb {

/// Versions kept for status and for telling late ranks why theirs failed, per job.
inline constexpr std::size_t kVersionsKept = 128;

/// The verb "publish": opens publications, offers them to the groups that are whole, lets their
/// deliveries go together, releases the sources when all have ended. Called inside turns only.
class Publications final : public DeliveryEvents {
 public:
  explicit Publications(LeaderState& state)
      : state_(state), deliveries_(state, *this), late_(state, deliveries_) {}

  Deliveries& deliveries() { return deliveries_; }

  // Calls of workers, as told by the daemon of `node`. Each is answered by a Finish message.
  void Publish(const PublishVersion& call, const std::string& node);
  void Accept(const AcceptVersion& call, const std::string& node);
  void GiveUp(const GiveUpVersion& call, const std::string& node);

  /// A member of `group` was admitted: a publication that waits for it may go on.
  void MemberJoined(LeaderJob& job, const std::string& group);
  /// Members of one job have been removed; `why` says the reason. Whether a version fails of it,
  /// which says so in its line of log.
  bool MembersLost(LeaderJob& job, const std::vector<Member>& lost, const std::string& why);

  void OnDeliveryChanged(LeaderJob& job, Publication& publication) override;

 private:
  // While it opens (publications.cc).
  absl::Status RefusePublish(LeaderJob& job, const Member& member, Version version);
  absl::Status WhyRoundFailed(LeaderJob& job, const Member& member, Version version) const;
  Publication& OpenVersion(LeaderJob& job, const PublishVersion& call) const;
  void RefuseRound(LeaderJob& job, Publication& opening);
  void FailOpening(LeaderJob& job, Publication& publication, const absl::Status& status);
  void ConsiderOffer(LeaderJob& job);
  void GiveUpReceive(LeaderJob& job, const Member& member, const GiveUpVersion& call);
  const Member* Speaker(const SessionId& session, const std::string& node);

  // Once it is offered (offered.cc).
  void Offer(LeaderJob& job, Publication& publication, const std::set<std::string>& groups);
  void TakeEarlyAccepts(LeaderJob& job, Publication& publication);
  bool RolloutLeft(LeaderJob& job, const Member& member, const absl::Status& left);
  void TrainerLeft(LeaderJob& job, const absl::Status& left);
  void FailUndecided(LeaderJob& job, Publication& publication, const absl::Status& status);
  void ConsiderGo(LeaderJob& job, Publication& publication);
  void FailTooFew(LeaderJob& job, Publication& publication, const std::set<std::string>& ready);
  void ConsiderRelease(LeaderJob& job, Publication& publication);
  absl::Status WhyNotReceivable(LeaderJob& job, const Member& member, Version version) const;

  // Deadlines and answers (offered.cc).
  void ArmDeadline(LeaderJob& job, Publication& publication);
  void OnDeadline(LeaderJob& job, Publication& publication);
  void AnswerPublishers(LeaderJob& job, Publication& publication);
  void AnswerReceive(const Member& member, Version version, const absl::Status& status);

  LeaderState& state_;
  Deliveries deliveries_;
  LateDeliveries late_;
};

}  // namespace wb
