#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

#include "planner/model/layout.h"
#include "proto/door/piece_door.h"
#include "proto/door/reasons.h"
#include "proto/door/tensor_table.h"
#include "proto/v1.h"

namespace wb {

/// Checks the params of one worker, and puts what is accepted into its layout: params and buffers
/// in the order of the wire, non-empty pieces with ids of the table. Used by the registration door
/// only. Not thread-safe.
class ParamDoor {
 public:
  /// All are borrowed for the door's life.
  ParamDoor(const WorkerLabel& worker, const TensorTable& table, Layout& layout, Reasons& reasons)
      : worker_(worker), table_(table), layout_(layout), reasons_(reasons) {}

  /// The wire param must outlive the door.
  void Add(const v1::Param& wire);

  /// What only the whole can tell: params whose size nobody knows in a buffer of several.
  void Finish();

  /// Tensors that rollout params with elements name by empty boxes alone, in any order. They stay
  /// with the registration: it must be told from one whose params name nothing, which is refused.
  const std::vector<TensorId>& named_by_empty_boxes() const { return named_by_empty_boxes_; }

 private:
  // Whether shape and strides are accepted, so that pieces can be held against them.
  struct Geometry {
    bool shape = false;
    bool strides = false;
  };

  void Refuse(std::string_view kind, const std::string& text) const;
  void CheckName(const v1::Param& wire);
  bool CheckShape(const v1::Param& wire, Param& param) const;
  bool CheckStrides(const v1::Param& wire, Param& param) const;
  void CheckHasPieces(const v1::Param& wire, const Param& param, Geometry geometry) const;
  std::optional<Dtype> CheckDtype(const v1::Param& wire) const;
  void AddPieces(const v1::Param& wire, const Param& param, Geometry geometry);
  void KeepNamed(const v1::Param& wire);
  std::uint32_t BufferOf(const v1::Param& wire);
  bool Extend(const Param& param);

  const WorkerLabel& worker_;
  const TensorTable& table_;
  Layout& layout_;
  Reasons& reasons_;
  std::string param_;  // how texts name the param at hand
  absl::flat_hash_set<absl::string_view> names_;
  absl::flat_hash_map<absl::string_view, std::uint32_t> buffers_;
  std::vector<TensorId> named_by_empty_boxes_;
  std::vector<std::uint32_t> params_in_buffer_;
  std::vector<std::uint32_t> sizeless_;  // params whose dtype nothing tells
};

}  // namespace wb
