#include "client/wbctl/contents/same_storage.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace wb {
namespace {

/// The bytes of a piece and what they mean: equal for two tensors, the tensors are tied.
using Storage = std::tuple<std::uint32_t, std::uint64_t, Index, Box, Dtype, Index>;

Storage StorageOf(const Tensor& tensor, const Piece& piece) {
  Index strides = piece.strides;
  for (int d = 0; d < piece.box.ndim(); ++d) {
    // A stride that is never taken says nothing.
    if (piece.box.extent(d) == 1) strides[static_cast<std::size_t>(d)] = 0;
  }
  return {piece.buffer, piece.offset_bytes, strides, piece.box, tensor.dtype, tensor.shape};
}

/// Classes of tensors; the representative is the smallest id, so the first name.
class Classes {
 public:
  explicit Classes(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t First(std::size_t member) {
    while (parent_[member] != member) member = parent_[member] = parent_[parent_[member]];
    return member;
  }
  void Merge(std::size_t a, std::size_t b) {
    a = First(a);
    b = First(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace

std::map<std::string, std::string> SameStorageNames(const Job& job) {
  Classes classes(job.tensors.size());
  for (const Layout& layout : job.layouts) {
    if (layout.role != Role::kTrainer) continue;
    std::map<Storage, std::size_t> holders;
    for (const Piece& piece : layout.pieces) {
      const std::size_t tensor = piece.tensor.value();
      const auto [holder, fresh] = holders.emplace(StorageOf(job.tensors[tensor], piece), tensor);
      if (!fresh) classes.Merge(holder->second, tensor);
    }
  }
  std::map<std::string, std::string> names;
  for (std::size_t tensor = 0; tensor < job.tensors.size(); ++tensor) {
    const std::size_t first = classes.First(tensor);
    if (first != tensor) names.emplace(job.tensors[tensor].name, job.tensors[first].name);
  }
  return names;
}

}  // namespace wb
