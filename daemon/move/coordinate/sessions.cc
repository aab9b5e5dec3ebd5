#include "daemon/move/coordinate/sessions.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "daemon/state/seconds.h"

namespace wb {

absl::Status Sessions::Check(const SessionOpening& opening) const {
  const Layout& layout = opening.registration.layout;
  if (state_.draining) {
    return absl::UnavailableError(absl::StrCat("daemon ", state_.options.node, " is draining"));
  }
  if (state_.sessions.contains(opening.session)) {
    return absl::AlreadyExistsError(absl::StrCat("session ", opening.session, " is open already"));
  }
  if (!layout.node.empty() && layout.node != state_.options.node) {
    return absl::InvalidArgumentError(absl::StrCat(layout.name.ToString(), " says node ",
                                                   layout.node, ", this daemon is of node ",
                                                   state_.options.node));
  }
  if (opening.buffers.size() != layout.buffers.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(layout.name.ToString(), " brings ", opening.buffers.size(),
                     " buffers, its layout has ", layout.buffers.size()));
  }
  return absl::OkStatus();
}

void Sessions::Open(SessionOpening opening,
                    Clock::time_point deadline,
                    std::function<void(SessionOpened)> done) {
  if (const absl::Status status = Check(opening); !status.ok()) {
    opening.buffers.clear();
    opening.snapshots.reset();
    if (opening.released != nullptr) opening.released();
    done({status, opening.memory});
    return;
  }
  Session& session = state_.sessions[opening.session];
  session.id = opening.session;
  session.incarnation = opening.incarnation;
  session.world_size = opening.world_size;
  session.epoch = opening.epoch;
  session.held_version = opening.held_version;
  session.memory = opening.memory;
  session.attempt = opening.attempt;
  session.released = std::move(opening.released);
  opening.registration.layout.node = state_.options.node;
  session.contents = std::move(opening.contents);
  session.registration = std::make_shared<const Registration>(std::move(opening.registration));
  for (OpenedBuffer& buffer : opening.buffers) {
    const RegionId region(state_.next_region++);
    session.regions.push_back(region);
    session.offsets.push_back(buffer.offset);
    state_.runner->AddRegion(region, std::move(buffer.region));
  }
  if (opening.snapshots.has_value()) AddSnapshot(session, *std::move(opening.snapshots));
  PendingCall<SessionOpened>& call = session.opening.emplace();
  call.since = state_.turns.Now();
  call.timeout = std::max(deadline - call.since, Clock::duration::zero());
  call.done = std::move(done);
  call.timer = state_.turns.At(deadline, [this, id = session.id] { OnDeadline(id); });
  Register(session);
}

void Sessions::AddSnapshot(Session& session, std::vector<Region> snapshots) {
  SnapshotMemory& memory = session.snapshot.emplace();
  for (std::size_t buffer = 0; buffer < snapshots.size(); ++buffer) {
    const RegionId region(state_.next_region++);
    const MemoryRef from{session.regions[buffer], session.offsets[buffer],
                         snapshots[buffer].bytes()};
    memory.regions.push_back(region);
    if (from.bytes > 0) memory.parts.push_back({from, region});
    state_.runner->AddRegion(region, std::move(snapshots[buffer]));
  }
}

void Sessions::Register(const Session& session) {
  RegisterWorker call{session.id,           session.incarnation,
                      session.world_size,   session.epoch,
                      session.held_version, session.memory,
                      session.attempt,      session.registration,
                      session.contents,     {}};
  for (const auto& [key, version] : state_.commits) {
    if (key.first == session.job()) call.commits.push_back({key.second, version});
  }
  state_.Tell(std::move(call));
}

void Sessions::OnWorkerRegistered(const WorkerRegistered& message) {
  Session* session = state_.Find(message.session);
  if (session == nullptr) {
    ++state_.stale_messages;
    return;
  }
  if (message.status.ok()) {
    ForgetOldOffer(*session);
    session->membership = Session::Membership::kMember;
    if (session->opening.has_value()) AnswerOpening(*session, message.status);
    return;
  }
  if (session->opening.has_value()) {
    AnswerOpening(*session, message.status);
    Drop(message.session);
    return;
  }
  spdlog::warn("session={} refused by the leader: {}", message.session, message.status.ToString());
  session->membership = Session::Membership::kRefused;
  session->refusal = message.status;
}

/// What was on offer to a group that had no other rank here was for one that has left: the leader
/// did not tell us how it ended. What it offers from now on comes after its word to this rank.
void Sessions::ForgetOldOffer(const Session& first) {
  const auto offer = state_.offers.find({first.job(), first.name().group});
  if (offer == state_.offers.end()) return;
  const bool others =
      std::any_of(state_.sessions.begin(), state_.sessions.end(), [&](const auto& entry) {
        const Session& other = entry.second;
        return other.job() == first.job() && other.name().group == first.name().group &&
               other.membership == Session::Membership::kMember;
      });
  if (!others) offer->second.open = false;
}

void Sessions::OnDeadline(const SessionId& id) {
  Session* session = state_.Find(id);
  if (session == nullptr || !session->opening.has_value()) return;
  absl::Status status = state_.LeaderStatus();
  if (status.ok()) {
    const auto timeout = session->opening->timeout;
    status = WithCulprits(absl::DeadlineExceededError(absl::StrCat(
                              "the leader has not answered the registration of ",
                              session->name().ToString(), " within ", Seconds(timeout))),
                          state_.LeaderCulprit(Culprit::Reason::kLate, "register", timeout));
  }
  state_.Tell(UnregisterWorker{id, "its Join has passed its deadline", true});
  AnswerOpening(*session, status);
  Drop(id);
}

void Sessions::AnswerOpening(Session& session, const absl::Status& status) {
  const PendingCall<SessionOpened> call = *std::move(session.opening);
  session.opening.reset();
  state_.turns.Cancel(call.timer);
  call.done({status, session.memory});
}

void Sessions::Close(const SessionId& id, const absl::Status& status) {
  Session* session = state_.Find(id);
  if (session == nullptr) return;
  spdlog::info("session={} worker={} closed: {}", id, session->name().ToString(),
               status.ToString());
  state_.Tell(UnregisterWorker{id, std::string(status.message()), state_.draining});
  if (session->opening.has_value()) AnswerOpening(*session, status);
  calls_.EndCalls(*session, status);
  Drop(id);
}

void Sessions::CloseAll(const absl::Status& status) {
  std::vector<SessionId> ids;
  for (const auto& [id, session] : state_.sessions) ids.push_back(id);
  for (const SessionId& id : ids) {
    calls_.attempts().AbortFor(state_.sessions.at(id), status);
    Close(id, status);
  }
}

void Sessions::Drop(const SessionId& id) {
  const auto found = state_.sessions.find(id);
  const std::string job = found->second.job();
  calls_.attempts().Forget(found->second);
  std::vector<RegionId> regions = std::move(found->second.regions);
  if (const auto& snapshot = found->second.snapshot; snapshot.has_value()) {
    regions.insert(regions.end(), snapshot->regions.begin(), snapshot->regions.end());
  }
  const auto left = std::make_shared<std::atomic<std::size_t>>(regions.size() + 1);
  const auto one_less = [left, released = std::move(found->second.released)] {
    if (left->fetch_sub(1) == 1 && released != nullptr) released();
  };
  state_.sessions.erase(found);
  for (const RegionId region : regions) state_.runner->RemoveRegion(region, one_less);
  one_less();
  const bool last = std::none_of(state_.sessions.begin(), state_.sessions.end(),
                                 [&](const auto& entry) { return entry.second.job() == job; });
  if (!last) return;
  // The leader forgets likewise what this daemon holds of the job.
  std::erase_if(state_.plans, [&](const auto& entry) { return entry.first.first == job; });
  std::erase_if(state_.offers, [&](const auto& entry) { return entry.first.first == job; });
  std::erase_if(state_.commits, [&](const auto& entry) { return entry.first.first == job; });
}

void Sessions::Replay() {
  for (const auto& [id, session] : state_.sessions) Register(session);
}

void Sessions::LeaderLost() {
  for (auto& [id, session] : state_.sessions) {
    session.membership = Session::Membership::kUnknown;
    session.late_publishes.clear();
    session.late_receives.clear();
  }
  state_.offers.clear();
}

}  // namespace wb
