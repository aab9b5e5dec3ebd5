// The validator finds what is wrong with a plan that was tampered with.
#include "planner/solve/validate.h"

#include <string>
#include <vector>

#include "tests/planner/solve/solve_support.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"

namespace wb {
namespace {

using test::MustSolve;

Job TwoByTwo() {
  test::JobBuilder builder;
  builder.AddTensor("w", Dtype::kFp32, {8, 8}).AddTensor("x", Dtype::kFp32, {8, 8});
  for (int r = 0; r < 2; ++r) {
    builder.Trainer(r, "n0").Holds("w", {4 * r, 0}, {4 * r + 4, 8});
    builder.Holds("x", {0, 0}, {8, 8});
  }
  for (int r = 0; r < 2; ++r) {
    builder.Rollout("e", r, "n1").Holds("w", {0, 4 * r}, {8, 4 * r + 4});
    builder.Holds("x", {0, 0}, {8, 8});
  }
  return builder.Build();
}

std::string WhatIsWrong(const Job& job, const Plan& plan, const std::vector<Move>& moves) {
  const absl::Status status = ValidateMoves(job, plan, moves);
  REQUIRE(status.code() == absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

std::string WhatIsWrong(const Job& job, const Plan& plan) {
  return WhatIsWrong(job, plan, AllMoves(plan));
}

bool Mentions(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

TEST_CASE("a plan from which a move is missing does not tile its destination", "[planner][solve]") {
  const Job job = TwoByTwo();
  const Plan plan = MustSolve(job);
  std::vector<Move> moves = AllMoves(plan);
  moves.erase(moves.begin());
  REQUIRE(Mentions(WhatIsWrong(job, plan, moves), "16 of 32 elements"));
}

TEST_CASE("a move that is there twice is out of order", "[planner][solve]") {
  const Job job = TwoByTwo();
  const Plan plan = MustSolve(job);
  std::vector<Move> moves = AllMoves(plan);
  moves.insert(moves.begin(), moves.front());
  REQUIRE(Mentions(WhatIsWrong(job, plan, moves), "out of order"));
}

TEST_CASE("an element that moves in two boxes is found", "[planner][solve]") {
  const Job job = TwoByTwo();
  const Plan plan = MustSolve(job);
  std::vector<Move> moves = AllMoves(plan);
  const auto x = std::find_if(moves.begin(), moves.end(), [&](const Move& move) {
    return move.tensor == test::TensorNamed(job, "x");
  });
  Move again = *x;
  again.box = *Box::Create({7, 0}, {8, 8});
  again.bytes = 32;
  moves.insert(x + 1, again);
  REQUIRE(Mentions(WhatIsWrong(job, plan, moves), "move twice"));
}

TEST_CASE("a move from a trainer that does not hold its box is found", "[planner][solve]") {
  const Job job = TwoByTwo();
  const Plan plan = MustSolve(job);
  std::vector<Move> moves = AllMoves(plan);
  moves.front().src = moves.front().src == test::WorkerNamed(job, "policy/0")
                          ? test::WorkerNamed(job, "policy/1")
                          : test::WorkerNamed(job, "policy/0");
  REQUIRE(Mentions(WhatIsWrong(job, plan, moves), "not inside one piece"));
}

TEST_CASE("totals that do not add up are found", "[planner][solve]") {
  const Job job = TwoByTwo();
  const Plan plan = MustSolve(job);
  Plan wrong = plan;
  wrong.bytes += 1;
  REQUIRE(Mentions(WhatIsWrong(job, wrong), "totals"));
  wrong = plan;
  wrong.max_egress_bytes -= 1;
  REQUIRE(Mentions(WhatIsWrong(job, wrong), "totals"));
  wrong = plan;
  wrong.bounds.direct = plan.bytes + 1;
  REQUIRE(Mentions(WhatIsWrong(job, wrong), "bound"));
}

TEST_CASE("a tie between tensors of two storages is found", "[planner][solve]") {
  const Job job = TwoByTwo();
  Plan plan = MustSolve(job);
  plan.ties.push_back({test::TensorNamed(job, "x"), test::TensorNamed(job, "w")});
  REQUIRE(Mentions(WhatIsWrong(job, plan), "tie of x to w"));
}

// A chain of three engines: e0 gets "w" from the trainer, e1 from e0, e2 from e1.
struct Chain {
  explicit Chain(const std::string& node_of_e1 = "n1") {
    test::JobBuilder builder;
    builder.AddTensor("w", Dtype::kInt8, {8});
    builder.Trainer(0, "t").Holds("w", {0}, {8});
    builder.Rollout("e0", 0, "n0").Holds("w", {0}, {8});
    builder.Rollout("e1", 0, node_of_e1).Holds("w", {0}, {8});
    builder.Rollout("e2", 0, "n2").Holds("w", {0}, {8});
    job = builder.Build();
    plan = MustSolve(job, {.fan_out = true});
    moves = AllMoves(plan);
  }
  Job job;
  Plan plan;
  std::vector<Move> moves;  // to e0, to e1, to e2
};

TEST_CASE("a rollout may send only where the plan has fan-out", "[planner][solve][fan-out]") {
  Chain chain;
  REQUIRE(ValidateMoves(chain.job, chain.plan, chain.moves).ok());
  chain.plan.fan_out = false;
  REQUIRE(Mentions(WhatIsWrong(chain.job, chain.plan, chain.moves),
                   "does not go from a trainer to a rollout"));
}

TEST_CASE("receivers that wait for each other are found", "[planner][solve][fan-out]") {
  Chain chain;
  REQUIRE(chain.moves.size() == 3);
  chain.moves[0].src = chain.moves[2].dst;
  REQUIRE(Mentions(WhatIsWrong(chain.job, chain.plan, chain.moves), "waits for itself"));
}

TEST_CASE("what is relayed within a node is found", "[planner][solve][fan-out]") {
  Chain chain("n0");  // e1 gets its own from elsewhere
  REQUIRE(ValidateMoves(chain.job, chain.plan, chain.moves).ok());
  REQUIRE(chain.moves[1].src != chain.moves[0].dst);
  chain.moves[1].src = chain.moves[0].dst;
  REQUIRE(Mentions(WhatIsWrong(chain.job, chain.plan, chain.moves), "is relayed within node n0"));
}

}  // namespace
}  // namespace wb
