#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "planner/model/layout.h"
#include "planner/model/plan_part.h"
#include "planner/model/refusal.h"
#include "planner/model/registration.h"
#include "proto/v1.h"

namespace wb {

// The only door from the wire to values: every untrusted field of a layout, layout file or plan
// part is checked here and nowhere else. Stateless; thread-safe.

/// One worker's layout, or every reason why it is refused.
[[nodiscard]] std::variant<Registration, Refusals> RegistrationFromProto(const v1::Layout& wire);
[[nodiscard]] v1::Layout ToProto(const Registration& registration);

/// What equal replicas have in common, as bytes that are the same for all of them: a serialised
/// v1::Layout of nothing but tensors, role and params.
[[nodiscard]] std::string ContentsOf(const Registration& registration);
/// The way back: `identity` has job, role, name and node, and nothing else. Or every reason why the
/// contents are refused.
[[nodiscard]] std::variant<Registration, Refusals> RegistrationFromContents(
    const Registration& identity, std::string_view contents);

/// A job and, where it is that of a layout file, what the file says of each worker.
struct LoadedJob {
  Job job;
  std::vector<Registration> registrations;  // one per job.layouts, same order; or none
  std::vector<v1::Layout> wire;             // what each worker would register, same order; or none
};

/// A layout file's text (proto3 JSON of v1::LayoutFile; unknown fields, duplicate keys, nulls and
/// trailing commas refused), or every reason why it is refused.
[[nodiscard]] std::variant<LoadedJob, Refusals> JobFromJson(std::string_view json);

/// The most moves of one plan part.
inline constexpr std::size_t kMaxMovesPerPart = 16'777'216;

/// INVALID_ARGUMENT names the field.
[[nodiscard]] absl::StatusOr<PlanPart> PlanPartFromProto(const v1::Plan& wire);
[[nodiscard]] v1::Plan ToProto(const PlanPart& part);

/// Lines that travel beside a status text (who is late, the outcome of each group) are a payload
/// of this name, joined by '\n'.
inline constexpr char kDetailsPayload[] = "weightbridge.v1.Status.details";
[[nodiscard]] absl::Status WithDetails(absl::Status status, std::span<const std::string> lines);

/// An unknown code is UNKNOWN and named in the text. Texts are cut at kMaxStatusBytes, and bytes
/// that are not UTF-8 become '?': the wire carries neither.
[[nodiscard]] absl::Status StatusFromProto(const v1::Status& wire);
[[nodiscard]] v1::Status ToProto(const absl::Status& status);

}  // namespace wb
