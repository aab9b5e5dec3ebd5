#include "daemon/move/execute/make_attempt.h"

#include <algorithm>
#include <set>
#include <utility>

#include <xxhash.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "planner/base/status_macros.h"

namespace wb {
namespace {

/// Builds one attempt; each step adds a part of the work to it.
class AttemptMaker {
 public:
  AttemptMaker(const RegionTable& regions, const Copiers& copiers, const AttemptLimits& limits)
      : regions_(regions),
        copiers_(copiers),
        limits_(limits),
        attempt_(std::make_unique<Attempt>()) {}

  absl::StatusOr<std::unique_ptr<Attempt>> Make(AttemptWork work) &&;

 private:
  absl::Status AddOut(OutStream out);
  absl::Status AddIn(InStream in);
  absl::Status AddLocal(LocalCopy copy);
  absl::Status CheckSizes(const CheckedStream& stream) const;
  absl::StatusOr<const PeerAddress*> PeerOf(const std::string& node) const;
  std::uint32_t InPeerOf(const PeerAddress& peer);
  void AddLanes();
  void UseRegions(const CheckedStream& stream);

  const RegionTable& regions_;
  const Copiers& copiers_;
  const AttemptLimits& limits_;
  std::vector<PeerAddress> peers_;
  std::vector<std::string> out_peers_;  // per stream of `out`
  std::set<RegionId> used_;
  std::unique_ptr<Attempt> attempt_;
};

absl::StatusOr<std::unique_ptr<Attempt>> AttemptMaker::Make(AttemptWork work) && {
  attempt_->id = work.attempt;
  attempt_->version = work.version;
  attempt_->job = std::move(work.job);
  attempt_->group = std::move(work.group);
  peers_ = std::move(work.peers);
  for (OutStream& out : work.out) WB_RETURN_IF_ERROR(AddOut(std::move(out)));
  for (InStream& in : work.in) WB_RETURN_IF_ERROR(AddIn(std::move(in)));
  for (LocalCopy& copy : work.copies) WB_RETURN_IF_ERROR(AddLocal(std::move(copy)));
  AddLanes();
  attempt_->regions.assign(used_.begin(), used_.end());
  return std::move(attempt_);
}

absl::Status AttemptMaker::AddOut(OutStream out) {
  WB_RETURN_IF_ERROR(PeerOf(out.peer_node).status());
  WB_ASSIGN_OR_RETURN(CheckedStream stream,
                      CheckedStream::Create(std::move(out.source), regions_, StreamEnd::kSource));
  WB_RETURN_IF_ERROR(CheckSizes(stream));
  WB_ASSIGN_OR_RETURN(Copier* const copier, copiers_.Of(stream.device()));
  UseRegions(stream);
  attempt_->unsent_chunks += stream.chunks();
  out_peers_.push_back(std::move(out.peer_node));
  attempt_->out.push_back({out.stream_number, std::move(stream), copier,
                           &attempt_->source_times[SourceRank(out.stream_number)]});
  return absl::OkStatus();
}

absl::Status AttemptMaker::AddIn(InStream in) {
  WB_ASSIGN_OR_RETURN(const PeerAddress* peer, PeerOf(in.peer_node));
  WB_ASSIGN_OR_RETURN(
      CheckedStream stream,
      CheckedStream::Create(std::move(in.destination), regions_, StreamEnd::kDestination));
  WB_RETURN_IF_ERROR(CheckSizes(stream));
  const auto index = static_cast<std::uint32_t>(attempt_->in.size());
  if (!attempt_->in_by_number.emplace(in.stream_number, index).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("stream ", in.stream_number, " comes in twice, want once"));
  }
  WB_ASSIGN_OR_RETURN(Copier* const copier, copiers_.Of(stream.device()));
  UseRegions(stream);
  attempt_->awaited_bytes += stream.bytes();
  const std::uint32_t from = InPeerOf(*peer);
  attempt_->in_peers[from].awaited_bytes += stream.bytes();
  std::vector<ChunkState> chunks(stream.chunks(), ChunkState::kAwaited);
  attempt_->in.push_back({in.stream_number, std::move(stream), from, std::move(chunks), copier,
                          &attempt_->destination_times[DestinationRank(in.stream_number)]});
  return absl::OkStatus();
}

absl::Status AttemptMaker::AddLocal(LocalCopy copy) {
  WB_ASSIGN_OR_RETURN(CheckedStream source,
                      CheckedStream::Create(std::move(copy.source), regions_, StreamEnd::kSource));
  WB_ASSIGN_OR_RETURN(
      CheckedStream destination,
      CheckedStream::Create(std::move(copy.destination), regions_, StreamEnd::kDestination));
  bool alike = source.chunks() == destination.chunks();
  for (std::uint32_t chunk = 0; alike && chunk < source.chunks(); ++chunk) {
    alike = source.chunk_bytes(chunk) == destination.chunk_bytes(chunk);
  }
  if (!alike) {
    return absl::InvalidArgumentError(absl::StrCat(
        "local copy of ", source.bytes(), " bytes in ", source.chunks(), " chunks to ",
        destination.bytes(), " bytes in ", destination.chunks(), " chunks, want the same chunks"));
  }
  WB_ASSIGN_OR_RETURN(Copier* const copier,
                      copiers_.Between(source.device(), destination.device()));
  UseRegions(source);
  UseRegions(destination);
  attempt_->uncopied_bytes += source.bytes();
  attempt_->local.push_back({std::move(source), std::move(destination), copier,
                             &attempt_->source_times[SourceRank(copy.stream_number)],
                             &attempt_->destination_times[DestinationRank(copy.stream_number)]});
  return absl::OkStatus();
}

absl::Status AttemptMaker::CheckSizes(const CheckedStream& stream) const {
  for (std::uint32_t chunk = 0; chunk < stream.chunks(); ++chunk) {
    const std::uint64_t bytes = stream.chunk_bytes(chunk);
    const std::uint64_t most = stream.direct(chunk)
                                   ? limits_.max_message_bytes
                                   : std::min(limits_.slot_bytes, limits_.max_message_bytes);
    if (bytes > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("chunk ", chunk, " of ", bytes, " bytes, want at most ", most));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const PeerAddress*> AttemptMaker::PeerOf(const std::string& node) const {
  if (node == limits_.node) {
    return absl::InvalidArgumentError(
        absl::StrCat("stream between ", node, " and itself, want a local copy"));
  }
  for (const PeerAddress& peer : peers_) {
    if (peer.node == node) return &peer;
  }
  return absl::InvalidArgumentError(absl::StrCat("no address of peer ", node));
}

std::uint32_t AttemptMaker::InPeerOf(const PeerAddress& peer) {
  std::vector<InPeer>& all = attempt_->in_peers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].node == peer.node) return static_cast<std::uint32_t>(i);
  }
  InPeer& added = all.emplace_back();
  added.node = peer.node;
  added.incarnation = peer.incarnation;
  return static_cast<std::uint32_t>(all.size() - 1);
}

void AttemptMaker::UseRegions(const CheckedStream& stream) {
  used_.insert(stream.regions().begin(), stream.regions().end());
}

void AttemptMaker::AddLanes() {
  std::vector<std::string> nodes = out_peers_;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  const std::uint64_t place = XXH3_64bits(limits_.node.data(), limits_.node.size());
  if (!nodes.empty()) {
    const auto first = static_cast<std::ptrdiff_t>(place % nodes.size());
    std::rotate(nodes.begin(), nodes.begin() + first, nodes.end());
  }
  for (const std::string& node : nodes) {
    OutLane lane;
    lane.attempt = attempt_.get();
    lane.peer = **PeerOf(node);  // found before
    for (std::uint32_t i = 0; i < attempt_->out.size(); ++i) {
      if (out_peers_[i] == node && attempt_->out[i].stream.chunks() > 0) lane.streams.push_back(i);
    }
    if (lane.streams.empty()) continue;
    lane.turn = place % lane.streams.size();
    attempt_->lanes.push_back(std::move(lane));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Attempt>> MakeAttempt(AttemptWork work,
                                                     const RegionTable& regions,
                                                     const Copiers& copiers,
                                                     const AttemptLimits& limits) {
  return AttemptMaker(regions, copiers, limits).Make(std::move(work));
}

}  // namespace wb
