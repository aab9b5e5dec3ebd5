#include "daemon/leader/snapshots.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"

#include "daemon/leader/waits.h"
#include "daemon/state/seconds.h"

namespace wb {
namespace {

using TimePoint = Timers::Clock::time_point;
using Milliseconds = std::chrono::duration<double, std::milli>;

/// Mean time, over all workers that called Publish or Receive for the version, in which that call
/// kept them from going on.
double AverageStallMs(const Publication& publication, TimePoint now) {
  Milliseconds sum{0};
  std::size_t callers = 0;
  const auto add = [&](const Caller& caller) {
    if (caller.snapshot.has_value()) {
      sum += *caller.snapshot;
    } else {
      sum += caller.answered.value_or(now) - caller.since;
    }
    ++callers;
  };
  for (const auto& [name, caller] : publication.publishers) add(caller);
  for (const auto& [group, delivery] : publication.deliveries) {
    for (const auto& [rank, caller] : delivery.accepted) add(caller);
  }
  return callers == 0 ? 0 : sum.count() / static_cast<double>(callers);
}

/// First publish to last commit; 0 while nothing has committed.
double EndToEndMs(const Publication& publication) {
  std::optional<TimePoint> last;
  for (const auto& [group, delivery] : publication.deliveries) {
    if (!delivery.late && CommitDecided(delivery.state)) last = std::max(last, delivery.ended);
  }
  if (!last.has_value()) return 0;
  Milliseconds before{0};  // the leader heard of any
  for (const auto& [name, caller] : publication.publishers) {
    if (!caller.snapshot.has_value()) continue;
    const Milliseconds after = caller.since - publication.opened;
    before = std::max(before, *caller.snapshot - after);
  }
  return (before + Milliseconds(*last - publication.opened)).count();
}

DeliverySnapshot SnapshotDelivery(const Delivery& delivery) {
  DeliverySnapshot snapshot;
  snapshot.group = delivery.group;
  snapshot.sources = delivery.sources;
  snapshot.state = Name(delivery.state);
  snapshot.status = delivery.status;
  snapshot.attempt = delivery.attempt.value_or(AttemptId());
  snapshot.bytes_planned = delivery.bytes_planned;
  snapshot.bytes = delivery.bytes;
  if (delivery.went.has_value() && delivery.ended.has_value()) {
    snapshot.seconds = std::chrono::duration<double>(*delivery.ended - *delivery.went).count();
  }
  return snapshot;
}

VersionSnapshot SnapshotVersion(const LeaderJob& job,
                                const Publication& publication,
                                TimePoint now) {
  VersionSnapshot snapshot;
  snapshot.job = job.name;
  snapshot.version = publication.version;
  snapshot.state = Name(publication.state);
  snapshot.label = publication.options.label;
  snapshot.status = publication.status;
  snapshot.average_stall_ms = AverageStallMs(publication, now);
  snapshot.end_to_end_ms = EndToEndMs(publication);
  snapshot.bound_bytes = publication.bound_bytes;
  for (const auto* deliveries : {&publication.deliveries, &publication.late}) {
    for (const auto& [group, delivery] : *deliveries) {
      snapshot.deliveries.push_back(SnapshotDelivery(delivery));
    }
  }
  return snapshot;
}

}  // namespace

std::vector<MemberSnapshot> SnapshotMembers(const LeaderJob& job) {
  std::vector<MemberSnapshot> snapshots;
  for (const auto& [name, member] : job.members.all()) {
    snapshots.push_back({job.name, name, member.role(), member.node(), member.session,
                         member.incarnation, member.held_version, member.memory,
                         PieceBytes(*member.registration)});
  }
  return snapshots;
}

std::vector<VersionSnapshot> SnapshotVersions(const LeaderJob& job,
                                              std::size_t last,
                                              TimePoint now) {
  std::vector<VersionSnapshot> snapshots;
  for (auto it = job.publications.rbegin();
       it != job.publications.rend() && snapshots.size() < last; ++it) {
    snapshots.push_back(SnapshotVersion(job, it->second, now));
  }
  return snapshots;
}

std::vector<std::string> SnapshotWaits(const LeaderJob& job, TimePoint now) {
  std::vector<std::string> sentences;
  for (const auto& [key, doubt] : job.doubts) {
    if (doubt.committed.has_value()) continue;
    sentences.push_back(
        absl::StrCat("job ", job.name, " version ", key.second.value(), ": in doubt at ", key.first,
                     ", waiting for all of its ranks to come back, ", Seconds(now - doubt.since)));
  }
  for (const auto& [version, publication] : job.publications) {
    for (const Wait& wait : WaitsOf(job, publication, now)) {
      sentences.push_back(absl::StrCat("job ", job.name, " version ", version.value(), ": waiting ",
                                       ToString(wait)));
    }
  }
  for (const auto& [name, early] : job.accepts) {
    sentences.push_back(absl::StrCat("job ", job.name, " version ", early.version.value(), ": ",
                                     name.ToString(), " (node ", early.caller.node,
                                     ") is waiting for it to be published, ",
                                     Seconds(now - early.caller.since)));
  }
  return sentences;
}

}  // namespace wb
