#include "daemon/move/execute/operation.h"

#include <utility>

namespace wb {
namespace {

constexpr int kIndexBits = 24;  // of a tag; above it the generation
constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << kIndexBits) - 1;

}  // namespace

void Submit(Copier& copier, Operation& operation) {
  CopyJob job;
  job.token = operation.tag;
  job.steps = std::move(operation.steps);
  // What is packed is sent from its slot at once; all else is for a worker, later.
  const bool packed = operation.phase == Operation::Phase::kPacking;
  job.copied_for = packed ? CopiedFor::kRead : CopiedFor::kLeft;
  if (operation.has_checksum) job.summed = operation.memory;
  copier.Submit(std::move(job));
}

Operation& OperationTable::New(Operation::Phase phase) {
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(operations_.size());
    operations_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Operation& operation = operations_[index];
  std::vector<CopyStep> steps = std::move(operation.steps);
  steps.clear();
  operation = Operation{};
  operation.steps = std::move(steps);  // their memory is kept
  operation.phase = phase;
  operation.tag = next_generation_++ << kIndexBits | index;
  return operation;
}

Operation* OperationTable::Find(std::uint64_t tag) {
  const std::uint64_t index = tag & kIndexMask;
  if (index >= operations_.size()) return nullptr;
  Operation& operation = operations_[index];
  return operation.phase != Operation::Phase::kFree && operation.tag == tag ? &operation : nullptr;
}

void OperationTable::Time(Operation& operation, BusyTime* first, BusyTime* second) {
  const Timers::Clock::time_point now = now_();
  for (BusyTime* before : operation.busy) {
    if (before != nullptr) before->End(now);
  }
  operation.busy = {first, second};
  for (BusyTime* after : operation.busy) {
    if (after != nullptr) after->Begin(now);
  }
}

void OperationTable::Free(Operation& operation) {
  if (operation.busy[0] != nullptr) Time(operation, nullptr);
  operation.phase = Operation::Phase::kFree;
  free_.push_back(static_cast<std::uint32_t>(operation.tag & kIndexMask));
}

}  // namespace wb
