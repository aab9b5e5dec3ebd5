#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "planner/model/layout.h"
#include "proto/door/reasons.h"
#include "proto/door/tensor_table.h"
#include "proto/v1.h"

namespace wb {

/// How reasons name a worker: `name` is "group/rank" (empty where either is refused), `label`
/// stands at the start of a text.
struct WorkerLabel {
  std::string name;
  std::string label;
};

/// The param whose pieces are checked, as far as it was accepted itself.
struct ParamScope {
  const Param& param;
  const std::string& label;  // how texts name it
  bool placed = false;       // shape, strides and offset are accepted
  bool typed = false;        // dtype was given, not taken from a piece
};

/// Checks the pieces of one param. Used by the param door only. Not thread-safe.
class PieceDoor {
 public:
  /// All are borrowed for the door's life.
  PieceDoor(const WorkerLabel& worker,
            const ParamScope& scope,
            const TensorTable& table,
            Reasons& reasons)
      : worker_(worker), scope_(scope), table_(table), reasons_(reasons) {}

  /// The piece, its `param` left 0; nothing where it or its param is refused, and nothing where
  /// its box is empty: that is legal, and dropped.
  std::optional<Piece> Check(const v1::Piece& wire, int index);

 private:
  void Refuse(std::string_view kind, const std::string& text) const;
  void CheckDtype(const Tensor& tensor);
  bool CheckBox(const v1::Box& box, const Tensor& tensor) const;
  std::optional<Index> CheckAxes() const;
  bool CheckAt(const Index& axes) const;
  Piece Place(TensorId tensor, Box box, Index axes) const;

  const WorkerLabel& worker_;
  const ParamScope& scope_;
  const TensorTable& table_;
  Reasons& reasons_;
  const Tensor* first_ = nullptr;  // that the param holds, the one that gave it its dtype
  const v1::Piece* wire_ = nullptr;
  int index_ = 0;
};

}  // namespace wb
