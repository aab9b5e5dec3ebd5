#include "daemon/move/execute/snapshot_copier.h"

#include <algorithm>
#include <utility>

#include "planner/base/status_macros.h"

namespace wb {

void SnapshotCopier::Take(const SnapshotWork& work) {
  Work& admitted = works_.emplace_back();
  admitted.id = work.id;
  admitted.status = Admit(work, admitted);
  RunFirst();
}

absl::Status SnapshotCopier::Admit(const SnapshotWork& work, Work& admitted) const {
  std::vector<RegionId> regions;
  for (const SnapshotPart& part : work.parts) {
    WB_RETURN_IF_ERROR(Add(part, admitted.parts.emplace_back()));
    regions.insert(regions.end(), {part.from.region, part.to});
  }
  WB_RETURN_IF_ERROR(parts_.uses.Acquire(regions));
  admitted.regions = std::move(regions);
  return absl::OkStatus();
}

absl::Status SnapshotCopier::Add(const SnapshotPart& part, Part& added) const {
  const std::uint64_t bytes = part.from.bytes;
  WB_ASSIGN_OR_RETURN(const CopierMemory from,
                      parts_.regions.ResolveForCopier(part.from, RegionAccess::kReadOnly));
  WB_ASSIGN_OR_RETURN(const CopierMemory to, parts_.regions.ResolveForCopier(
                                                 {part.to, 0, bytes}, RegionAccess::kReadWrite));
  WB_ASSIGN_OR_RETURN(added.copier, parts_.copiers.Between(from.device, to.device));
  added.block.run_bytes = bytes;
  added.from = from.bytes;
  added.to = to.bytes;
  return absl::OkStatus();
}

void SnapshotCopier::Drop(SnapshotId id) {
  const auto work = std::find_if(works_.begin(), works_.end(),
                                 [id](const Work& candidate) { return candidate.id == id; });
  if (work == works_.end()) return;  // it has ended, and was told
  Drop(work);
  RunFirst();
}

void SnapshotCopier::DropAll() {
  for (auto work = works_.begin(); work != works_.end();) Drop(work++);
  RunFirst();
}

void SnapshotCopier::Drop(Works::iterator work) {
  work->status.Update(absl::CancelledError("the snapshot was dropped"));
  if (!work->begun) End(work);
}

void SnapshotCopier::OnCopied(CopyJob job) {
  Work& work = works_.front();
  --work.pending;
  SubmitNext(work, std::move(job));
  RunFirst();
}

/// Gives a copier the next chunk, in a job that comes anew.
void SnapshotCopier::SubmitNext(Work& work, CopyJob job) const {
  if (!work.status.ok()) return;
  const auto left = [](const Part& part) { return part.next < part.block.run_bytes; };
  work.part = std::find_if(work.part, work.parts.end(), left);
  if (work.part == work.parts.end()) return;
  Part& part = *work.part;
  const std::uint64_t bytes = std::min(chunk_bytes_, part.block.run_bytes - part.next);
  job.token = kToken;
  job.steps.assign(1, {part.from, &part.block, part.next, part.to, &part.block, part.next, bytes});
  part.next += bytes;
  ++work.pending;
  part.copier->Submit(std::move(job));
}

/// Begins the first work, or ends it where it has nothing left, and so on.
void SnapshotCopier::RunFirst() {
  while (!works_.empty()) {
    Work& first = works_.front();
    if (!first.begun) {
      first.begun = true;
      first.part = first.parts.begin();
      for (int i = 0; i < at_once_; ++i) SubmitNext(first, {});
    }
    if (first.pending > 0) return;
    End(works_.begin());
  }
}

void SnapshotCopier::End(Works::iterator work) {
  parts_.uses.Release(work->regions);
  parts_.events.OnSnapshot(work->id, work->status);
  works_.erase(work);
}

}  // namespace wb
