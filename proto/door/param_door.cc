#include "proto/door/param_door.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "planner/base/checked_math.h"
#include "proto/door/names.h"
#include "proto/door/strided.h"

namespace wb {
namespace {

bool HasElements(const Param& param) {
  return std::find(param.shape.begin(), param.shape.end(), 0) == param.shape.end();
}

}  // namespace

void ParamDoor::Refuse(std::string_view kind, const std::string& text) const {
  reasons_.Add(kind, {.worker = worker_.name},
               absl::StrCat(worker_.label, ", param ", param_, ": ", text));
}

void ParamDoor::Add(const v1::Param& wire) {
  CheckName(wire);
  Param param;
  param.name = wire.name();
  param.local = wire.local();
  Geometry geometry;
  geometry.shape = CheckShape(wire, param);
  geometry.strides = geometry.shape && CheckStrides(wire, param);
  if (wire.offset_bytes() < 0) {
    Refuse("buffer", absl::StrCat("offset_bytes is ", wire.offset_bytes(), ", want >= 0"));
  }
  param.offset_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(wire.offset_bytes(), 0));
  CheckHasPieces(wire, param, geometry);
  const std::optional<Dtype> dtype = CheckDtype(wire);
  param.dtype = dtype.value_or(Dtype::kUint8);
  param.buffer = BufferOf(wire);
  if (!dtype.has_value()) sizeless_.push_back(static_cast<std::uint32_t>(layout_.params.size()));
  geometry.strides = geometry.strides && Extend(param);
  const std::size_t pieces_before = layout_.pieces.size();
  AddPieces(wire, param, geometry);
  const bool unfilled = layout_.pieces.size() == pieces_before && !param.local;
  if (layout_.role == Role::kRollout && unfilled && HasElements(param)) KeepNamed(wire);
  layout_.params.Edit().push_back(std::move(param));
}

void ParamDoor::CheckName(const v1::Param& wire) {
  param_ = wire.name().empty() ? absl::StrCat(layout_.params.size()) : Shown(wire.name());
  if (const auto fault = NameFault(wire.name())) {
    Refuse("name", absl::StrCat("name ", *fault));
  } else if (!names_.insert(wire.name()).second) {
    Refuse("name", "the name is there twice, want params of a worker to differ in name");
  }
}

bool ParamDoor::CheckShape(const v1::Param& wire, Param& param) const {
  if (wire.shape().empty() || wire.shape_size() > kMaxNdim) {
    Refuse("shape",
           absl::StrCat("shape has ", wire.shape_size(), " dimensions, want 1..", kMaxNdim));
    return false;
  }
  bool good = true;
  for (int dim = 0; dim < wire.shape_size(); ++dim) {
    if (wire.shape(dim) < 0) {
      Refuse("shape", absl::StrCat("shape[", dim, "] is ", wire.shape(dim), ", want >= 0"));
      good = false;
    }
    param.shape.push_back(wire.shape(dim));
  }
  return good;
}

bool ParamDoor::CheckStrides(const v1::Param& wire, Param& param) const {
  if (wire.strides().empty()) {
    std::optional<Index> strides = RowMajorStrides(param.shape);
    if (!strides.has_value()) {
      Refuse("limit", absl::StrCat("the elements of shape [", absl::StrJoin(param.shape, ","),
                                   "] do not fit 63 bits"));
      return false;
    }
    param.strides = *std::move(strides);
    return true;
  }
  if (wire.strides_size() != wire.shape_size()) {
    Refuse("strides",
           absl::StrCat("strides has ", wire.strides_size(),
                        " entries, want one per dimension of shape: ", wire.shape_size()));
    return false;
  }
  bool good = true;
  for (int dim = 0; dim < wire.strides_size(); ++dim) {
    if (wire.strides(dim) < 1) {
      Refuse("strides", absl::StrCat("strides[", dim, "] is ", wire.strides(dim), ", want >= 1"));
      good = false;
    }
    param.strides.push_back(wire.strides(dim));
  }
  if (!good) return false;
  const std::optional<std::string> fault = NestingFault(param.shape, param.strides);
  if (fault.has_value()) Refuse("strides", *fault);
  return !fault.has_value();
}

void ParamDoor::CheckHasPieces(const v1::Param& wire, const Param& param, Geometry geometry) const {
  if (wire.local() && !wire.pieces().empty()) {
    Refuse("piece", absl::StrCat("it is local and has ", wire.pieces_size(),
                                 " pieces, want none: a local param is never written"));
  }
  const bool filled = geometry.shape && HasElements(param);
  if (layout_.role == Role::kRollout && !wire.local() && wire.pieces().empty() && filled) {
    Refuse("piece", "it has no pieces, so nothing would ever fill it, want pieces or local: true");
  }
}

std::optional<Dtype> ParamDoor::CheckDtype(const v1::Param& wire) const {
  if (wire.dtype() != v1::DTYPE_UNSPECIFIED) {
    const std::optional<Dtype> dtype = DtypeFromProto(wire.dtype());
    if (dtype.has_value()) return dtype;
    Refuse("dtype", absl::StrCat("dtype ", static_cast<int>(wire.dtype()),
                                 " is unknown, want one of ", DtypeNames()));
  }
  for (const v1::Piece& piece : wire.pieces()) {
    const TensorTable::Found found = table_.Find(piece.tensor());
    if (found.id.has_value()) return table_.tensors()[found.id->value()].dtype;
  }
  return std::nullopt;
}

void ParamDoor::AddPieces(const v1::Param& wire, const Param& param, Geometry geometry) {
  const ParamScope scope{param, param_, geometry.strides, DtypeFromProto(wire.dtype()).has_value()};
  PieceDoor door(worker_, scope, table_, reasons_);
  const auto index = static_cast<std::uint32_t>(layout_.params.size());
  for (int i = 0; i < wire.pieces_size(); ++i) {
    std::optional<Piece> piece = door.Check(wire.pieces(i), i);
    if (!piece.has_value() || !geometry.strides) continue;
    piece->param = index;
    layout_.pieces.Edit().push_back(*std::move(piece));
  }
}

void ParamDoor::KeepNamed(const v1::Param& wire) {
  for (const v1::Piece& piece : wire.pieces()) {
    const TensorTable::Found found = table_.Find(piece.tensor());
    if (found.id.has_value()) named_by_empty_boxes_.push_back(*found.id);
  }
}

std::uint32_t ParamDoor::BufferOf(const v1::Param& wire) {
  const std::string& name = wire.buffer().empty() ? wire.name() : wire.buffer();
  const auto [entry, added] =
      buffers_.try_emplace(name, static_cast<std::uint32_t>(layout_.buffers.size()));
  if (added) {
    layout_.buffers.Edit().push_back({name, 0});
    params_in_buffer_.push_back(0);
    const auto fault = wire.buffer().empty() ? std::nullopt : NameFault(name);
    if (fault.has_value()) Refuse("name", absl::StrCat("buffer ", Shown(name), " ", *fault));
  }
  ++params_in_buffer_[entry->second];
  return entry->second;
}

bool ParamDoor::Extend(const Param& param) {
  const std::optional<std::int64_t> span = SpanElements(param.shape, param.strides);
  absl::StatusOr<std::int64_t> end = absl::OutOfRangeError("span");
  if (span.has_value()) end = CheckedMul(*span, DtypeBytes(param.dtype));
  if (end.ok()) end = CheckedAdd(*end, static_cast<std::int64_t>(param.offset_bytes));
  if (!end.ok()) {
    Refuse("limit",
           absl::StrCat("its last byte at shape [", absl::StrJoin(param.shape, ","), "], strides [",
                        absl::StrJoin(param.strides, ","), "] and offset_bytes ",
                        param.offset_bytes, " does not fit 63 bits"));
    return false;
  }
  std::uint64_t& bytes = layout_.buffers.Edit()[param.buffer].bytes;
  bytes = std::max(bytes, static_cast<std::uint64_t>(*end));
  return true;
}

void ParamDoor::Finish() {
  for (const std::uint32_t index : sizeless_) {
    const Param& param = layout_.params[index];
    if (params_in_buffer_[param.buffer] < 2) continue;
    param_ = Shown(param.name);
    Refuse("dtype", absl::StrCat("dtype is missing, want it of a param without pieces in a buffer "
                                 "that others use too (",
                                 Shown(layout_.buffers[param.buffer].name), ")"));
  }
}

}  // namespace wb
