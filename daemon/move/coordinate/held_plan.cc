#include "daemon/move/coordinate/held_plan.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "planner/base/status_macros.h"
#include "planner/lower/chunk_cuts.h"

namespace wb {

namespace {

constexpr std::size_t kNamedTensors = 3;

std::string FirstFew(const std::vector<std::string>& names) {
  const std::size_t named = std::min(names.size(), kNamedTensors);
  const auto last = names.begin() + static_cast<std::ptrdiff_t>(named);
  std::string first = absl::StrJoin(names.begin(), last, ", ");
  if (names.size() == named) return first;
  return absl::StrCat(first, " and ", names.size() - named, " more");
}

}  // namespace

HeldPlan::HeldPlan(PlanPart part, std::string node, std::uint64_t chunk_bytes)
    : part_(std::move(part)), node_(std::move(node)), chunk_bytes_(chunk_bytes) {
  std::map<std::pair<WorkerIndex, WorkerIndex>, std::size_t> index;
  for (const Move& move : part_.moves) {
    const auto [found, is_new] = index.try_emplace({move.src, move.dst}, pairs_.size());
    if (is_new) pairs_.push_back({move.src, move.dst, {}, {}});
    pairs_[found->second].moves.push_back(move);
    bytes_[worker(move.src).name].sent += move.bytes;
    bytes_[worker(move.dst).name].received += move.bytes;
  }
}

WorkerBytes HeldPlan::BytesOf(const WorkerName& name) const {
  const auto found = bytes_.find(name);
  return found == bytes_.end() ? WorkerBytes{} : found->second;
}

std::string HeldPlan::Describe(const FailedChunk& chunk) const {
  for (const Pair& pair : pairs_) {
    const WorkerName& src = worker(pair.src).name;
    const WorkerName& dst = worker(pair.dst).name;
    if (StreamNumber(src.rank, dst.rank) != chunk.stream) continue;
    const std::vector<std::string> tensors = TensorsOf(pair, chunk.chunk);
    if (tensors.empty()) return "";
    return absl::StrCat(src.ToString(), " to ", dst.ToString(), ", bytes of ", FirstFew(tensors));
  }
  return "";
}

std::vector<std::string> HeldPlan::TensorsOf(const Pair& pair, std::uint32_t chunk) const {
  std::vector<std::uint64_t> move_bytes;
  for (const Move& move : pair.moves) move_bytes.push_back(move.bytes);
  const absl::StatusOr<std::vector<std::uint64_t>> sizes = CutChunks(move_bytes, chunk_bytes_);
  if (!sizes.ok() || chunk >= sizes->size()) return {};
  const std::uint64_t begin =
      std::accumulate(sizes->begin(), sizes->begin() + chunk, std::uint64_t{0});
  const std::uint64_t end = begin + (*sizes)[chunk];
  std::vector<std::string> names;
  std::uint64_t at = 0;
  for (const Move& move : pair.moves) {
    const std::string& name = part_.tensors[move.tensor.value()].name;
    const bool carried = at < end && at + move.bytes > begin;
    if (carried && (names.empty() || names.back() != name)) names.push_back(name);
    at += move.bytes;
  }
  return names;
}

absl::StatusOr<AttemptWork> HeldPlan::Bind(const PrepareAttempt& message,
                                           const LocalWorkers& workers) {
  WB_RETURN_IF_ERROR(CheckWorkers(message, workers));
  WB_RETURN_IF_ERROR(CheckPeers(message));
  AttemptWork work;
  work.attempt = message.attempt;
  work.version = message.version;
  work.job = message.job;
  work.group = message.group;
  work.peers = message.peers;
  Binding binding{workers, {}};
  for (Pair& pair : pairs_) WB_RETURN_IF_ERROR(BindPair(pair, binding, work));
  return work;
}

absl::Status HeldPlan::CheckWorkers(const PrepareAttempt& message,
                                    const LocalWorkers& workers) const {
  std::map<std::string, const LocalWorker*> by_name;
  for (const auto& [name, local] : workers) by_name.emplace(name.ToString(), &local);
  for (const auto& [name, generation] : message.workers) {
    const auto local = by_name.find(name);
    if (local == by_name.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("worker ", name, " has no session on node ", node_));
    }
    if (local->second->incarnation != generation.incarnation) {
      return absl::FailedPreconditionError(
          absl::StrCat("worker ", name, " has incarnation ", local->second->incarnation.value(),
                       ", the attempt speaks of incarnation ", generation.incarnation.value()));
    }
    if (local->second->epoch != generation.epoch) {
      return absl::FailedPreconditionError(
          absl::StrCat("worker ", name, " is registered with epoch ", local->second->epoch.value(),
                       ", the attempt speaks of epoch ", generation.epoch.value()));
    }
  }
  for (const PlanWorker& planned : part_.workers) {
    if (planned.node != node_ || message.workers.contains(planned.name.ToString())) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the plan speaks of worker ", planned.name.ToString(), ", the attempt has no epoch of it"));
  }
  return absl::OkStatus();
}

absl::Status HeldPlan::CheckPeers(const PrepareAttempt& message) const {
  std::set<std::string> addressed;
  for (const PeerAddress& peer : message.peers) addressed.insert(peer.node);
  for (const Pair& pair : pairs_) {
    for (const WorkerIndex end : {pair.src, pair.dst}) {
      const std::string& node = worker(end).node;
      if (node == node_ || addressed.contains(node)) continue;
      return absl::FailedPreconditionError(absl::StrCat("the attempt has no address of node ", node,
                                                        ", where worker ",
                                                        worker(end).name.ToString(), " is"));
    }
  }
  return absl::OkStatus();
}

absl::Status HeldPlan::BindPair(Pair& pair, Binding& binding, AttemptWork& work) {
  const PlanWorker& src = worker(pair.src);
  const PlanWorker& dst = worker(pair.dst);
  const std::uint32_t number = StreamNumber(src.name.rank, dst.name.rank);
  if (src.node != node_) {
    if (dst.node != node_) return absl::OkStatus();  // not ours: the leader cut the part too wide
    WB_ASSIGN_OR_RETURN(BoundStream stream, BindEnd(pair, StreamEnd::kDestination, binding));
    work.in.push_back({number, src.node, std::move(stream)});
    return absl::OkStatus();
  }
  WB_ASSIGN_OR_RETURN(BoundStream source, BindEnd(pair, StreamEnd::kSource, binding));
  if (dst.node != node_) {
    work.out.push_back({number, dst.node, std::move(source)});
    return absl::OkStatus();
  }
  WB_ASSIGN_OR_RETURN(BoundStream destination, BindEnd(pair, StreamEnd::kDestination, binding));
  work.copies.push_back({std::move(source), std::move(destination), number});
  return absl::OkStatus();
}

absl::StatusOr<BoundStream> HeldPlan::BindEnd(Pair& pair, StreamEnd end, Binding& binding) {
  const WorkerName& name = worker(end == StreamEnd::kSource ? pair.src : pair.dst).name;
  const LocalWorker& local = binding.workers.at(name);  // CheckWorkers has found it
  Lowered& kept = pair.ends[end];
  if (kept.session != local.session || kept.epoch != local.epoch) {
    WB_ASSIGN_OR_RETURN(LocalStream stream, LowerEnd(pair, end, name, binding));
    kept = {local.session, local.epoch, std::move(stream)};
    ++lowered_;
  }
  return BoundStream{kept.stream, local.regions, local.offsets};
}

absl::StatusOr<LocalStream> HeldPlan::LowerEnd(const Pair& pair,
                                               StreamEnd end,
                                               const WorkerName& name,
                                               Binding& binding) const {
  auto layout = binding.layouts.find(name);
  if (layout == binding.layouts.end()) {
    WB_ASSIGN_OR_RETURN(Layout bound, BindLayout(*binding.workers.at(name).registration, part_));
    layout = binding.layouts.emplace(name, std::move(bound)).first;
  }
  return LowerStream(pair.moves, part_.tensors, layout->second, end, chunk_bytes_);
}

}  // namespace wb
