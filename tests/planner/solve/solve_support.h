#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "planner/model/plan_moves.h"
#include "planner/solve/planner.h"
#include "tests/support/catch.h"

namespace wb::test {

/// The plan; the test fails with the reasons if there is none.
inline Plan MustSolve(const Job& job, Routing routing = {}) {
  std::variant<Plan, Refusals> solved = Solve(job, std::nullopt, routing);
  if (const auto* refusals = std::get_if<Refusals>(&solved)) {
    for (const Refusal& refusal : *refusals) UNSCOPED_INFO(refusal.text);
    FAIL("the job is refused");
  }
  return std::get<Plan>(std::move(solved));
}

/// The reasons; the test fails if there is a plan.
inline Refusals MustRefuse(const Job& job) {
  std::variant<Plan, Refusals> solved = Solve(job);
  if (std::holds_alternative<Plan>(solved)) FAIL("the job is accepted");
  return std::get<Refusals>(std::move(solved));
}

inline std::vector<std::string> Texts(const Refusals& refusals) {
  std::vector<std::string> texts;
  for (const Refusal& refusal : refusals) texts.push_back(refusal.text);
  return texts;
}

/// "policy/0 -> engine0/0 q [0,0]..[8,2]" per move, in their order.
inline std::vector<std::string> MoveLines(const Job& job, const std::vector<Move>& moves) {
  std::vector<std::string> lines;
  for (const Move& move : moves) {
    lines.push_back(job.layout(move.src).name.ToString() + " -> " +
                    job.layout(move.dst).name.ToString() + " " + job.tensor(move.tensor).name +
                    " " + move.box.ToString());
  }
  return lines;
}
inline std::vector<std::string> MoveLines(const Job& job, const Plan& plan) {
  return MoveLines(job, AllMoves(plan));
}

}  // namespace wb::test
