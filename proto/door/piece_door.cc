#include "proto/door/piece_door.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "proto/door/names.h"

namespace wb {
namespace {

Index ToIndex(const google::protobuf::RepeatedField<std::int64_t>& wire) {
  return {wire.begin(), wire.end()};
}

// A dimension of a repeated field; its size was checked against kMaxNdim.
std::size_t Dim(int dim) {
  return static_cast<std::size_t>(dim);
}

}  // namespace

void PieceDoor::Refuse(std::string_view kind, const std::string& text) const {
  reasons_.Add(kind, {.tensor = wire_->tensor(), .worker = worker_.name},
               absl::StrCat(worker_.label, ", param ", scope_.label, ", piece ", index_,
                            " of tensor ", Shown(wire_->tensor()), ": ", text));
}

std::optional<Piece> PieceDoor::Check(const v1::Piece& wire, int index) {
  wire_ = &wire;
  index_ = index;
  const TensorTable::Found found = table_.Find(wire.tensor());
  if (!found.declared) {
    Refuse("tensor", "the tensor is not declared, want one of the tensors or aliases");
    return std::nullopt;
  }
  if (!found.id.has_value()) return std::nullopt;  // told where it is declared
  const Tensor& tensor = table_.tensors()[found.id->value()];
  CheckDtype(tensor);
  if (!CheckBox(wire.box(), tensor) || !scope_.placed) return std::nullopt;
  std::optional<Index> axes = CheckAxes();
  if (!axes.has_value() || !CheckAt(*axes)) return std::nullopt;
  // All that Create asks for is checked but emptiness: a box inside a tensor whose elements fit.
  absl::StatusOr<Box> box = Box::Create(ToIndex(wire.box().lo()), ToIndex(wire.box().hi()));
  if (!box.ok()) return std::nullopt;
  return Place(*found.id, *std::move(box), *std::move(axes));
}

void PieceDoor::CheckDtype(const Tensor& tensor) {
  if (first_ == nullptr) first_ = &tensor;
  if (tensor.dtype == scope_.param.dtype) return;
  const absl::string_view wanted = Absl(DtypeName(scope_.param.dtype));
  const std::string holder =
      scope_.typed ? absl::StrCat("the param is ", wanted)
                   : absl::StrCat("the param's first tensor ", Shown(first_->name), " is ", wanted);
  Refuse("dtype", absl::StrCat("the tensor is ", Absl(DtypeName(tensor.dtype)), " and ", holder,
                               ", want the same: nothing is converted"));
}

bool PieceDoor::CheckBox(const v1::Box& box, const Tensor& tensor) const {
  const auto ndim = static_cast<int>(tensor.shape.size());
  if (box.lo_size() != ndim || box.hi_size() != ndim) {
    Refuse("box", absl::StrCat("box.lo has ", box.lo_size(), " entries and box.hi ", box.hi_size(),
                               ", want one per dimension of the tensor: ", ndim));
    return false;
  }
  bool good = true;
  const auto refuse = [&](const std::string& text) {
    Refuse("box", text);
    good = false;
  };
  for (int dim = 0; dim < ndim; ++dim) {
    const std::int64_t lo = box.lo(dim);
    const std::int64_t hi = box.hi(dim);
    const std::int64_t extent = tensor.shape[Dim(dim)];
    if (lo < 0) refuse(absl::StrCat("box.lo[", dim, "] is ", lo, ", want >= 0"));
    if (hi > extent) {
      refuse(
          absl::StrCat("box.hi[", dim, "] is ", hi, ", want at most the tensor's extent ", extent));
    }
    if (lo > hi) {
      refuse(absl::StrCat("box.lo[", dim, "] is ", lo, " and box.hi[", dim, "] ", hi,
                          ", want lo <= hi"));
    }
  }
  return good;
}

std::optional<Index> PieceDoor::CheckAxes() const {
  const auto local_ndim = static_cast<int>(scope_.param.shape.size());
  const int ndim = wire_->box().lo_size();
  if (ndim > local_ndim) {
    Refuse("piece", absl::StrCat("the tensor has ", ndim, " dimensions and the param ", local_ndim,
                                 ", want a local dimension for each of the tensor's"));
    return std::nullopt;
  }
  Index axes;
  if (wire_->axes().empty()) {
    for (int dim = 0; dim < ndim; ++dim) axes.push_back(local_ndim - ndim + dim);
    return axes;
  }
  if (wire_->axes_size() != ndim) {
    Refuse("piece", absl::StrCat("axes has ", wire_->axes_size(),
                                 " entries, want one per dimension of the tensor: ", ndim));
    return std::nullopt;
  }
  bool good = true;
  for (int dim = 0; dim < ndim; ++dim) {
    const std::int32_t axis = wire_->axes(dim);
    const bool repeated = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (repeated || axis < 0 || axis >= local_ndim) {
      Refuse("piece", absl::StrCat("axes[", dim, "] is ", axis, repeated ? " again" : "",
                                   ", want different local dimensions 0..", local_ndim - 1));
      good = false;
    }
    axes.push_back(axis);
  }
  if (!good) return std::nullopt;
  return axes;
}

bool PieceDoor::CheckAt(const Index& axes) const {
  const Index& shape = scope_.param.shape;
  if (Dim(wire_->at_size()) != shape.size()) {
    Refuse("piece", absl::StrCat("at has ", wire_->at_size(),
                                 " entries, want one per dimension of the param: ", shape.size()));
    return false;
  }
  Index extents(shape.size(), 1);
  for (std::size_t dim = 0; dim < axes.size(); ++dim) {
    const auto wire_dim = static_cast<int>(dim);
    extents[static_cast<std::size_t>(axes[dim])] =
        wire_->box().hi(wire_dim) - wire_->box().lo(wire_dim);
  }
  bool good = true;
  for (int dim = 0; dim < wire_->at_size(); ++dim) {
    const std::int64_t at = wire_->at(dim);
    if (at >= 0 && at <= shape[Dim(dim)] - extents[Dim(dim)]) continue;
    Refuse("piece",
           absl::StrCat("at[", dim, "] is ", at, " and the box's extent there ", extents[Dim(dim)],
                        ", want both inside 0..", shape[Dim(dim)], ", the param's extent"));
    good = false;
  }
  return good;
}

Piece PieceDoor::Place(TensorId tensor, Box box, Index axes) const {
  Piece piece{tensor, std::move(box), scope_.param.buffer, 0, 0, {}, {}, {}};
  std::int64_t first = 0;  // inside the param's span, whose bytes fit
  for (int dim = 0; dim < wire_->at_size(); ++dim) {
    first += wire_->at(dim) * scope_.param.strides[Dim(dim)];
  }
  piece.offset_bytes = scope_.param.offset_bytes +
                       static_cast<std::uint64_t>(first * DtypeBytes(scope_.param.dtype));
  for (const std::int64_t axis : axes) {
    piece.strides.push_back(scope_.param.strides[static_cast<std::size_t>(axis)]);
  }
  piece.at = ToIndex(wire_->at());
  piece.axes = std::move(axes);
  return piece;
}

}  // namespace wb
