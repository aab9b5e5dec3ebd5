#include "daemon/move/execute/local_copier.h"

namespace wb {

void LocalCopier::Start(Attempt& attempt) {
  for (int i = 0; i < at_once_; ++i) SubmitNext(attempt);
}

void LocalCopier::SubmitNext(Attempt& attempt) {
  if (!attempt.may_land()) return;
  while (attempt.local_turn < attempt.local.size()) {
    LocalMove& move = attempt.local[attempt.local_turn];
    if (move.next == move.source.chunks()) {
      ++attempt.local_turn;
      continue;
    }
    Operation& operation = operations_.New(Operation::Phase::kCopying);
    operation.attempt = &attempt;
    operation.stream = attempt.local_turn;
    operation.chunk = move.next++;
    move.destination.CopyFrom(move.source, operation.chunk, operation.steps);
    operations_.Time(operation, &move.source_times->copy, &move.destination_times->copy);
    ++attempt.operations;
    Submit(*move.copier, operation);
    return;
  }
}

void LocalCopier::OnCopied(Operation& operation) {
  Attempt& attempt = *operation.attempt;
  const std::uint64_t bytes = attempt.local[operation.stream].source.chunk_bytes(operation.chunk);
  attempt.uncopied_bytes -= bytes;
  attempt.copied_bytes += bytes;
  --attempt.operations;
  operations_.Free(operation);
  SubmitNext(attempt);
}

}  // namespace wb
