#include "proto/door/storage_door.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include "proto/door/box_overlaps.h"
#include "proto/door/names.h"
#include "proto/door/storage_block.h"

namespace wb {
namespace {

// The piece's place in its param, as a box of the param's index space.
Box LocalBox(const Piece& piece) {
  Index hi = piece.at;
  for (std::int64_t& end : hi) ++end;
  for (std::size_t dim = 0; dim < piece.axes.size(); ++dim) {
    const auto axis = static_cast<std::size_t>(piece.axes[dim]);
    hi[axis] = piece.at[axis] + piece.box.extent(static_cast<int>(dim));
  }
  // Not empty and inside the param's shape, whose elements fit: the piece door has seen to it.
  return *Box::Create(piece.at, std::move(hi));
}

struct Run {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  const StorageBlock* block = nullptr;
};

class StorageDoor {
 public:
  StorageDoor(const Layout& layout,
              const std::vector<Tensor>& tensors,
              const WorkerLabel& worker,
              Reasons& reasons)
      : layout_(layout), tensors_(tensors), worker_(worker), reasons_(reasons) {}

  void Check() {
    if (!CheckParams() || !CheckBuffers()) {
      reasons_.Add(
          "limit", {.worker = worker_.name},
          absl::StrCat(worker_.label, ": its pieces interleave in too intricate a way: ",
                       "want their storage told apart within ", kMaxStorageSteps, " steps"));
    }
  }

 private:
  // Params by their local indices, whatever their strides. False: the budget ended.
  bool CheckParams() {
    // Pieces of a param are neighbours until the door orders them by tensor.
    for (std::size_t begin = 0; begin < layout_.pieces.size();) {
      const std::uint32_t param = layout_.pieces[begin].param;
      std::vector<Box> boxes;
      std::size_t end = begin;
      for (; end < layout_.pieces.size() && layout_.pieces[end].param == param; ++end) {
        boxes.push_back(LocalBox(layout_.pieces[end]));
      }
      const bool done = FindOverlaps(boxes, budget_, [&](std::size_t a, std::size_t b) {
        RefuseTwice(layout_.pieces[begin + a], layout_.pieces[begin + b]);
        return !reasons_.full();
      });
      if (!done) return false;
      begin = end;
    }
    return true;
  }

  // Buffers by bytes, across params. False: the budget ended.
  bool CheckBuffers() {
    const std::vector<StorageBlock> blocks = Blocks();
    for (std::size_t begin = 0; begin < blocks.size();) {
      std::size_t end = begin;
      bool mixed = false;  // blocks of several params
      std::uint64_t reach = blocks[begin].end;
      while (++end < blocks.size() && blocks[end].buffer == blocks[begin].buffer &&
             blocks[end].begin < reach) {
        mixed = mixed || blocks[end].param != blocks[begin].param;
        reach = std::max(reach, blocks[end].end);
      }
      if (mixed && !Walk(std::span(blocks).subspan(begin, end - begin))) return false;
      begin = end;
    }
    return true;
  }

  // In order of their first bytes, with one block of those that hold the same box of the same
  // tensor in the same place.
  std::vector<StorageBlock> Blocks() const {
    std::vector<StorageBlock> blocks;
    blocks.reserve(layout_.pieces.size());
    for (const Piece& piece : layout_.pieces) {
      blocks.push_back(StorageBlock::OfPiece(layout_, piece));
    }
    for (std::size_t i = 0; i < layout_.params.size(); ++i) {
      const Param& param = layout_.params[i];
      const bool empty = std::count(param.shape.begin(), param.shape.end(), 0) > 0;
      if (!param.local || empty) continue;
      blocks.push_back(StorageBlock::OfLocalParam(layout_, static_cast<std::uint32_t>(i)));
    }
    std::stable_sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) {
      return std::tie(a.buffer, a.begin, a.end) < std::tie(b.buffer, b.begin, b.end);
    });
    const auto tied = [](const StorageBlock& a, const StorageBlock& b) {
      return a.piece != nullptr && b.piece != nullptr && a.buffer == b.buffer &&
             a.begin == b.begin && a.end == b.end && a.piece->tensor == b.piece->tensor &&
             a.piece->box == b.piece->box && SameDims(a, b);
    };
    blocks.erase(std::unique(blocks.begin(), blocks.end(), tied), blocks.end());
    return blocks;
  }

  static bool SameDims(const StorageBlock& a, const StorageBlock& b) {
    return a.element_bytes == b.element_bytes &&
           std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
                      [](const StorageBlock::Dim& x, const StorageBlock::Dim& y) {
                        return x.stride_bytes == y.stride_bytes && x.tensor_dim == y.tensor_dim;
                      });
  }

  // Merges the runs of all blocks in order of their addresses, and judges those that meet.
  bool Walk(std::span<const StorageBlock> blocks) {
    using Entry = std::pair<std::uint64_t, std::size_t>;  // first byte of a run, cursor
    std::vector<RunCursor> cursors;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> next;
    for (const StorageBlock& block : blocks) {
      next.emplace(block.begin, cursors.size());
      cursors.emplace_back(block);
    }
    std::vector<Run> open;  // runs that may reach what comes
    while (!next.empty() && !reasons_.full()) {
      const std::size_t index = next.top().second;
      next.pop();
      RunCursor& cursor = cursors[index];
      const Run run{cursor.begin(), cursor.end(), &cursor.block()};
      std::erase_if(open, [&](const Run& before) { return before.end <= run.begin; });
      if (!budget_.Spend(1 + open.size())) return false;
      for (const Run& before : open) {
        const Run shared{run.begin, std::min(before.end, run.end), nullptr};
        if (!Judge(*before.block, *run.block, shared)) return false;
      }
      open.push_back(run);
      if (cursor.Next()) next.emplace(cursor.begin(), index);
    }
    return true;
  }

  // Two blocks share the bytes of `shared`. False: the budget ended.
  bool Judge(const StorageBlock& a, const StorageBlock& b, const Run& shared) {
    if (a.param == b.param) return true;                        // told by CheckParams
    if (a.piece == nullptr && b.piece == nullptr) return true;  // neither is written
    const std::pair<std::uint32_t, std::uint32_t> params = std::minmax(a.param, b.param);
    if (told_.contains(params)) return true;
    if (a.piece != nullptr && b.piece != nullptr) {
      if (ShareElements(a, b)) return true;
      const std::optional<bool> same = SameElements(a, b, shared);
      if (!same.has_value()) return false;
      if (*same) return true;
    }
    told_.insert(params);
    RefuseShared(a, b, shared);
    return true;
  }

  // Element by element; nothing when the budget ended.
  std::optional<bool> SameElements(const StorageBlock& a,
                                   const StorageBlock& b,
                                   const Run& shared) {
    if (a.piece->tensor != b.piece->tensor) return false;
    for (std::uint64_t at = shared.begin; at < shared.end;) {
      if (!budget_.Spend(1)) return std::nullopt;
      const Index element = ElementAt(a, at);
      if (element != ElementAt(b, at)) return false;
      at += a.element_bytes - static_cast<std::uint64_t>(element.back());
    }
    return true;
  }

  void RefuseTwice(const Piece& a, const Piece& b) {
    const std::string& tensor = tensors_[a.tensor.value()].name;
    reasons_.Add("overlap", {.tensor = tensor, .worker = worker_.name},
                 absl::StrCat(worker_.label, ", param ", layout_.params[a.param].name, ": box ",
                              a.box.ToString(), " of tensor ", tensor, " and box ",
                              b.box.ToString(), " of tensor ", tensors_[b.tensor.value()].name,
                              " cover a common element of it, want each element covered once"));
  }

  void RefuseShared(const StorageBlock& a, const StorageBlock& b, const Run& shared) {
    const StorageBlock& written = a.piece != nullptr ? a : b;
    reasons_.Add(
        "overlap", {.tensor = tensors_[written.piece->tensor.value()].name, .worker = worker_.name},
        absl::StrCat(worker_.label, ": params ", Held(a), " and ", Held(b), " share bytes ",
                     shared.begin, "..", shared.end, " of buffer ", layout_.buffers[a.buffer].name,
                     ", want elements of a destination apart"));
  }

  // "lm_head (tensor embed)", "rope (local)".
  std::string Held(const StorageBlock& block) const {
    const std::string& param = layout_.params[block.param].name;
    if (block.piece == nullptr) return absl::StrCat(param, " (local)");
    return absl::StrCat(param, " (tensor ", tensors_[block.piece->tensor.value()].name, ")");
  }

  const Layout& layout_;
  const std::vector<Tensor>& tensors_;
  const WorkerLabel& worker_;
  Reasons& reasons_;
  StepBudget budget_{kMaxStorageSteps};
  absl::flat_hash_set<std::pair<std::uint32_t, std::uint32_t>> told_;
};

}  // namespace

void CheckStorage(const Layout& layout,
                  const std::vector<Tensor>& tensors,
                  const WorkerLabel& worker,
                  Reasons& reasons) {
  if (layout.role == Role::kRollout) StorageDoor(layout, tensors, worker, reasons).Check();
}

}  // namespace wb
