#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "planner/base/status_macros.h"
#include "proto/convert.h"
#include "proto/door/names.h"
#include "proto/door/reasons.h"
#include "proto/door/tensor_table.h"

namespace wb {
namespace {

template <typename... Parts>
absl::Status Refused(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("plan.", parts...));
}

absl::Status CheckCounts(const v1::Plan& wire) {
  const auto check = [](absl::string_view field, int count, std::size_t limit) {
    if (static_cast<std::size_t>(count) <= limit) return absl::OkStatus();
    return Refused(field, " has ", count, " entries, want at most ", limit);
  };
  WB_RETURN_IF_ERROR(check("workers", wire.workers_size(), kMaxWorkers));
  WB_RETURN_IF_ERROR(check("tensors", wire.tensors_size(), kMaxTensors));
  WB_RETURN_IF_ERROR(check("ties", wire.ties_size(), kMaxTensors));
  return check("moves", wire.moves_size(), kMaxMovesPerPart);
}

absl::StatusOr<PlanWorker> WorkerFromProto(const v1::PlanWorker& wire, const std::string& field) {
  if (const auto fault = TokenFault(wire.group())) {
    return Refused(field, ".group ", Shown(wire.group()), " ", *fault);
  }
  if (const auto fault = TokenFault(wire.node())) {
    return Refused(field, ".node ", Shown(wire.node()), " ", *fault);
  }
  if (wire.rank() < 0) return Refused(field, ".rank is ", wire.rank(), ", want >= 0");
  return PlanWorker{{wire.group(), wire.rank()}, wire.node()};
}

absl::Status AddWorkers(const v1::Plan& wire, PlanPart& part) {
  absl::flat_hash_set<WorkerName> names;
  for (int i = 0; i < wire.workers_size(); ++i) {
    const std::string field = absl::StrCat("workers[", i, "]");
    WB_ASSIGN_OR_RETURN(PlanWorker worker, WorkerFromProto(wire.workers(i), field));
    if (!names.insert(worker.name).second) {
      return Refused(field, " is ", worker.name.ToString(), " again, want each worker once");
    }
    part.workers.push_back(std::move(worker));
  }
  return absl::OkStatus();
}

absl::Status AddTensors(const v1::Plan& wire, PlanPart& part) {
  absl::flat_hash_set<absl::string_view> names;
  for (int i = 0; i < wire.tensors_size(); ++i) {
    const v1::PlanTensor& tensor = wire.tensors(i);
    Reasons reasons;
    std::optional<Tensor> value = TensorFromProto(tensor.name(), tensor.tensor(), reasons);
    if (!value.has_value()) {
      return Refused("tensors[", i, "]: ", std::move(reasons).Take().front().text);
    }
    if (!names.insert(tensor.name()).second) {
      return Refused("tensors[", i, "] is ", tensor.name(), " again, want each tensor once");
    }
    part.tensors.push_back(*std::move(value));
  }
  return absl::OkStatus();
}

absl::Status CheckIndex(const std::string& field, std::uint32_t index, std::size_t size) {
  if (index < size) return absl::OkStatus();
  return Refused(field, " is ", index, ", want less than ", size);
}

absl::Status CheckTie(const v1::PlanTie& tie, const PlanPart& part, const std::string& field) {
  if (const auto fault = NameFault(tie.alias())) {
    return Refused(field, ".alias ", Shown(tie.alias()), " ", *fault);
  }
  WB_RETURN_IF_ERROR(CheckIndex(absl::StrCat(field, ".target"), tie.target(), part.tensors.size()));
  if (part.tensors[tie.target()].name != tie.alias()) return absl::OkStatus();
  return Refused(field, " ties ", tie.alias(), " to itself");
}

absl::Status AddTies(const v1::Plan& wire, PlanPart& part) {
  absl::flat_hash_set<absl::string_view> aliases;
  for (int i = 0; i < wire.ties_size(); ++i) {
    const v1::PlanTie& tie = wire.ties(i);
    const std::string field = absl::StrCat("ties[", i, "]");
    WB_RETURN_IF_ERROR(CheckTie(tie, part, field));
    if (!aliases.insert(tie.alias()).second) {
      return Refused(field, ".alias is ", tie.alias(), " again, want each alias once");
    }
    part.ties.push_back({tie.alias(), TensorId(tie.target())});
  }
  return absl::OkStatus();
}

// `box` inside a tensor of that shape.
absl::StatusOr<Box> BoxFromProto(const v1::Box& wire,
                                 const Tensor& tensor,
                                 const std::string& field) {
  absl::StatusOr<Box> box = Box::Create(Index(wire.lo().begin(), wire.lo().end()),
                                        Index(wire.hi().begin(), wire.hi().end()));
  if (!box.ok()) return Refused(field, ": ", box.status().message());
  if (box->hi().size() != tensor.shape.size()) {
    return Refused(field, " ", box->ToString(), " has ", box->ndim(), " dimensions, want ",
                   tensor.shape.size(), " of tensor ", tensor.name);
  }
  for (std::size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    if (box->hi()[dim] <= tensor.shape[dim]) continue;
    return Refused(field, " ", box->ToString(), " reaches beyond extent ", tensor.shape[dim],
                   " of dimension ", dim, " of tensor ", tensor.name);
  }
  return box;
}

absl::StatusOr<Move> MoveFromProto(const v1::Move& wire,
                                   const PlanPart& part,
                                   const std::string& field) {
  WB_RETURN_IF_ERROR(CheckIndex(absl::StrCat(field, ".src"), wire.src(), part.workers.size()));
  WB_RETURN_IF_ERROR(CheckIndex(absl::StrCat(field, ".dst"), wire.dst(), part.workers.size()));
  WB_RETURN_IF_ERROR(
      CheckIndex(absl::StrCat(field, ".tensor"), wire.tensor(), part.tensors.size()));
  if (wire.src() == wire.dst()) {
    return Refused(field, " goes from ", part.workers[wire.src()].name.ToString(), " to itself");
  }
  const Tensor& tensor = part.tensors[wire.tensor()];
  WB_ASSIGN_OR_RETURN(Box box, BoxFromProto(wire.box(), tensor, absl::StrCat(field, ".box")));
  // Inside a tensor whose bytes fit.
  const auto bytes = static_cast<std::uint64_t>(box.elements() * DtypeBytes(tensor.dtype));
  return Move{WorkerIndex(wire.src()), WorkerIndex(wire.dst()), TensorId(wire.tensor()),
              std::move(box), bytes};
}

absl::Status AddMoves(const v1::Plan& wire, PlanPart& part) {
  part.moves.reserve(static_cast<std::size_t>(wire.moves_size()));
  for (int i = 0; i < wire.moves_size(); ++i) {
    WB_ASSIGN_OR_RETURN(Move move,
                        MoveFromProto(wire.moves(i), part, absl::StrCat("moves[", i, "]")));
    part.moves.push_back(std::move(move));
  }
  return absl::OkStatus();
}

void Put(const Index& index, google::protobuf::RepeatedField<std::int64_t>& wire) {
  wire.Add(index.begin(), index.end());
}

}  // namespace

absl::StatusOr<PlanPart> PlanPartFromProto(const v1::Plan& wire) {
  WB_RETURN_IF_ERROR(CheckCounts(wire));
  if (const auto fault = NameFault(wire.job())) {
    return Refused("job ", Shown(wire.job()), " ", *fault);
  }
  if (const auto fault = TokenFault(wire.group())) {
    return Refused("group ", Shown(wire.group()), " ", *fault);
  }
  PlanPart part;
  part.job = wire.job();
  part.group = wire.group();
  part.fingerprint = Fingerprint(wire.fingerprint());
  WB_RETURN_IF_ERROR(AddWorkers(wire, part));
  WB_RETURN_IF_ERROR(AddTensors(wire, part));
  WB_RETURN_IF_ERROR(AddTies(wire, part));
  WB_RETURN_IF_ERROR(AddMoves(wire, part));
  return part;
}

v1::Plan ToProto(const PlanPart& part) {
  v1::Plan wire;
  wire.set_job(part.job);
  wire.set_group(part.group);
  wire.set_fingerprint(part.fingerprint.value());
  for (const PlanWorker& worker : part.workers) {
    v1::PlanWorker& to = *wire.add_workers();
    to.set_group(worker.name.group);
    to.set_rank(worker.name.rank);
    to.set_node(worker.node);
  }
  for (const Tensor& tensor : part.tensors) {
    v1::PlanTensor& to = *wire.add_tensors();
    to.set_name(tensor.name);
    *to.mutable_tensor() = ToProto(tensor);
  }
  for (const PlanTie& tie : part.ties) {
    v1::PlanTie& to = *wire.add_ties();
    to.set_alias(tie.alias);
    to.set_target(tie.target.value());
  }
  for (const Move& move : part.moves) {
    v1::Move& to = *wire.add_moves();
    to.set_src(move.src.value());
    to.set_dst(move.dst.value());
    to.set_tensor(move.tensor.value());
    Put(move.box.lo(), *to.mutable_box()->mutable_lo());
    Put(move.box.hi(), *to.mutable_box()->mutable_hi());
  }
  return wire;
}

}  // namespace wb
