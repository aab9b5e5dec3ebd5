#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/model/box.h"
#include "planner/model/dtype.h"
#include "planner/model/ids.h"
#include "planner/model/shared_list.h"

namespace wb {

/// Limits at the door; an input beyond one is refused with the number (kind "limit").
inline constexpr std::size_t kMaxNameBytes = 1024;
inline constexpr std::size_t kMaxTensors = 4'000'000;
inline constexpr std::size_t kMaxPiecesPerWorker = 8'000'000;
inline constexpr std::size_t kMaxWorkers = 65'536;

/// A global tensor, named and shaped as in the Hugging Face checkpoint.
struct Tensor {
  std::string name;
  Dtype dtype = Dtype::kBf16;
  Index shape;  // elements; every extent >= 0
  /// Owners of overlapping boxes promise equal bytes ("overlap": "IDENTICAL").
  bool overlap_identical = false;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// Where a box of a tensor lies in a worker's local memory.
/// Element `lo + i` of the tensor is at byte
///   offset_bytes + sum_d i[d] * strides[d] * element size
/// of buffer `buffer`. Invariant (made by the door): the box lies inside the tensor, all
/// elements lie inside the buffer, strides are >= 1 where the extent is > 1.
struct Piece {
  TensorId tensor;  // aliases already resolved
  Box box;
  std::uint32_t buffer = 0;        // index into Layout::buffers
  std::uint32_t param = 0;         // index into Layout::params
  std::uint64_t offset_bytes = 0;  // of the box's first element, from the start of the buffer
  Index strides;                   // elements, one per dimension of the *tensor*
  // As declared, kept for the way back to the wire: the first local index, and for each dimension
  // of the tensor the local dimension that carries it.
  Index at;
  Index axes;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// A local tensor of a worker, as its framework calls it.
struct Param {
  std::string name;
  Dtype dtype = Dtype::kBf16;      // its tensors'; UINT8 where neither they nor the worker tell
  Index shape;                     // local shape, elements
  Index strides;                   // elements, one per local dimension; row-major if not given
  std::uint32_t buffer = 0;        // index into Layout::buffers
  std::uint64_t offset_bytes = 0;  // of element 0, from the start of the buffer
  bool local = false;              // never written and without pieces
  friend bool operator==(const Param&, const Param&) = default;
};

/// A stretch of a worker's memory; at least `bytes` long. A param without "buffer" has its own,
/// of its name.
struct Buffer {
  std::string name;
  std::uint64_t bytes = 0;
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// All shards of one worker. Immutable value made by the door (proto/convert) or generated from a
/// deployment; workers that hold the same may share their tables.
struct Layout {
  Role role = Role::kTrainer;
  WorkerName name;
  std::string node;
  SharedList<Buffer> buffers;
  SharedList<Param> params;
  SharedList<Piece> pieces;  // ordered by (tensor, box), non-empty boxes only
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// All layouts of one training run over one table of tensors.
///
/// Invariant (made by the door): tensors are ordered by name and unique; layouts are ordered by
/// (group, rank), trainers and rollouts mixed; one trainer group; ranks of a group are 0..n-1.
/// Tensors that are aliases of another are not in the table: pieces name the target.
struct Job {
  std::string name;
  std::vector<Tensor> tensors;  // TensorId is the index
  std::vector<Layout> layouts;  // WorkerIndex is the index
  friend bool operator==(const Job&, const Job&) = default;

  const Tensor& tensor(TensorId id) const { return tensors[id.value()]; }
  const Layout& layout(WorkerIndex index) const { return layouts[index.value()]; }
};

}  // namespace wb
