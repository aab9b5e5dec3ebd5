// The two layout files that we ship are planned within 2 % of the bound.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <variant>

#include "planner/solve/planner.h"
#include "planner/solve/validate.h"
#include "proto/convert.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

TEST_CASE("an example file's fullest NIC carries at most 1.02 times the bound", "[field][plan]") {
  const std::string name = GENERATE(as<std::string>(), "tiny-qwen3-moe", "tiny-deepseek-moe");
  std::ifstream in(std::string(WB_EXAMPLES) + "/" + name + ".json", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  INFO(name);
  const std::variant<LoadedJob, Refusals> loaded = JobFromJson(text);
  REQUIRE(std::holds_alternative<LoadedJob>(loaded));
  const Job& job = std::get<LoadedJob>(loaded).job;
  const std::variant<Plan, Refusals> solved = Solve(job);
  REQUIRE(std::holds_alternative<Plan>(solved));
  const Plan& plan = std::get<Plan>(solved);
  const std::uint64_t fullest = std::max(plan.max_egress_bytes, plan.max_ingress_bytes);
  REQUIRE(100 * fullest <= 102 * plan.bound_bytes());
  REQUIRE(plan.bound_bytes() > 0);
  REQUIRE(plan.unused.empty());
  REQUIRE(ValidatePlan(job, plan).ok());
}

}  // namespace
}  // namespace wb
