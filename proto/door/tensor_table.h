#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "planner/model/dtype.h"
#include "planner/model/layout.h"
#include "proto/door/reasons.h"
#include "proto/v1.h"

namespace wb {

/// The dtype of the wire; nothing for "unspecified" and for numbers this build does not know.
[[nodiscard]] std::optional<Dtype> DtypeFromProto(v1::Dtype wire);
[[nodiscard]] v1::Dtype ToProto(Dtype dtype);
/// "FP64, FP32, ...": what a dtype may be, for texts.
[[nodiscard]] std::string DtypeNames();

/// The tensor of that name, or every reason why it is refused (added to `reasons`). Elements and
/// bytes of what is returned fit 63 bits.
[[nodiscard]] std::optional<Tensor> TensorFromProto(const std::string& name,
                                                    const v1::Tensor& wire,
                                                    Reasons& reasons);
[[nodiscard]] v1::Tensor ToProto(const Tensor& tensor);

/// The tensors and aliases that one layout or layout file declares, checked once.
///
/// Invariant: `tensors()` is ordered by name and holds every accepted tensor that is no alias.
/// Immutable; the maps it was made of must outlive it. Used inside the door only.
class TensorTable {
 public:
  using WireTensors = google::protobuf::Map<std::string, v1::Tensor>;
  using WireAliases = google::protobuf::Map<std::string, std::string>;

  TensorTable(const WireTensors& tensors, const WireAliases& aliases, Reasons& reasons);

  const std::vector<Tensor>& tensors() const { return tensors_; }

  /// What a piece's tensor name means.
  struct Found {
    bool declared = false;       // as a tensor or as an alias
    std::optional<TensorId> id;  // into tensors(); empty where it was refused
  };
  Found Find(const std::string& name) const;

 private:
  void AddTensors(const WireTensors& tensors, const WireAliases& aliases, Reasons& reasons);
  void AddAliases(const WireTensors& tensors, const WireAliases& aliases, Reasons& reasons);

  std::vector<Tensor> tensors_;
  absl::flat_hash_map<absl::string_view, std::optional<TensorId>> ids_;
};

}  // namespace wb
