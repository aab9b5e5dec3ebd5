#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace wb {

/// One dimension of a ByteBlock. `stride_bytes` is the distance between neighbours.
struct ByteDim {
  std::uint64_t extent = 0;
  std::uint64_t stride_bytes = 0;
  friend bool operator==(const ByteDim&, const ByteDim&) = default;
};

/// Bytes at regular distances inside one buffer: `run_bytes` contiguous bytes, repeated over
/// `dims` (outermost first). Its *packed* order is row-major over `dims`, then along the run;
/// a plan's slice has the same packed order on both sides, whatever the local memory looks like.
/// Plain value; `offset` is in bytes from the start of the buffer. An empty `dims` is one run.
struct ByteBlock {
  std::uint64_t offset = 0;
  std::uint64_t run_bytes = 0;
  absl::InlinedVector<ByteDim, 4> dims;

  /// Bytes in packed order: run_bytes times all extents.
  std::uint64_t bytes() const {
    std::uint64_t total = run_bytes;
    for (const ByteDim& dim : dims) total *= dim.extent;
    return total;
  }
  bool contiguous() const { return dims.empty(); }
  friend bool operator==(const ByteBlock&, const ByteBlock&) = default;
};

}  // namespace wb
