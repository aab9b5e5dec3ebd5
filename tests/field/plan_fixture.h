#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "planner/lower/schedule.h"
#include "planner/model/plan_moves.h"
#include "planner/solve/planner.h"
#include "planner/solve/validate.h"
#include "proto/convert.h"
#include "tests/support/byte_walk.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"

namespace wb::test {

struct Planned {
  Job job;
  Plan plan;
};

inline std::variant<Planned, Refusals> PlanFile(const nlohmann::ordered_json& file) {
  std::variant<LoadedJob, Refusals> loaded = JobFromJson(file.dump());
  if (auto* refusals = std::get_if<Refusals>(&loaded)) return std::move(*refusals);
  Job job = std::get<LoadedJob>(std::move(loaded)).job;
  std::variant<Plan, Refusals> solved = Solve(job);
  if (auto* refusals = std::get_if<Refusals>(&solved)) return std::move(*refusals);
  return Planned{std::move(job), std::get<Plan>(std::move(solved))};
}

inline Planned MustPlan(const nlohmann::ordered_json& file) {
  std::variant<Planned, Refusals> planned = PlanFile(file);
  if (const auto* refusals = std::get_if<Refusals>(&planned)) {
    for (const Refusal& refusal : *refusals) UNSCOPED_INFO(refusal.text);
    FAIL("the file is refused");
  }
  Planned done = std::get<Planned>(std::move(planned));
  const absl::Status valid = ValidatePlan(done.job, done.plan);
  INFO(valid);
  REQUIRE(valid.ok());
  return done;
}

inline Refusals MustRefuse(const nlohmann::ordered_json& file) {
  std::variant<Planned, Refusals> planned = PlanFile(file);
  if (std::holds_alternative<Planned>(planned)) FAIL("the file is accepted");
  return std::get<Refusals>(std::move(planned));
}

inline bool AnyMentions(const Refusals& refusals, const std::vector<std::string>& words) {
  return std::any_of(refusals.begin(), refusals.end(), [&](const Refusal& refusal) {
    return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
      return refusal.text.find(word) != std::string::npos;
    });
  });
}

inline std::vector<std::string> TensorsOfKind(const Refusals& refusals, const std::string& kind) {
  std::vector<std::string> tensors;
  for (const Refusal& refusal : refusals) {
    if (refusal.kind == kind) tensors.push_back(refusal.tensor);
  }
  return tensors;
}

/// Per destination worker: the first indices (dimension 0) that land there, in the plan's order.
inline std::map<std::string, std::vector<std::int64_t>> RowsByWorker(const Planned& planned,
                                                                     const std::string& tensor) {
  std::map<std::string, std::vector<std::int64_t>> rows;
  for (const Move& move : AllMoves(planned.plan)) {
    if (planned.job.tensor(move.tensor).name != tensor) continue;
    for (std::int64_t row = move.box.lo()[0]; row < move.box.hi()[0]; ++row) {
      rows[planned.job.layout(move.dst).name.ToString()].push_back(row);
    }
  }
  return rows;
}

inline std::vector<std::int64_t> Rows(std::int64_t lo, std::int64_t hi) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = lo; row < hi; ++row) rows.push_back(row);
  return rows;
}

inline std::uint64_t EgressOf(const Planned& planned, const std::string& worker) {
  std::uint64_t bytes = 0;
  for (const Move& move : AllMoves(planned.plan)) {
    if (planned.job.layout(move.src).name.ToString() == worker) bytes += move.bytes;
  }
  return bytes;
}

/// The worker's first buffer after the plan has run, as elements of type T.
template <typename T>
std::vector<T> Received(const Planned& planned,
                        const std::string& worker,
                        const ElementValue& value) {
  const std::vector<Memory> memory = Execute(planned.job, planned.plan, kDefaultChunkBytes, value);
  const Bytes& bytes = memory[WorkerNamed(planned.job, worker).value()].front();
  std::vector<T> elements(bytes.size() / sizeof(T));
  std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
  return elements;
}

}  // namespace wb::test
