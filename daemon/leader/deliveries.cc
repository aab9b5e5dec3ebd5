#include "daemon/leader/deliveries.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "daemon/leader/waits.h"
#include "daemon/state/attempt_id.h"
#include "planner/lower/plan_part.h"

namespace wb {
namespace {

std::string Title(const DeliveryRef& ref) {
  return absl::StrCat("job ", ref.job.name, " version ", ref.publication.version.value(), " to ",
                      ref.delivery.group);
}

bool TakesPart(const Delivery& delivery, const WorkerName& name) {
  return name.group == delivery.sources || name.group == delivery.group;
}

/// All workers of the attempt: the sources and the group.
AttemptId AttemptOf(const DeliveryRef& ref, Term term) {
  AttemptKey key{term,
                 ref.job.name,
                 ref.delivery.group,
                 ref.publication.version,
                 ref.delivery.plan->plan.FindGroup(ref.delivery.group)->fingerprint,
                 {},
                 ref.delivery.tries};
  for (const auto& [name, member] : ref.job.members.all()) {
    if (TakesPart(ref.delivery, name)) {
      key.workers.emplace(name, member.generation());
    }
  }
  return MakeAttemptId(key);
}

void Add(BytesByPath& sum, const BytesByPath& bytes) {
  sum.tcp += bytes.tcp;
  sum.shm += bytes.shm;
  sum.local += bytes.local;
}

/// Groups that have left, when there are many of whose plans the daemon holds its parts: engines
/// may come under a new name each. A few are kept for those that come back.
std::vector<std::string> PlansToForget(const LeaderJob& job, Peer& peer) {
  constexpr std::size_t kKept = 16;
  std::vector<std::string> gone;
  for (const auto& [key, fingerprint] : peer.plans_sent) {
    const auto& [name, group] = key;
    if (name == job.name && job.members.OfGroup(group).empty()) gone.push_back(group);
  }
  if (gone.size() <= kKept) return {};
  for (const std::string& group : gone) peer.plans_sent.erase({job.name, group});
  return gone;
}

template <typename Predicate>
bool AllParticipants(const Delivery& delivery, Predicate predicate) {
  return std::all_of(delivery.participants.begin(), delivery.participants.end(),
                     [&](const auto& entry) { return predicate(entry.second); });
}

double SecondsBetween(Timers::Clock::time_point from, Timers::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

std::optional<DeliveryRef> Deliveries::Find(AttemptId attempt) {
  const auto owner = state_.attempts.find(attempt);
  if (owner == state_.attempts.end()) return std::nullopt;
  LeaderJob& job = state_.jobs.at(owner->second.job);
  Publication& publication = job.publications.at(owner->second.version);
  auto& deliveries = owner->second.late ? publication.late : publication.deliveries;
  return DeliveryRef{job, publication, deliveries.at(owner->second.group)};
}

std::optional<Deliveries::Found> Deliveries::Expect(const std::string& node,
                                                    AttemptId attempt,
                                                    DeliveryState state) {
  if (const std::optional<DeliveryRef> ref = Find(attempt); ref.has_value()) {
    const auto peer = ref->delivery.participants.find(node);
    if (peer != ref->delivery.participants.end() && ref->delivery.state == state) {
      return Found{*ref, peer->second};
    }
  }
  ++state_.stale_messages;
  return std::nullopt;
}

void Deliveries::Accept(const DeliveryRef& ref, std::int32_t rank, Caller caller) {
  ref.delivery.accepted.insert_or_assign(rank, std::move(caller));
  if (ref.delivery.accepted.size() == ref.job.members.OfGroup(ref.delivery.group).size()) {
    Prepare(ref);
  }
}

void Deliveries::Prepare(const DeliveryRef& ref) {
  Delivery& delivery = ref.delivery;
  delivery.attempt = AttemptOf(ref, state_.term);
  delivery.since = state_.turns.Now();
  state_.attempts[*delivery.attempt] = {ref.job.name, ref.publication.version, delivery.group,
                                        delivery.late};
  for (const auto& [node, others] : delivery.plan->groups.at(delivery.group).exchanges) {
    delivery.participants[node];
  }
  // A rank that wants nothing takes part all the same: it commits with its group.
  for (const std::string& node : ref.job.NodesOfGroup(delivery.group)) {
    delivery.participants[node];
  }
  for (const auto& [name, member] : ref.job.members.all()) {
    if (!TakesPart(delivery, name)) continue;
    const auto peer = delivery.participants.find(member.node());
    if (peer == delivery.participants.end()) continue;
    peer->second.workers.emplace(name.ToString(), member.generation());
  }
  std::vector<std::string> without_part;
  for (const auto& [node, peer] : delivery.participants) {
    if (NeedsPart(ref, node)) {
      without_part.push_back(node);
    } else {
      AskToPrepare(ref, node, {});
    }
  }
  if (!without_part.empty()) MakeParts(ref, std::move(without_part));
}

bool Deliveries::NeedsPart(const DeliveryRef& ref, const std::string& node) {
  const Peer* peer = state_.peers.FindNode(node);
  if (peer == nullptr) return false;  // lost: the delivery is about to hear of it
  const auto sent = peer->plans_sent.find({ref.job.name, ref.delivery.group});
  return sent == peer->plans_sent.end() ||
         sent->second != ref.delivery.plan->plan.FindGroup(ref.delivery.group)->fingerprint;
}

void Deliveries::MakeParts(const DeliveryRef& ref, std::vector<std::string> nodes) {
  state_.works.Begin([this, &links = state_.peers.links(), attempt = *ref.delivery.attempt,
                      solved = ref.delivery.plan, group = ref.delivery.group,
                      nodes = std::move(nodes)](const Works::Report& report) {
    MakePlanParts(solved->job, solved->plan, group, nodes, [&](std::size_t node, PlanPart made) {
      const auto message = std::make_shared<PrepareAttempt>();
      message->plan = std::move(made);
      links.Pack(*message);
      report(std::bind_front(&Deliveries::OnPartMade, this, attempt, nodes[node], message));
    });
  });
}

void Deliveries::OnPartMade(AttemptId attempt,
                            const std::string& node,
                            const std::shared_ptr<PrepareAttempt>& message) {
  const std::optional<DeliveryRef> waiting = Find(attempt);  // it may have failed since
  if (!waiting.has_value() || waiting->delivery.state != DeliveryState::kWaiting) return;
  if (!waiting->delivery.participants.contains(node)) return;
  AskToPrepare(*waiting, node, std::move(*message));
}

void Deliveries::AskToPrepare(const DeliveryRef& ref,
                              const std::string& node,
                              PrepareAttempt message) {
  const SolvedPlan& solved = *ref.delivery.plan;
  const bool has_plan = message.plan.has_value() || message.packed_plan != nullptr;
  message.attempt = *ref.delivery.attempt;
  message.job = ref.job.name;
  message.group = ref.delivery.group;
  message.version = ref.publication.version;
  message.fingerprint = solved.plan.FindGroup(ref.delivery.group)->fingerprint;
  if (Peer* peer = state_.peers.FindNode(node); has_plan && peer != nullptr) {
    peer->plans_sent[{ref.job.name, ref.delivery.group}] = message.fingerprint;
    message.forget = PlansToForget(ref.job, *peer);
  }
  const auto& exchanges = solved.groups.at(ref.delivery.group).exchanges;
  if (const auto others = exchanges.find(node); others != exchanges.end()) {
    for (const std::string& other : others->second) {
      const Peer* peer = state_.peers.FindNode(other);
      if (peer == nullptr) continue;  // lost: the delivery is about to hear of it
      message.peers.push_back({other, peer->hello.incarnation, peer->hello.data_address});
    }
  }
  AttemptPeer& asked = ref.delivery.participants.at(node);
  message.workers = std::move(asked.workers);
  asked.asked = true;
  state_.peers.Send(node, std::move(message));
}

void Deliveries::OnPrepared(const std::string& node, AttemptId attempt) {
  const std::optional<Found> found = Expect(node, attempt, DeliveryState::kWaiting);
  if (!found.has_value()) return;
  found->peer.prepared = true;
  Advance(found->ref);
}

void Deliveries::Go(const DeliveryRef& ref) {
  const auto now = state_.turns.Now();
  for (auto& [version, earlier] : ref.job.publications) {
    // In place: from the first byte on the older version is no more.
    for (auto* deliveries : {&earlier.deliveries, &earlier.late}) {
      const auto delivery = deliveries->find(ref.delivery.group);
      if (delivery == deliveries->end()) continue;
      if (delivery->second.state != DeliveryState::kCommitted) continue;
      Step(ref.job.name, earlier, delivery->second, DeliveryState::kRetired, now);
    }
  }
  Step(ref.job.name, ref.publication, ref.delivery, DeliveryState::kMoving, now);
  ref.delivery.went = now;
  for (const auto& [rank, caller] : ref.delivery.accepted) {
    if (Member* member = ref.job.members.Find(caller.session); member != nullptr) {
      member->memory = MemoryState::kInvalid;
    }
  }
  SendToAll(ref.delivery, GoAttempt{*ref.delivery.attempt});
}

void Deliveries::OnStaged(const std::string& node, AttemptId attempt, const BytesByPath& bytes) {
  const std::optional<Found> found = Expect(node, attempt, DeliveryState::kMoving);
  if (!found.has_value() || found->peer.staged) return;
  found->peer.staged = true;
  Add(found->ref.delivery.bytes, bytes);
  Advance(found->ref);
}

void Deliveries::OnCommitted(const std::string& node, AttemptId attempt) {
  const std::optional<Found> found = Expect(node, attempt, DeliveryState::kInstalling);
  if (!found.has_value()) return;
  found->peer.committed = true;
  Advance(found->ref);
}

void Deliveries::OnAborted(const std::string& node, AttemptId attempt) {
  const std::optional<Found> found = Expect(node, attempt, DeliveryState::kFailed);
  if (!found.has_value()) return;
  found->peer.aborted = true;
  Advance(found->ref);
}

void Deliveries::OnFailed(const std::string& node, AttemptId attempt, const absl::Status& status) {
  const std::optional<DeliveryRef> ref = Find(attempt);
  if (!ref.has_value() || !ref->delivery.participants.contains(node)) {
    ++state_.stale_messages;
    return;
  }
  const absl::Status reason = status.ok() ? absl::InternalError("failed without a reason") : status;
  Fail(*ref, Reworded(reason, absl::StrCat("node ", node, ": ", reason.message())));
  events_.OnDeliveryChanged(ref->job, ref->publication);
}

void Deliveries::Advance(const DeliveryRef& ref) {
  Delivery& delivery = ref.delivery;
  switch (delivery.state) {
    case DeliveryState::kWaiting:
      if (!AllParticipants(delivery, [](const AttemptPeer& peer) { return peer.prepared; })) return;
      Step(ref.job.name, ref.publication, delivery, DeliveryState::kPrepared, state_.turns.Now());
      break;
    case DeliveryState::kMoving:
      if (!AllParticipants(delivery, [](const AttemptPeer& peer) { return peer.staged; })) return;
      Commit(ref);
      break;
    case DeliveryState::kInstalling:
      if (!AllParticipants(delivery, [](const AttemptPeer& p) { return p.committed; })) return;
      Committed(ref);
      break;
    case DeliveryState::kFailed:
      if (delivery.ended.has_value()) return;
      if (!AllParticipants(delivery, [](const AttemptPeer& peer) { return peer.aborted; })) return;
      Quiet(ref);
      break;
    case DeliveryState::kPrepared:
    case DeliveryState::kStaged:
    case DeliveryState::kCommitted:
    case DeliveryState::kRetired:
      return;
  }
  events_.OnDeliveryChanged(ref.job, ref.publication);
}

void Deliveries::Commit(const DeliveryRef& ref) {
  const auto now = state_.turns.Now();
  Step(ref.job.name, ref.publication, ref.delivery, DeliveryState::kStaged, now);
  // The decision: taken before anyone is told, and never taken back.
  Step(ref.job.name, ref.publication, ref.delivery, DeliveryState::kInstalling, now);
  SendToAll(ref.delivery, CommitAttempt{*ref.delivery.attempt});
}

void Deliveries::Committed(const DeliveryRef& ref) {
  const auto now = state_.turns.Now();
  Step(ref.job.name, ref.publication, ref.delivery, DeliveryState::kCommitted, now);
  ref.delivery.ended = now;
  ref.delivery.plan.reset();
  ref.job.retirement.NoteCommit(ref.delivery.group);
  state_.attempts.erase(*ref.delivery.attempt);
  for (const auto& [rank, caller] : ref.delivery.accepted) {
    if (Member* member = ref.job.members.Find(caller.session); member != nullptr) {
      member->held_version = ref.publication.version;
      member->memory = MemoryState::kValid;
    }
  }
  AnswerRanks(ref);
}

void Deliveries::Fail(const DeliveryRef& ref, const absl::Status& status) {
  Delivery& delivery = ref.delivery;
  if (delivery.state == DeliveryState::kFailed || CommitDecided(delivery.state)) return;
  delivery.status = Reworded(status, absl::StrCat(Title(ref), ": ", status.message()));
  Step(ref.job.name, ref.publication, delivery, DeliveryState::kFailed, state_.turns.Now());
  const bool counts = !delivery.late && ref.publication.requires_group(delivery.group);
  if (counts && ref.publication.status.ok()) ref.publication.status = delivery.status;
  for (const std::string& node : ref.job.NodesOfGroup(delivery.group)) {
    state_.peers.Send(node, VersionFailed{ref.job.name, delivery.group, ref.publication.version,
                                          delivery.status});
  }
  // Who was not asked yet will not be: nothing moves there.
  std::erase_if(delivery.participants, [](const auto& entry) { return !entry.second.asked; });
  if (delivery.participants.empty()) {
    Quiet(ref);
  } else {
    Abort(ref);
  }
}

void Deliveries::Abort(const DeliveryRef& ref) {
  const AttemptId attempt = *ref.delivery.attempt;
  SendToAll(ref.delivery, AbortAttempt{attempt, ref.delivery.status});
  ref.delivery.deadline = state_.turns.After(state_.options.abort_timeout, [this, attempt] {
    const std::optional<DeliveryRef> late = Find(attempt);
    if (!late.has_value()) return;
    const std::string who = JoinWaits(WaitsOf(late->job, late->delivery, state_.turns.Now()));
    late->delivery.status =
        Reworded(late->delivery.status,
                 absl::StrCat(late->delivery.status.message(), "; memory may still change: ", who));
    spdlog::warn("{}: {}", Title(*late), who);
    Quiet(*late);
    events_.OnDeliveryChanged(late->job, late->publication);
  });
}

void Deliveries::Quiet(const DeliveryRef& ref) {
  Delivery& delivery = ref.delivery;
  delivery.ended = state_.turns.Now();
  delivery.plan.reset();
  if (delivery.deadline.has_value()) state_.turns.Cancel(*delivery.deadline);
  if (delivery.attempt.has_value()) state_.attempts.erase(*delivery.attempt);
  AnswerRanks(ref);
}

void Deliveries::AnswerRanks(const DeliveryRef& ref) {
  const Delivery& delivery = ref.delivery;
  const auto now = state_.turns.Now();
  const auto waited_until = delivery.went.value_or(now);
  for (auto& [rank, caller] : ref.delivery.accepted) {
    if (caller.answered.has_value()) continue;
    caller.answered = now;
    if (ref.job.members.Find(caller.session) == nullptr) continue;
    state_.peers.Send(caller.node,
                      FinishReceive{caller.session, ref.publication.version, delivery.status,
                                    SecondsBetween(caller.since, waited_until),
                                    SecondsBetween(waited_until, now)});
  }
}

void Deliveries::SendToAll(const Delivery& delivery, const FromLeader& message) {
  for (const auto& [node, peer] : delivery.participants) state_.peers.Send(node, message);
}

void Deliveries::DropPeer(const std::string& node) {
  std::vector<AttemptId> attempts;
  for (const auto& [attempt, owner] : state_.attempts) attempts.push_back(attempt);
  std::sort(attempts.begin(), attempts.end());
  for (const AttemptId attempt : attempts) {
    const std::optional<DeliveryRef> ref = Find(attempt);
    if (ref.has_value() && ref->delivery.participants.erase(node) > 0) Advance(*ref);
  }
}

}  // namespace wb
