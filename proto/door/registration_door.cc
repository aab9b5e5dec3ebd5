#include "proto/door/registration_door.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "proto/convert.h"
#include "proto/door/names.h"
#include "proto/door/param_door.h"
#include "proto/door/storage_door.h"

namespace wb {
namespace {

// Takes one worker from the wire into a registration.
class WorkerDoor {
 public:
  WorkerDoor(const v1::Worker& wire,
             const std::string& place,
             const TensorTable& table,
             Reasons& reasons)
      : wire_(wire), table_(table), reasons_(reasons) {
    label_.label = place;
  }

  CheckedWorker Check() {
    const std::size_t before = reasons_.found();
    CheckedWorker checked;
    Layout& layout = checked.registration.layout;
    checked.identified = CheckIdentity(layout);
    if (!CheckCounts()) return checked;
    layout.params.Edit().reserve(static_cast<std::size_t>(wire_.params_size()));
    ParamDoor params(label_, table_, layout, reasons_);
    for (const v1::Param& param : wire_.params()) params.Add(param);
    params.Finish();
    if (reasons_.found() == before) CheckStorage(layout, table_.tensors(), label_, reasons_);
    OrderPieces(layout);
    NameTensors(params.named_by_empty_boxes(), checked.registration);
    return checked;
  }

 private:
  void Refuse(std::string_view kind, const std::string& text) {
    reasons_.Add(kind, {.worker = label_.name}, absl::StrCat(label_.label, ": ", text));
  }

  bool CheckIdentity(Layout& layout) {
    const bool grouped = CheckToken("group", wire_.group());
    const bool ranked = CheckRank();
    if (grouped && ranked) {
      layout.name = {wire_.group(), wire_.rank()};
      label_ = {layout.name.ToString(), absl::StrCat("worker ", layout.name.ToString())};
    }
    if (CheckToken("node", wire_.node())) layout.node = wire_.node();
    return CheckRole(layout) && grouped && ranked;
  }

  bool CheckToken(std::string_view field, const std::string& value) {
    if (value.empty()) {
      Refuse(field == "group" ? "group" : "name", absl::StrCat(Absl(field), " is required"));
      return false;
    }
    const std::optional<std::string> fault = TokenFault(value);
    if (fault.has_value()) {
      Refuse(field == "group" ? "group" : "name",
             absl::StrCat(Absl(field), " ", Shown(value), " ", *fault));
    }
    return !fault.has_value();
  }

  bool CheckRank() {
    if (!wire_.has_rank()) {
      Refuse("rank", absl::StrCat("rank is required (of group ", Shown(wire_.group()), ")"));
    } else if (wire_.rank() < 0) {
      Refuse("rank", absl::StrCat("rank is ", wire_.rank(), ", want >= 0"));
    }
    return wire_.has_rank() && wire_.rank() >= 0;
  }

  bool CheckRole(Layout& layout) {
    layout.role = wire_.role() == v1::ROLLOUT ? Role::kRollout : Role::kTrainer;
    if (wire_.role() == v1::ROLLOUT || wire_.role() == v1::TRAINER) return true;
    if (wire_.role() == v1::ROLE_UNSPECIFIED) {
      Refuse("role", "role is required, want TRAINER or ROLLOUT");
    } else {
      Refuse("role", absl::StrCat("role ", static_cast<int>(wire_.role()),
                                  " is unknown, want TRAINER or ROLLOUT"));
    }
    return false;
  }

  bool CheckCounts() {
    std::size_t pieces = 0;
    for (const v1::Param& param : wire_.params()) {
      pieces += static_cast<std::size_t>(param.pieces_size());
    }
    const auto params = static_cast<std::size_t>(wire_.params_size());
    if (params <= kMaxParamsPerWorker && pieces <= kMaxPiecesPerWorker) return true;
    Refuse("limit",
           absl::StrCat("it has ", params, " params and ", pieces, " pieces, want at most ",
                        kMaxParamsPerWorker, " and ", kMaxPiecesPerWorker));
    return false;
  }

  static void OrderPieces(Layout& layout) {
    std::vector<Piece>& pieces = layout.pieces.Edit();
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return std::tie(a.tensor, a.box, a.param, a.offset_bytes, a.axes) <
             std::tie(b.tensor, b.box, b.param, b.offset_bytes, b.axes);
    });
  }

  // From the table's ids to those of the registration's own tensors. Both are ordered by name, so
  // the pieces stay ordered.
  void NameTensors(std::vector<TensorId> named, Registration& registration) const {
    for (const Piece& piece : registration.layout.pieces) {
      if (named.empty() || named.back() != piece.tensor) named.push_back(piece.tensor);
    }
    std::sort(named.begin(), named.end());
    named.erase(std::unique(named.begin(), named.end()), named.end());
    registration.tensors.reserve(named.size());
    for (const TensorId id : named) registration.tensors.push_back(table_.tensors()[id.value()]);
    auto own = named.begin();
    for (Piece& piece : registration.layout.pieces.Edit()) {
      own = std::find(own, named.end(), piece.tensor);
      piece.tensor = TensorId(static_cast<std::uint32_t>(own - named.begin()));
    }
  }

  const v1::Worker& wire_;
  const TensorTable& table_;
  Reasons& reasons_;
  WorkerLabel label_;
};

}  // namespace

CheckedWorker CheckWorker(const v1::Worker& wire,
                          const std::string& place,
                          const TensorTable& table,
                          Reasons& reasons) {
  return WorkerDoor(wire, place, table, reasons).Check();
}

void CheckJobName(const std::string& job, Reasons& reasons) {
  const std::optional<std::string> fault = NameFault(job);
  if (fault.has_value()) reasons.Add("name", {}, absl::StrCat("job ", Shown(job), " ", *fault));
}

std::variant<Registration, Refusals> RegistrationFromProto(const v1::Layout& wire) {
  Reasons reasons;
  CheckJobName(wire.job(), reasons);
  const TensorTable table(wire.tensors(), wire.aliases(), reasons);
  CheckedWorker checked = CheckWorker(wire.worker(), "worker", table, reasons);
  if (!reasons.empty()) return std::move(reasons).Take();
  checked.registration.job = wire.job();
  return std::move(checked.registration);
}

}  // namespace wb
