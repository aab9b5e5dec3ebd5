#pragma once

#include <string>

#include "absl/status/status.h"

#include "daemon/leader/deliveries.h"
#include "daemon/leader/state.h"

namespace wb {

/// The verb "catch up": brings the newest version that rollout groups have committed to whole
/// rollout groups that lack it, from one of those that hold it, while no publication is under way.
/// The trainers have no part in it: it is a delivery of its own in the released publication, which
/// changes nothing of what that has told.
///
/// Invariant: LeaderJob::late names the late deliveries that are not over; a group has one at most.
/// Called inside turns only.
class LateDeliveries {
 public:
  LateDeliveries(LeaderState& state, Deliveries& deliveries)
      : state_(state), deliveries_(deliveries) {}

  /// Offers what can be offered. Called when a group became whole, and when a publication or a late
  /// delivery has ended.
  void Consider(LeaderJob& job);
  /// Lets what is prepared move: a late delivery waits for no other.
  void Go(LeaderJob& job);
  /// A newer version is on offer to all: late ones that do not move yet make way for it.
  void MakeWay(LeaderJob& job, Version newer);
  /// Fails those that write or read the memory of a member that has left.
  void MemberLost(LeaderJob& job, const Member& member, const absl::Status& left);

 private:
  /// False when there is no plan from `source`. While it is made, true: it is offered then.
  bool OfferFrom(LeaderJob& job,
                 const std::string& source,
                 const std::string& group,
                 Version version);

  LeaderState& state_;
  Deliveries& deliveries_;
};

/// The late delivery that reads the group's memory now, or nullptr: until it is over, nothing is to
/// be written there.
[[nodiscard]] const Delivery* FindReader(const LeaderJob& job, const std::string& group);

}  // namespace wb
