#include "proto/door/tensor_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "planner/base/checked_math.h"
#include "proto/door/names.h"

namespace wb {
namespace {

constexpr std::array kDtypes = {
    std::pair{v1::FP64, Dtype::kFp64},        std::pair{v1::FP32, Dtype::kFp32},
    std::pair{v1::FP16, Dtype::kFp16},        std::pair{v1::BF16, Dtype::kBf16},
    std::pair{v1::FP8_E4M3, Dtype::kFp8E4m3}, std::pair{v1::FP8_E5M2, Dtype::kFp8E5m2},
    std::pair{v1::INT64, Dtype::kInt64},      std::pair{v1::INT32, Dtype::kInt32},
    std::pair{v1::INT16, Dtype::kInt16},      std::pair{v1::INT8, Dtype::kInt8},
    std::pair{v1::UINT8, Dtype::kUint8},      std::pair{v1::BOOL, Dtype::kBool},
};

// Keys of a wire map, in order.
template <typename Map>
std::vector<const typename Map::value_type*> Ordered(const Map& map) {
  std::vector<const typename Map::value_type*> entries;
  entries.reserve(map.size());
  for (const auto& entry : map) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  return entries;
}

// "BF16 [16,2]", "BF16 [16,2] IDENTICAL".
std::string Described(const Tensor& tensor) {
  return absl::StrCat(Absl(DtypeName(tensor.dtype)), " [", absl::StrJoin(tensor.shape, ","), "]",
                      tensor.overlap_identical ? " IDENTICAL" : "");
}

bool SameKind(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.overlap_identical == b.overlap_identical;
}

// Adds reasons about one tensor.
class TensorDoor {
 public:
  TensorDoor(const std::string& name, Reasons& reasons) : name_(name), reasons_(reasons) {}

  std::optional<Tensor> Check(const v1::Tensor& wire) {
    const std::size_t before = reasons_.found();
    if (const auto fault = NameFault(name_)) Refuse("name", absl::StrCat("name ", *fault));
    Tensor tensor;
    tensor.name = name_;
    CheckDtype(wire, tensor);
    CheckOverlap(wire, tensor);
    CheckShape(wire, tensor);
    if (reasons_.found() > before) return std::nullopt;
    return tensor;
  }

 private:
  void Refuse(std::string_view kind, const std::string& text) {
    reasons_.Add(kind, {.tensor = name_}, absl::StrCat("tensor ", Shown(name_), ": ", text));
  }

  void CheckDtype(const v1::Tensor& wire, Tensor& tensor) {
    if (const std::optional<Dtype> dtype = DtypeFromProto(wire.dtype())) {
      tensor.dtype = *dtype;
    } else if (wire.dtype() == v1::DTYPE_UNSPECIFIED) {
      Refuse("dtype", absl::StrCat("dtype is missing, want one of ", DtypeNames()));
    } else {
      Refuse("dtype", absl::StrCat("dtype ", static_cast<int>(wire.dtype()),
                                   " is unknown, want one of ", DtypeNames()));
    }
  }

  void CheckOverlap(const v1::Tensor& wire, Tensor& tensor) {
    tensor.overlap_identical = wire.overlap() == v1::IDENTICAL;
    if (!tensor.overlap_identical && wire.overlap() != v1::OVERLAP_UNSPECIFIED) {
      Refuse("overlap", absl::StrCat("overlap ", static_cast<int>(wire.overlap()),
                                     " is unknown, want IDENTICAL or nothing"));
    }
  }

  void CheckShape(const v1::Tensor& wire, Tensor& tensor) {
    if (wire.shape().empty() || wire.shape_size() > kMaxNdim) {
      Refuse("shape",
             absl::StrCat("shape has ", wire.shape_size(), " dimensions, want 1..", kMaxNdim));
      return;
    }
    // Zeros count as one: the product of the others must fit whatever their order.
    absl::StatusOr<std::int64_t> bytes = DtypeBytes(tensor.dtype);
    for (int dim = 0; dim < wire.shape_size(); ++dim) {
      const std::int64_t extent = wire.shape(dim);
      if (extent < 0) {
        Refuse("shape", absl::StrCat("shape[", dim, "] is ", extent, ", want >= 0"));
      }
      if (bytes.ok()) bytes = CheckedMul(*bytes, std::max<std::int64_t>(extent, 1));
      tensor.shape.push_back(extent);
    }
    if (!bytes.ok()) {
      Refuse("limit", absl::StrCat("the bytes of shape [", absl::StrJoin(wire.shape(), ","),
                                   "] do not fit 63 bits"));
    }
  }

  const std::string& name_;
  Reasons& reasons_;
};

}  // namespace

std::optional<Dtype> DtypeFromProto(v1::Dtype wire) {
  for (const auto& [number, dtype] : kDtypes) {
    if (number == wire) return dtype;
  }
  return std::nullopt;
}

v1::Dtype ToProto(Dtype dtype) {
  const auto* const found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                         [&](const auto& entry) { return entry.second == dtype; });
  return found->first;
}

std::string DtypeNames() {
  return absl::StrJoin(kDtypes, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, Absl(DtypeName(entry.second)));
  });
}

std::optional<Tensor> TensorFromProto(const std::string& name,
                                      const v1::Tensor& wire,
                                      Reasons& reasons) {
  return TensorDoor(name, reasons).Check(wire);
}

v1::Tensor ToProto(const Tensor& tensor) {
  v1::Tensor wire;
  wire.set_dtype(ToProto(tensor.dtype));
  wire.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  if (tensor.overlap_identical) wire.set_overlap(v1::IDENTICAL);
  return wire;
}

TensorTable::TensorTable(const WireTensors& tensors, const WireAliases& aliases, Reasons& reasons) {
  if (tensors.size() > kMaxTensors || aliases.size() > kMaxTensors) {
    reasons.Add("limit", {},
                absl::StrCat(tensors.size(), " tensors and ", aliases.size(),
                             " aliases, want at most ", kMaxTensors, " of each"));
    return;
  }
  AddTensors(tensors, aliases, reasons);
  AddAliases(tensors, aliases, reasons);
}

void TensorTable::AddTensors(const WireTensors& tensors,
                             const WireAliases& aliases,
                             Reasons& reasons) {
  tensors_.reserve(tensors.size());
  ids_.reserve(tensors.size() + aliases.size());
  for (const auto* entry : Ordered(tensors)) {
    if (aliases.contains(entry->first)) continue;
    std::optional<TensorId>& id = ids_[entry->first];
    std::optional<Tensor> tensor = TensorFromProto(entry->first, entry->second, reasons);
    if (!tensor.has_value()) continue;
    id = TensorId(static_cast<std::uint32_t>(tensors_.size()));
    tensors_.push_back(*std::move(tensor));
  }
}

void TensorTable::AddAliases(const WireTensors& tensors,
                             const WireAliases& aliases,
                             Reasons& reasons) {
  for (const auto* entry : Ordered(aliases)) {
    const auto& [alias, target] = *entry;
    const auto refuse = [&, name = std::string_view(alias)](std::string_view kind,
                                                            const std::string& text) {
      reasons.Add(kind, {.tensor = name}, absl::StrCat("alias ", Shown(name), ": ", text));
    };
    std::optional<TensorId>& id = ids_[alias];
    if (const auto fault = NameFault(alias)) refuse("name", absl::StrCat("name ", *fault));
    const auto own = tensors.find(alias);
    std::optional<Tensor> tensor;
    if (own != tensors.end()) tensor = TensorFromProto(alias, own->second, reasons);
    if (const auto chain = aliases.find(target); chain != aliases.end()) {
      refuse("alias", absl::StrCat("its target ", Shown(target), " is itself an alias of ",
                                   Shown(chain->second), ", want a tensor"));
    } else if (!tensors.contains(target)) {
      refuse("alias", absl::StrCat("its target ", Shown(target), " is not among the tensors"));
    } else {
      id = ids_.find(target)->second;
    }
    if (!id.has_value() || !tensor.has_value()) continue;
    const Tensor& tied = tensors_[id->value()];
    if (!SameKind(*tensor, tied)) {
      refuse("alias", absl::StrCat("it is declared ", Described(*tensor), " and its target ",
                                   Shown(target), " ", Described(tied), ", want the same"));
    }
  }
}

TensorTable::Found TensorTable::Find(const std::string& name) const {
  const auto found = ids_.find(name);
  if (found == ids_.end()) return {};
  return {.declared = true, .id = found->second};
}

}  // namespace wb
