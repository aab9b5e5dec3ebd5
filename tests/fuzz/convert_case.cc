#include "tests/fuzz/convert_case.h"

#include <array>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "planner/model/registration.h"
#include "planner/solve/planner.h"
#include "planner/solve/validate.h"
#include "proto/convert.h"

namespace wb::test {
namespace {

// The planner's own limits are no business of this target: larger jobs are not solved.
constexpr std::size_t kMaxSolvedPieces = 512;

void Require(bool holds, std::string_view what) {
  if (holds) return;
  std::cerr << "convert case: " << what << "\n";
  std::abort();
}

void CheckRoundTrip(const Registration& registration) {
  const std::variant<Registration, Refusals> again = RegistrationFromProto(ToProto(registration));
  if (const auto* refusals = std::get_if<Refusals>(&again)) {
    Require(false, "an accepted layout is refused on its way back: " + refusals->front().text);
  }
  Require(std::get<Registration>(again) == registration,
          "an accepted layout changes on its way to the wire and back");
}

void CheckReasons(const Refusals& refusals) {
  Require(!refusals.empty(), "refused without a reason");
  for (const Refusal& refusal : refusals) {
    Require(!refusal.kind.empty() && !refusal.text.empty(), "a reason without kind or text");
  }
  Require(!ToStatus(refusals).ok(), "refusals with an OK status");
}

// Whether the planner gave a plan, which is valid then.
bool SolveAndValidate(const Job& job) {
  std::size_t pieces = 0;
  for (const Layout& layout : job.layouts) pieces += layout.pieces.size();
  if (pieces > kMaxSolvedPieces) return false;
  const std::variant<Plan, Refusals> solved = Solve(job);
  if (const auto* refusals = std::get_if<Refusals>(&solved)) {
    CheckReasons(*refusals);
    return false;
  }
  const absl::Status valid = ValidatePlan(job, std::get<Plan>(solved));
  Require(valid.ok(), std::string(valid.message()));
  return true;
}

// The layout as it is, and as both ends of a job of two workers where the door takes it so.
void RunLayout(const std::string& bytes, ConvertOutcome& outcome) {
  v1::Layout wire;
  if (!wire.ParseFromString(bytes)) return;
  std::variant<Registration, Refusals> registration = RegistrationFromProto(wire);
  if (const auto* refusals = std::get_if<Refusals>(&registration)) return CheckReasons(*refusals);
  CheckRoundTrip(std::get<Registration>(registration));
  outcome.layout = true;
  std::array<Registration, 2> pair;
  for (const v1::Role role : {v1::TRAINER, v1::ROLLOUT}) {
    wire.mutable_worker()->set_role(role);
    wire.mutable_worker()->set_group(role == v1::TRAINER ? "t" : "r");
    wire.mutable_worker()->set_rank(0);
    registration = RegistrationFromProto(wire);
    if (!std::holds_alternative<Registration>(registration)) return;
    pair[role == v1::TRAINER ? 0 : 1] = std::get<Registration>(std::move(registration));
  }
  const std::variant<Job, Refusals> job = MakeJob(pair);
  if (const auto* refusals = std::get_if<Refusals>(&job)) return CheckReasons(*refusals);
  if (SolveAndValidate(std::get<Job>(job))) ++outcome.plans;
}

void RunFile(const std::string& text, ConvertOutcome& outcome) {
  const std::variant<LoadedJob, Refusals> loaded = JobFromJson(text);
  if (const auto* refusals = std::get_if<Refusals>(&loaded)) return CheckReasons(*refusals);
  outcome.file = true;
  const auto& job = std::get<LoadedJob>(loaded);
  for (std::size_t i = 0; i < job.registrations.size(); ++i) {
    CheckRoundTrip(job.registrations[i]);
    const std::variant<Registration, Refusals> wire = RegistrationFromProto(job.wire[i]);
    Require(std::holds_alternative<Registration>(wire) &&
                std::get<Registration>(wire) == job.registrations[i],
            "a file's worker differs from its layout on the wire");
  }
  if (SolveAndValidate(job.job)) ++outcome.plans;
}

void RunPart(const std::string& bytes, ConvertOutcome& outcome) {
  v1::Plan wire;
  if (!wire.ParseFromString(bytes)) return;
  const absl::StatusOr<PlanPart> part = PlanPartFromProto(wire);
  if (!part.ok()) return;
  const absl::StatusOr<PlanPart> again = PlanPartFromProto(ToProto(*part));
  Require(again.ok() && *again == *part, "a plan part changes on its way to the wire and back");
  outcome.part = true;
}

}  // namespace

ConvertOutcome RunConvertCase(std::span<const std::uint8_t> bytes) {
  const std::string text(bytes.begin(), bytes.end());
  ConvertOutcome outcome;
  RunLayout(text, outcome);
  RunPart(text, outcome);
  RunFile(text, outcome);
  return outcome;
}

}  // namespace wb::test
