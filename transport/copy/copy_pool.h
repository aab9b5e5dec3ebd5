#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "planner/base/byte_block.h"

namespace wb {

/// `bytes` of packed order from one block to another. The caller has checked that both ranges lie
/// inside their blocks, and the blocks inside their memories, which stay mapped until the job is
/// done and do not overlap. The blocks outlive the job: a chunk of many small pieces has thousands
/// of steps, and copying their blocks would cost as much as copying the pieces.
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
/// landed in place; may be empty) into `checksum`. A value: it goes into the pool and comes back,
/// so that its owner can use its memory again.
struct CopyJob {
  std::uint64_t token = 0;
  std::vector<CopyStep> steps;
  std::span<const std::byte> summed;
  std::uint64_t checksum = 0;
};

/// Threads that copy on behalf of one loop, which sleeps on `completion_fd` and never waits inline.
/// Submit, TakeDone and the destructor are called from one thread. Jobs of different threads may
/// finish in any order.
class CopyPool {
 public:
  /// With 0 threads Submit runs the job itself. INVALID_ARGUMENT for less than 0 or more than 256.
  static absl::StatusOr<std::unique_ptr<CopyPool>> Create(int threads);
  /// Returns when no thread copies any more; jobs not yet begun are dropped.
  ~CopyPool();
  CopyPool(const CopyPool&) = delete;
  CopyPool& operator=(const CopyPool&) = delete;

  void Submit(CopyJob job);
  /// Appends the jobs that are done since the last call, and makes `completion_fd` unreadable until
  /// another is.
  void TakeDone(std::vector<CopyJob>& done);
  /// Readable when TakeDone has something.
  int completion_fd() const;
  /// Jobs submitted and not yet taken.
  std::size_t pending() const;

 private:
  CopyPool() = default;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wb
