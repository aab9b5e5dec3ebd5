#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/base/byte_block.h"
#include "transport/copy/byte_runs.h"

namespace wb {

/// `bytes` of packed order from one block to another. The caller has checked that both ranges lie
/// inside their blocks, and the blocks inside their memories, which stay open until the job is done
/// and do not overlap. The blocks outlive the job: a chunk of many small pieces has thousands of
/// steps, and copying their blocks would cost as much as copying the pieces.
struct CopyStep {
  std::span<const std::byte> from;
  const ByteBlock* from_block = nullptr;
  std::uint64_t from_begin = 0;
  std::span<std::byte> to;
  const ByteBlock* to_block = nullptr;
  std::uint64_t to_begin = 0;
  std::uint64_t bytes = 0;
};

/// Runs `steps` in order, then takes the Checksum of `summed` (a gathered slot, say, or bytes that
/// landed in place; may be empty) into `checksum`. What the steps write is used as `copied_for`
/// says. A value: it goes into the copier and comes back, so that its owner can use its memory
/// again.
struct CopyJob {
  std::uint64_t token = 0;
  std::vector<CopyStep> steps;
  CopiedFor copied_for = CopiedFor::kRead;
  std::span<const std::byte> summed;
  std::uint64_t checksum = 0;
};

/// Copies on behalf of one loop, which sleeps on `completion_fd` and never waits inline. A job is
/// done once its bytes are where everyone sees them, never when it is only queued; jobs may finish
/// in any order.
///
/// Which memory it reaches is its implementation's: all reach the host's, a device's copier its
/// device's too. Submit, TakeDone and the destructor are called from one thread.
class Copier {
 public:
  Copier() = default;
  /// Returns when nothing copies any more; jobs not yet begun are dropped.
  virtual ~Copier() = default;
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  virtual void Submit(CopyJob job) = 0;
  /// Appends the jobs that are done since the last call, and makes `completion_fd` unreadable until
  /// another is.
  virtual void TakeDone(std::vector<CopyJob>& done) = 0;
  /// Readable when TakeDone has something.
  virtual int completion_fd() const = 0;
  /// Jobs submitted and not yet taken.
  virtual std::size_t pending() const = 0;
};

/// Does a job here and now, if all of its memory is the host's.
void RunOnHost(CopyJob& job);

}  // namespace wb
