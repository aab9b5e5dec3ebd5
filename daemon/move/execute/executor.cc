#include "daemon/move/execute/executor.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "daemon/move/execute/make_attempt.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

// Ids with the top bit set are the runner's own (AttemptRunner::AddRegion).
constexpr RegionId kArena{std::uint64_t{1} << 63};

/// For what only a bug of ours can bring about: memory of workers is at stake.
[[noreturn]] void Die(const char* what, std::uint64_t id) {
  spdlog::critical("mover: {}: {}", what, id);
  std::abort();
}

AttemptTimes TimesOf(const Attempt& attempt) {
  AttemptTimes times;
  for (const auto& [rank, worker] : attempt.source_times) times.sources[rank] = worker.Get();
  for (const auto& [rank, worker] : attempt.destination_times) {
    times.destinations[rank] = worker.Get();
  }
  return times;
}

/// The attempt still has to send over the endpoint, which has failed.
void FailIfSending(Attempt& attempt, EndpointId endpoint, const absl::Status& status) {
  for (const OutLane& out : attempt.lanes) {
    if (out.lane == nullptr || out.lane->endpoint != endpoint) continue;
    if (out.streams.empty() && out.in_flight == 0) continue;  // it has done its work
    attempt.Fail(PrefixedWithPeer(status, out.peer.node,
                                  absl::StrCat("connection to ", out.peer.node, " failed")));
  }
}

/// The attempt still awaits bytes from the peer behind the endpoint, which has failed.
void FailIfAwaiting(Attempt& attempt, EndpointId endpoint, const absl::Status& status) {
  for (const InPeer& peer : attempt.in_peers) {
    const auto& known = peer.endpoints;
    if (std::find(known.begin(), known.end(), endpoint) == known.end()) continue;
    if (peer.awaited_bytes == 0) continue;
    attempt.Fail(PrefixedWithPeer(status, peer.node,
                                  absl::StrCat("connection from ", peer.node, " failed with ",
                                               peer.awaited_bytes, " bytes to come")));
  }
}

BytesByPath LandedBytes(const Attempt& attempt) {
  BytesByPath bytes;
  bytes.local = attempt.copied_bytes;
  bytes.shm = attempt.landed_shm_bytes;
  bytes.tcp = attempt.landed_bytes - attempt.landed_shm_bytes;
  return bytes;
}

/// Two separate halves: were what goes out able to take every slot, two movers that fill theirs
/// towards each other could wait for each other's free slots forever.
struct ArenaHalves {
  SlotPool out;
  SlotPool in;
};

absl::StatusOr<ArenaHalves> MakeArena(RegionTable& regions, const ExecutorOptions& options) {
  const std::uint64_t half = options.arena_bytes / 2;
  if (options.chunk_bytes == 0 || half < options.chunk_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("arena of ", options.arena_bytes,
                                                   " bytes for chunks of ", options.chunk_bytes,
                                                   ", want room for at least two"));
  }
  WB_ASSIGN_OR_RETURN(Region arena, Region::AllocateArena(2 * half));
  WB_RETURN_IF_ERROR(regions.Add(kArena, std::move(arena)));
  const MemoryRef out{kArena, 0, half};
  const MemoryRef in{kArena, half, half};
  WB_ASSIGN_OR_RETURN(const std::span<std::byte> out_memory, regions.ResolveWritable(out));
  WB_ASSIGN_OR_RETURN(const std::span<std::byte> in_memory, regions.ResolveWritable(in));
  return ArenaHalves{SlotPool(out, out_memory, options.chunk_bytes),
                     SlotPool(in, in_memory, options.chunk_bytes)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(const Parts& parts,
                                                           const ExecutorOptions& options) {
  if (options.chunks_in_flight < 1 || options.local_copies_at_once < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunks in flight ", options.chunks_in_flight, ", local copies at once ",
                     options.local_copies_at_once, ", want at least 1"));
  }
  WB_ASSIGN_OR_RETURN(ArenaHalves arena, MakeArena(parts.regions, options));
  std::unique_ptr<Executor> executor(
      new Executor(parts, options, std::move(arena.out), std::move(arena.in)));
  parts.fabric.SetReceiver([raw = executor.get()](const Announcement& announcement) {
    return raw->receiver_.OnAnnouncement(raw->attempts_, announcement);
  });
  return executor;
}

Executor::Executor(const Parts& parts, const ExecutorOptions& options, SlotPool out, SlotPool in)
    : fabric_(parts.fabric),
      regions_(parts.regions),
      copiers_(parts.copiers),
      events_(parts.events),
      options_(options),
      uses_(regions_),
      out_slots_(std::move(out)),
      in_slots_(std::move(in)),
      operations_(options.now),
      lanes_(fabric_, options.now),
      sender_(fabric_,
              operations_,
              out_slots_,
              {options.incarnation, options.chunks_in_flight, options.verify}),
      receiver_(fabric_, operations_, in_slots_, options.verify),
      local_(operations_, options.local_copies_at_once),
      snapshots_(
          {regions_, uses_, copiers_, events_}, options.chunk_bytes, options.local_copies_at_once) {
}

Executor::~Executor() {
  fabric_.SetReceiver(nullptr);
}

void Executor::AddRegion(RegionId id, Region region) {
  if (const absl::Status status = regions_.Add(id, std::move(region)); !status.ok()) {
    spdlog::error("region={} cannot be added: {}", id.value(), status.ToString());
  }
}

void Executor::RemoveRegion(RegionId id, std::function<void()> removed) {
  uses_.Remove(id, std::move(removed));
}

void Executor::Prepare(AttemptWork work) {
  const AttemptId id = work.attempt;
  if (const auto known = attempts_.find(id); known != attempts_.end()) {
    RepeatAnswer(*known->second);
    return;
  }
  const Version version = work.version;
  const AttemptLimits limits{options_.node, options_.chunk_bytes,
                             fabric_.traits().max_message_bytes};
  absl::StatusOr<std::unique_ptr<Attempt>> made =
      MakeAttempt(std::move(work), regions_, copiers_, limits);
  if (!made.ok()) {
    auto refused = std::make_unique<Attempt>();
    refused->id = id;
    refused->version = version;
    refused->Fail(made.status());
    made = std::move(refused);
  }
  Attempt& attempt = **made;
  attempts_.emplace(id, *std::move(made));
  if (attempt.failure.ok()) {
    if (absl::Status admitted = Admit(attempt); !admitted.ok()) attempt.Fail(std::move(admitted));
  }
  PumpAndReview();
}

void Executor::RepeatAnswer(const Attempt& attempt) {
  spdlog::info("attempt={:016x} prepared again while {}", attempt.id.value(),
               ToString(attempt.state));
  switch (attempt.state) {
    case AttemptState::kPreparing:
    case AttemptState::kFinishing:
    case AttemptState::kAborting:
      return;  // the answer, or the end, is still to come
    case AttemptState::kPrepared:
    case AttemptState::kMoving:
    case AttemptState::kStaged:
      events_.OnPrepared(attempt.id);
      return;
    case AttemptState::kFailed:
      events_.OnFailed(attempt.id, attempt.failure);
      return;
  }
}

absl::Status Executor::Admit(Attempt& attempt) {
  for (InPeer& peer : attempt.in_peers) peer.counters = &lanes_.CountersOf(peer.node);
  std::vector<RegionId> regions = std::exchange(attempt.regions, {});
  WB_RETURN_IF_ERROR(uses_.Acquire(regions));
  attempt.regions = std::move(regions);
  for (OutLane& out : attempt.lanes) {
    absl::StatusOr<Lane*> lane = lanes_.Acquire(out.peer, attempt.job, attempt.group);
    if (!lane.ok()) {
      return Prefixed(lane.status(), absl::StrCat("connecting to ", out.peer.node));
    }
    out.lane = *lane;
    if (!out.lane->open) sender_.Greet(out);
  }
  return absl::OkStatus();
}

void Executor::Go(AttemptId id) {
  const auto found = attempts_.find(id);
  if (found == attempts_.end() || found->second->state != AttemptState::kPrepared) {
    // It failed or was aborted meanwhile, and said so; or Go came twice.
    spdlog::warn("attempt={:016x} go for an attempt that is {}", id.value(),
                 found == attempts_.end() ? "unknown" : ToString(found->second->state));
    return;
  }
  Attempt& attempt = *found->second;
  Step(attempt, AttemptState::kMoving);
  receiver_.Start(attempt);
  sender_.Start(attempt);
  local_.Start(attempt);
  PumpAndReview();
}

void Executor::Abort(AttemptId id) {
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) {
    events_.OnEnded(id);
    return;
  }
  if (found->second->state == AttemptState::kAborting) return;  // OnEnded follows
  Cut(*found->second);
  PumpAndReview();
}

void Executor::Finish(AttemptId id) {
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) {
    events_.OnEnded(id);
    return;
  }
  Attempt& attempt = *found->second;
  if (attempt.state == AttemptState::kFinishing || attempt.state == AttemptState::kAborting) return;
  if (attempt.state == AttemptState::kStaged) {
    Step(attempt, AttemptState::kFinishing);
  } else {
    // Not done here: the only way to be sure that nothing moves any more.
    Cut(attempt);
  }
  PumpAndReview();
}

void Executor::AbortAll() {
  for (const auto& [id, attempt] : attempts_) {
    if (attempt->state != AttemptState::kAborting) Cut(*attempt);
  }
  PumpAndReview();
  snapshots_.DropAll();
}

void Executor::FailAll(const absl::Status& status) {
  for (const auto& [id, attempt] : attempts_) attempt->Fail(status);
  PumpAndReview();
}

/// Stops all that the attempt does; what is in flight ends with errors.
void Executor::Cut(Attempt& attempt) {
  Step(attempt, AttemptState::kAborting);
  sender_.Stop(attempt);
  receiver_.Stop(attempt, absl::CancelledError("the attempt was aborted"));
  for (const OutLane& out : attempt.lanes) {
    if (out.lane != nullptr) lanes_.Cut(out.lane);
  }
  for (const InPeer& peer : attempt.in_peers) {
    for (const EndpointId endpoint : peer.endpoints) fabric_.CloseForced(endpoint);
  }
}

void Executor::Step(Attempt& attempt, AttemptState to) {
  if (!CanStep(attempt.state, to)) Die("an attempt took a step that is none", attempt.id.value());
  // The coordinator tells the same step to the log's usual reader.
  spdlog::debug("attempt={:016x} version={} group={} {}->{} landed={} copied={} operations={}",
                attempt.id.value(), attempt.version.value(), attempt.group, ToString(attempt.state),
                ToString(to), attempt.landed_bytes, attempt.copied_bytes, attempt.operations);
  attempt.state = to;
}

bool Executor::Progress() {
  fabric_events_.clear();
  bool any = fabric_.Progress(fabric_events_);
  for (const FabricEvent& event : fabric_events_) OnEvent(event);
  copied_.clear();
  copiers_.TakeDone(copied_);
  for (CopyJob& job : copied_) OnCopied(job);
  any = any || !copied_.empty();
  if (any) PumpAndReview();
  return any;
}

void Executor::OnEvent(const FabricEvent& event) {
  if (event.kind == FabricEvent::Kind::kEndpointFailed) {
    OnEndpointFailed(event.endpoint, event.status);
    return;
  }
  Operation* operation = operations_.Find(event.tag);
  if (operation == nullptr) Die("the fabric told of an operation that is not", event.tag);
  switch (operation->phase) {
    case Operation::Phase::kHelloOut:
    case Operation::Phase::kSending:
      sender_.OnSent(*operation, event.status);
      return;
    case Operation::Phase::kReceiving:
      receiver_.OnReceived(*operation, event.status);
      return;
    case Operation::Phase::kHelloIn:
      operations_.Free(*operation);
      return;
    case Operation::Phase::kFree:
    case Operation::Phase::kPacking:
    case Operation::Phase::kUnpacking:
    case Operation::Phase::kCopying:
      std::abort();  // not with the fabric
  }
}

void Executor::OnCopied(CopyJob& job) {
  if (SnapshotCopier::Owns(job)) {
    snapshots_.OnCopied(std::move(job));
    return;
  }
  Operation* operation = operations_.Find(job.token);
  if (operation == nullptr) Die("a copier told of an operation that is not", job.token);
  operation->steps = std::move(job.steps);
  switch (operation->phase) {
    case Operation::Phase::kPacking:
      sender_.OnPacked(*operation, job.checksum);
      return;
    case Operation::Phase::kUnpacking:
      receiver_.OnUnpacked(*operation, job.checksum);
      return;
    case Operation::Phase::kCopying:
      local_.OnCopied(*operation);
      return;
    case Operation::Phase::kFree:
    case Operation::Phase::kHelloOut:
    case Operation::Phase::kHelloIn:
    case Operation::Phase::kSending:
    case Operation::Phase::kReceiving:
      std::abort();  // not with a copier
  }
}

void Executor::OnEndpointFailed(EndpointId endpoint, const absl::Status& status) {
  lanes_.OnEndpointFailed(endpoint, status);
  receiver_.Forget(endpoint);
  for (const auto& [id, attempt] : attempts_) {
    FailIfSending(*attempt, endpoint, status);
    FailIfAwaiting(*attempt, endpoint, status);
  }
}

void Executor::PumpAndReview() {
  receiver_.Pump();
  sender_.Pump();
  for (auto it = attempts_.begin(); it != attempts_.end();) {
    const auto current = it++;
    if (Review(*current->second)) attempts_.erase(current);
  }
}

bool Executor::Review(Attempt& attempt) {
  if (!attempt.failure.ok() && CanStep(attempt.state, AttemptState::kFailed)) {
    Step(attempt, AttemptState::kFailed);
    spdlog::warn("attempt={:016x} failed: {}", attempt.id.value(), attempt.failure.ToString());
    sender_.Stop(attempt);
    receiver_.Stop(attempt, absl::CancelledError("the attempt has failed at the receiver"));
    events_.OnFailed(attempt.id, attempt.failure);
  }
  if (attempt.state == AttemptState::kPreparing && attempt.hellos == 0) {
    Step(attempt, AttemptState::kPrepared);
    events_.OnPrepared(attempt.id);
  }
  if (attempt.state == AttemptState::kMoving && attempt.lands_nothing_more()) {
    Step(attempt, AttemptState::kStaged);
    events_.OnMeasured(attempt.id, TimesOf(attempt));
    events_.OnStaged(attempt.id, LandedBytes(attempt));
  }
  const bool ending =
      attempt.state == AttemptState::kFinishing || attempt.state == AttemptState::kAborting;
  if (!ending || attempt.operations > 0) return false;
  End(attempt);
  return true;
}

void Executor::End(Attempt& attempt) {
  sender_.Stop(attempt);
  if (attempt.state == AttemptState::kFinishing && !attempt.failure.ok()) {
    spdlog::warn("attempt={} finished although: {}", attempt.id.value(),
                 attempt.failure.ToString());
  }
  for (const OutLane& out : attempt.lanes) {
    if (out.lane == nullptr) continue;
    if (attempt.state == AttemptState::kFinishing) {
      lanes_.Release(out.lane);
    } else {
      lanes_.Drop(out.lane);
    }
  }
  uses_.Release(attempt.regions);
  spdlog::debug("attempt={:016x} version={} group={} {}->ended", attempt.id.value(),
                attempt.version.value(), attempt.group, ToString(attempt.state));
  if (attempt.state == AttemptState::kFinishing) {
    events_.OnMeasured(attempt.id, TimesOf(attempt));
  }
  events_.OnEnded(attempt.id);
}

MoverCounters Executor::Counters() const {
  return {lanes_.Counters(), receiver_.refusals().refused, receiver_.refusals().late,
          regions_.size() - 1};  // one is the arena
}

}  // namespace wb
