// The bounds of plans in which rollouts pass on, element by element.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/planner/solve/solve_support.h"
#include "tests/support/byte_walk.h"
#include "tests/support/canonical_job.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::MustSolve;
using Element = std::pair<TensorId, Index>;

std::uint64_t DivideUp(std::uint64_t bytes, std::uint64_t by) {
  return (bytes + by - 1) / by;
}

// Each term of the bound, from elements alone.
class BruteForce {
 public:
  BruteForce(const Job& job, const Plan& plan) : job_(job) {
    for (const Tie& tie : plan.ties) targets_[tie.alias] = tie.target;
    for (std::size_t w = 0; w < job.layouts.size(); ++w) {
      if (job.layouts[w].role == Role::kTrainer) Hold(job.layouts[w]);
    }
    for (const Layout& layout : job.layouts) {
      if (layout.role == Role::kRollout) Want(layout);
    }
  }

  // If what is wanted on a node enters it once, without fan-out.
  std::uint64_t NodeSharing() const {
    std::uint64_t bound = 0;
    std::map<std::uint64_t, std::uint64_t> leaves;  // holders -> bytes
    for (const auto& [node, wanted] : wanted_) {
      for (const auto& [element, by] : wanted) {
        leaves[holders_.at(element)] += BytesOf(element);
      }
      for (std::uint64_t set = 1; set < (std::uint64_t{1} << receivers_.at(node)); ++set) {
        std::uint64_t bytes = 0;
        for (const auto& [element, by] : wanted) {
          if ((by & ~set) == 0) bytes += BytesOf(element);
        }
        bound = std::max(bound, DivideUp(bytes, static_cast<std::uint64_t>(std::popcount(set))));
      }
    }
    for (std::uint64_t set = 1; set < (std::uint64_t{1} << trainers_); ++set) {
      std::uint64_t bytes = 0;
      for (const auto& [holders, of] : leaves) bytes += (holders & ~set) == 0 ? of : 0;
      bound = std::max(bound, DivideUp(bytes, static_cast<std::uint64_t>(std::popcount(set))));
    }
    return bound;
  }

  std::uint64_t FanOut() const {
    std::uint64_t bound = std::max(most_, DivideUp(total_, trainers_ + rollouts_));
    for (std::uint64_t set = 1; set < (std::uint64_t{1} << trainers_); ++set) {
      std::uint64_t bytes = 0;
      for (const auto& [element, of] : crossing_) {
        if ((holders_.at(element) & ~set) == 0) bytes += of;
      }
      bound = std::max(bound, DivideUp(bytes, static_cast<std::uint64_t>(std::popcount(set))));
    }
    return bound;
  }

 private:
  std::set<Element> ElementsOf(const Layout& layout) const {
    std::set<Element> elements;
    for (const Piece& piece : layout.pieces) {
      const auto tie = targets_.find(piece.tensor);
      const TensorId tensor = tie == targets_.end() ? piece.tensor : tie->second;
      test::ForEachIndex(piece.box, [&](const Index& at) { elements.emplace(tensor, at); });
    }
    return elements;
  }

  void Hold(const Layout& layout) {
    for (const Element& element : ElementsOf(layout)) {
      holders_[element] |= std::uint64_t{1} << trainers_;
      nodes_[element].insert(layout.node);
    }
    ++trainers_;
  }

  std::uint64_t BytesOf(const Element& element) const {
    return static_cast<std::uint64_t>(DtypeBytes(job_.tensor(element.first).dtype));
  }

  void Want(const Layout& layout) {
    const std::uint64_t self = std::uint64_t{1} << receivers_[layout.node]++;
    std::uint64_t bytes = 0;
    for (const Element& element : ElementsOf(layout)) {
      if (nodes_.at(element).contains(layout.node)) continue;
      crossing_[element] = BytesOf(element);
      wanted_[layout.node][element] |= self;
      bytes += BytesOf(element);
    }
    most_ = std::max(most_, bytes);
    total_ += bytes;
    ++rollouts_;
  }

  const Job& job_;
  std::map<TensorId, TensorId> targets_;
  std::map<Element, std::uint64_t> holders_;                        // bits of trainers
  std::map<Element, std::set<std::string>> nodes_;                  // of its holders
  std::map<Element, std::uint64_t> crossing_;                       // -> bytes
  std::map<std::string, std::size_t> receivers_;                    // per node
  std::map<std::string, std::map<Element, std::uint64_t>> wanted_;  // bits of a node's receivers
  std::size_t trainers_ = 0;
  std::size_t rollouts_ = 0;
  std::uint64_t most_ = 0;
  std::uint64_t total_ = 0;
};

TEST_CASE(
    "the bounds with passing on equal what their elements say, and are no higher than without",
    "[planner][bound][property]") {
  const int round = GENERATE(range(0, 100));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng);
  const Plan plan = MustSolve(job);
  const BruteForce brute_force(job, plan);
  REQUIRE(plan.bounds.fan_out == brute_force.FanOut());
  REQUIRE(plan.bounds.node_sharing == brute_force.NodeSharing());
  REQUIRE(plan.bounds.fan_out <= plan.bounds.direct);
  REQUIRE(plan.bounds.node_sharing <= plan.bounds.direct);
}

TEST_CASE("forwarding lowers the bound where one trainer would send everything several times",
          "[planner][bound]") {
  test::JobBuilder builder;
  builder.AddTensor("w", Dtype::kInt8, {60});
  builder.Trainer(0, "t").Holds("w", {0}, {60});
  for (int r = 0; r < 5; ++r) {
    builder.Rollout("e" + std::to_string(r), 0, "n" + std::to_string(r)).Holds("w", {0}, {60});
  }
  const Plan plan = MustSolve(builder.Build());
  REQUIRE(plan.bounds.direct == 300);
  REQUIRE(plan.bounds.fan_out == 60);
}

TEST_CASE("Moonlight to sixteen engines is where forwarding counts", "[planner][bound]") {
  test::DeploymentShape shape = test::Moonlight();
  shape.engines = 16;
  const Plan plan = MustSolve(test::CanonicalJob(shape));
  REQUIRE(static_cast<double>(plan.bounds.direct) / 1e9 == Approx(16 * 4.052).epsilon(0.001));
  REQUIRE(static_cast<double>(plan.bounds.fan_out) / 1e9 == Approx(4.052).epsilon(0.05));
}

}  // namespace
}  // namespace wb
