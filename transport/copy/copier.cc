#include "transport/copy/copier.h"

#include "transport/copy/checksum.h"
#include "transport/copy/stream_copy.h"

namespace wb {

void RunOnHost(CopyJob& job) {
  for (const CopyStep& step : job.steps) {
    CopyRuns({step.from, *step.from_block, step.from_begin},
             {step.to, *step.to_block, step.to_begin}, step.bytes, job.copied_for);
  }
  if (job.copied_for == CopiedFor::kLeft) EndStreaming();
  job.checksum = Checksum(job.summed);
}

}  // namespace wb
