#include "planner/frameworks/layout_draft.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace wb {
namespace {

Index RowMajor(const Index& shape) {
  Index strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * std::max<std::int64_t>(shape[d], 1);
  }
  return strides;
}

std::uint64_t BytesOf(const Index& shape, Dtype dtype) {
  std::int64_t bytes = DtypeBytes(dtype);
  for (const std::int64_t extent : shape) bytes *= extent;
  return static_cast<std::uint64_t>(bytes);
}

bool PieceBefore(const Piece& a, const Piece& b) {
  return std::tie(a.tensor, a.box, a.param, a.offset_bytes) <
         std::tie(b.tensor, b.box, b.param, b.offset_bytes);
}

}  // namespace

Cut EqualPart(
    TensorId tensor, std::size_t dim, std::int64_t extent, std::int64_t parts, std::int64_t index) {
  const std::int64_t each = extent / parts;
  return {tensor, dim, index * each, (index + 1) * each};
}

Refusals TooManyPieces() {
  return {{"limit", "", "",
           absl::StrCat("ranks that differ have more than ", kMaxPieces,
                        " pieces in all, want at most so many: fewer ranks that each hold a part "
                        "of every tensor (with FSDP a smaller shard, or ep above 1, which stacks "
                        "experts), or --layers")}};
}

Cut LayoutDraft::Whole(TensorId tensor) const {
  return {tensor, 0, 0, model_.tensor(tensor).shape[0]};
}

void LayoutDraft::Add(std::string name, const Cut& cut) {
  const Tensor& tensor = model_.tensor(cut.tensor);
  Index shape = tensor.shape;
  shape[cut.dim] = cut.hi - cut.lo;
  AddParam(std::move(name), std::move(shape), tensor.dtype);
  Place(cut, Index(tensor.shape.size(), 0));
}

void LayoutDraft::AddStacked(std::string name, std::span<const Cut> cuts) {
  const Tensor& first = model_.tensor(cuts.front().tensor);
  Index shape = first.shape;
  shape[0] = 0;
  for (const Cut& cut : cuts) shape[0] += cut.hi - cut.lo;
  AddParam(std::move(name), std::move(shape), first.dtype);
  Index at(first.shape.size(), 0);
  for (const Cut& cut : cuts) {
    Place(cut, at);
    at[0] += cut.hi - cut.lo;
  }
}

void LayoutDraft::AddParam(std::string name, Index shape, Dtype dtype) {
  const auto number = static_cast<std::uint32_t>(params_.size());
  buffers_.push_back({name, BytesOf(shape, dtype)});
  Index strides = RowMajor(shape);
  params_.push_back({std::move(name), dtype, std::move(shape), std::move(strides), number, 0});
  filled_.push_back(false);
}

void LayoutDraft::Place(const Cut& cut, const Index& at) {
  Index axes(model_.tensor(cut.tensor).shape.size(), 0);
  std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(at.size() - axes.size()));
  Place(cut, at, axes);
}

void LayoutDraft::Place(const Cut& cut, const Index& at, const Index& axes) {
  Index hi = model_.tensor(cut.tensor).shape;
  Index lo(hi.size(), 0);
  lo[cut.dim] = cut.lo;
  hi[cut.dim] = cut.hi;
  absl::StatusOr<Box> box = Box::Create(std::move(lo), std::move(hi));
  if (!box.ok()) return;  // no elements
  const Param& param = params_.back();
  std::int64_t first = 0;
  for (std::size_t d = 0; d < at.size(); ++d) first += at[d] * param.strides[d];
  Index strides;
  for (const std::int64_t axis : axes) {
    strides.push_back(param.strides[static_cast<std::size_t>(axis)]);
  }
  pieces_.push_back({cut.tensor, *std::move(box), param.buffer, param.buffer,
                     static_cast<std::uint64_t>(first * DtypeBytes(param.dtype)),
                     std::move(strides), at, axes});
  filled_.back() = true;
}

Layout LayoutDraft::Finish(Role role) && {
  for (std::size_t i = 0; i < params_.size(); ++i) {
    const Index& shape = params_[i].shape;
    const bool elements = std::find(shape.begin(), shape.end(), 0) == shape.end();
    params_[i].local = role == Role::kRollout && elements && !filled_[i];
  }
  std::sort(pieces_.begin(), pieces_.end(), PieceBefore);
  Layout layout;
  layout.role = role;
  layout.buffers = std::move(buffers_);
  layout.params = std::move(params_);
  layout.pieces = std::move(pieces_);
  return layout;
}

}  // namespace wb
