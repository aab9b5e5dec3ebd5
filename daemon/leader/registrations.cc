#include "daemon/leader/registrations.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "daemon/state/seconds.h"
#include "planner/base/status_macros.h"

namespace wb {

Registrations::Registrations(LeaderState& state, Publications& publications)
    : state_(state),
      publications_(publications),
      doubts_(state),
      vouching_(
          state,
          [this](Peer& peer, RegisterWorker call, const SessionId& /*holder*/) {
            Settle(peer, std::move(call));
          },
          [this](Peer& peer, RegisterWorker call, const SessionId& holder) {
            Replace(peer, std::move(call), holder);
          }) {}

void Registrations::Hello(PeerId id, ClusterHello hello) {
  const auto refuse = [&](const absl::Status& status) {
    spdlog::warn("refused a daemon: {}", status.ToString());
    state_.peers.Close(id, status);
  };
  if (hello.node.empty()) {
    refuse(absl::InvalidArgumentError("hello: node is empty, want the daemon's node name"));
    return;
  }
  if (const Peer* old = state_.peers.FindNode(hello.node); old != nullptr) {
    if (old->hello.incarnation != hello.incarnation) {
      refuse(absl::AlreadyExistsError(
          absl::StrCat("node ", hello.node, " is attached already: incarnation ",
                       old->hello.incarnation.value(), ", host ", old->hello.host, " pid ",
                       old->hello.pid, "; incarnation ", hello.incarnation.value(), ", host ",
                       hello.host, " pid ", hello.pid, " is refused while that stream lives")));
      return;
    }
    const absl::Status replaced =
        absl::UnavailableError(absl::StrCat("daemon ", hello.node, " came back on a new stream"));
    const PeerId old_id = old->id;
    PeerLost(old_id, replaced);
    state_.peers.Close(old_id, replaced);
  }
  spdlog::info("node={} attached incarnation={} host={} pid={}", hello.node,
               hello.incarnation.value(), hello.host, hello.pid);
  const std::string node = hello.node;
  state_.peers.Add(id, std::move(hello));
  state_.peers.Send(node, Welcome{state_.incarnation});
}

void Registrations::Register(Peer& peer, RegisterWorker call) {
  if (!vouching_.Ask(peer, call)) Settle(peer, std::move(call));
}

/// The session that has the newcomer's rank is `silent`, of a daemon that does not answer.
void Registrations::Replace(Peer& peer, RegisterWorker call, const SessionId& silent) {
  LeaderJob* const of_silent = state_.JobOf(silent);
  if (of_silent != nullptr) {
    LeaderJob& job = *of_silent;
    const Member* holder = job.members.Find(silent);
    const std::string why =
        absl::StrCat("replaced by session ", call.session, " on node ", peer.hello.node,
                     ": daemon of node ", holder->node(), " has not vouched for session ",
                     holder->session, " within ", Seconds(state_.options.vouch_timeout));
    spdlog::warn("job={} worker={} {}", job.name, holder->ToString(), why);
    state_.peers.Send(holder->node(), WorkerRegistered{holder->session, absl::AbortedError(why)});
    const std::optional<Member> removed = Remove(job, silent);
    publications_.MembersLost(job, {*removed}, why);
  }
  Settle(peer, std::move(call));
}

void Registrations::Settle(Peer& peer, RegisterWorker call) {
  const SessionId session = call.session;
  const std::string job = call.registration->job;
  const WorkerName name = call.registration->layout.name;
  const std::vector<GroupCommit> commits = std::move(call.commits);
  const absl::Status status = Admit(peer, std::move(call));
  spdlog::log(status.ok() ? spdlog::level::info : spdlog::level::warn,
              "job={} worker={} node={} session={} register: {}", job, name.ToString(),
              peer.hello.node, session, status.ToString());
  if (status.ok()) DisownStranger(state_.jobs.at(job), session);
  // What a worker is in doubt about is told before it is let in, where it is known.
  if (status.ok()) doubts_.OnAdmitted(state_.jobs.at(job), session, commits);
  state_.peers.Send(peer.hello.node, WorkerRegistered{session, status});
  if (status.ok()) publications_.MemberJoined(state_.jobs.at(job), name.group);
}

/// A rank may hold another version under a number that this leader gave out as well: one of an
/// earlier leader's, of which nobody here knew when it did. Its bytes are not this version's, so
/// that nobody may be given them.
void Registrations::DisownStranger(LeaderJob& job, const SessionId& session) {
  Member& member = *job.members.Find(session);
  if (member.role() != Role::kRollout || member.memory != MemoryState::kValid) return;
  const auto publication = job.publications.find(member.held_version);
  if (publication == job.publications.end() || publication->second.inherited) return;
  for (const auto* deliveries : {&publication->second.deliveries, &publication->second.late}) {
    const auto delivery = deliveries->find(member.name().group);
    if (delivery != deliveries->end() && CommitDecided(delivery->second.state)) return;
  }
  spdlog::warn("job={} worker={} holds another version {} than this leader gave out: not used",
               job.name, member.ToString(), member.held_version.value());
  member.memory = MemoryState::kInvalid;
}

absl::Status Registrations::Admit(Peer& peer, RegisterWorker call) {
  const Layout& layout = call.registration->layout;
  if (layout.node != peer.hello.node) {
    return absl::InvalidArgumentError(absl::StrCat(layout.name.ToString(), " says node ",
                                                   layout.node, ", its daemon is of node ",
                                                   peer.hello.node));
  }
  if (const auto taken = state_.job_of_session.find(call.session);
      taken != state_.job_of_session.end()) {
    return absl::AlreadyExistsError(
        absl::StrCat("session ", call.session, " is registered already, in job ", taken->second));
  }
  if (peer.members >= kMaxSessions) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "daemon ", peer.hello.node, " has ", peer.members, " workers, at most ", kMaxSessions));
  }
  const std::string job = call.registration->job;
  const bool known = state_.jobs.contains(job);
  if (!known) {
    WB_RETURN_IF_ERROR(MakeRoom());
  }
  Member member{call.session,       call.incarnation, call.world_size, call.epoch,
                call.held_version,  call.memory,      call.attempt,    std::move(call.registration),
                state_.turns.Now(), peer.hello.host};
  LeaderJob& entry = state_.jobs[job];
  entry.name = job;
  absl::Status status = entry.retirement.NoteJoin(member, state_.options.retire_after);
  if (status.ok()) status = entry.members.Admit(std::move(member));
  if (status.ok()) {
    state_.job_of_session.emplace(call.session, job);
    // Numbers that any leader has given out stay spent, also when who knew of them has left.
    entry.spent = std::max(entry.spent, call.held_version);
    ++peer.members;
  } else if (!known) {
    state_.jobs.erase(job);
  }
  return status;
}

absl::Status Registrations::MakeRoom() {
  if (state_.jobs.size() < kMaxJobs) return absl::OkStatus();
  for (auto it = state_.jobs.begin(); it != state_.jobs.end(); ++it) {
    if (!it->second.members.all().empty()) continue;
    const bool busy =
        std::any_of(state_.attempts.begin(), state_.attempts.end(),
                    [&](const auto& attempt) { return attempt.second.job == it->first; });
    if (busy) continue;
    state_.jobs.erase(it);
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the leader has ", state_.jobs.size(), " jobs, at most ", kMaxJobs));
}

std::optional<Member> Registrations::Remove(LeaderJob& job, const SessionId& session) {
  std::optional<Member> member = job.members.Remove(session);
  if (!member.has_value()) return std::nullopt;
  state_.job_of_session.erase(session);
  if (job.members.all().empty()) {
    job.plans.Forget();
    job.late_plans.Forget();
    job.retirement.Clear();
  }
  const std::string& node = member->node();
  Peer* peer = state_.peers.FindNode(node);
  if (peer == nullptr) return member;
  --peer->members;
  // The daemon drops its plans of a job with the job's last session there; so do we.
  const auto& all = job.members.all();
  const bool last = std::none_of(all.begin(), all.end(),
                                 [&](const auto& entry) { return entry.second.node() == node; });
  if (last) {
    std::erase_if(peer->plans_sent, [&](const auto& sent) { return sent.first.first == job.name; });
  }
  return member;
}

void Registrations::Unregister(Peer& peer, const UnregisterWorker& call) {
  if (vouching_.Forget(call.session)) return;
  LeaderJob* job = state_.JobOf(call.session);
  const Member* member = job == nullptr ? nullptr : job->members.Find(call.session);
  if (member == nullptr || member->node() != peer.hello.node) {
    ++state_.stale_messages;
    return;
  }
  const std::optional<Member> removed = Remove(*job, call.session);
  if (!call.left) job->retirement.NoteLost(job->members, {*removed}, call.reason);
  const bool said = publications_.MembersLost(*job, {*removed}, call.reason);
  spdlog::info("job={} worker={} session={} left{}", job->name, removed->ToString(), call.session,
               said ? "" : ": " + call.reason);
}

void Registrations::PeerLost(PeerId id, const absl::Status& why) {
  const Peer* peer = state_.peers.Find(id);
  if (peer == nullptr) return;
  const std::string node = peer->hello.node;
  spdlog::warn("node={} lost: {}", node, why.ToString());
  state_.peers.Remove(id);
  const std::string reason = absl::StrCat("daemon of node ", node, " lost: ", why.message());
  for (auto& [name, job] : state_.jobs) {
    std::vector<SessionId> sessions;
    for (const auto& [worker, member] : job.members.all()) {
      if (member.node() == node) sessions.push_back(member.session);
    }
    std::vector<Member> lost;
    lost.reserve(sessions.size());
    for (const SessionId& session : sessions) lost.push_back(*Remove(job, session));
    job.retirement.NoteLost(job.members, lost, reason);
    if (!lost.empty()) publications_.MembersLost(job, lost, reason);
  }
  publications_.deliveries().DropPeer(node);
  vouching_.PeerLost(id, node);
}

}  // namespace wb
