#include "client/wbctl/plan/plan_json.h"

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "client/wbctl/json_text.h"
#include "planner/model/plan_moves.h"

namespace wb {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Index& index) {
  Json list = Json::array();
  for (const std::int64_t value : index) list.push_back(value);
  return list;
}

// What the fullest NIC carries, over the least it could; 1 when that is 0.
double MaxOverBound(const Plan& plan) {
  if (plan.bound_bytes() == 0) return 1;
  return static_cast<double>(std::max(plan.max_egress_bytes, plan.max_ingress_bytes)) /
         static_cast<double>(plan.bound_bytes());
}

Json Summary(const Job& job, const Plan& plan, std::size_t moves) {
  Json unused = Json::array();
  for (const TensorId tensor : plan.unused) unused.push_back(job.tensor(tensor).name);
  Json ties = Json::array();
  for (const Tie& tie : plan.ties) {
    ties.push_back(
        {{"alias", job.tensor(tie.alias).name}, {"target", job.tensor(tie.target).name}});
  }
  return {{"bytes", plan.bytes},
          {"moves", moves},
          {"max_egress_bytes", plan.max_egress_bytes},
          {"max_ingress_bytes", plan.max_ingress_bytes},
          {"bound_bytes", plan.bound_bytes()},
          {"intra_node_bytes", plan.intra_node_bytes},
          {"unused", std::move(unused)},
          {"max_over_bound", MaxOverBound(plan)},
          {"bounds",
           {{"direct", plan.bounds.direct},
            {"fan_out", plan.bounds.fan_out},
            {"node_sharing", plan.bounds.node_sharing}}},
          {"ties", std::move(ties)},
          {"fingerprint", absl::StrCat(absl::Hex(plan.fingerprint.value(), absl::kZeroPad16))}};
}

}  // namespace

void WritePlanJson(const Job& job, const Plan& plan, std::ostream& out) {
  std::vector<std::string> workers;
  workers.reserve(job.layouts.size());
  for (const Layout& layout : job.layouts) workers.push_back(layout.name.ToString());
  out << "{\"moves\": [";
  const char* separator = "\n";
  std::size_t count = 0;
  for (const PlanGroup& group : plan.groups) {
    for (const Move& move : MovesOf(plan, group)) {
      const Json json{{"src", workers[move.src.value()]},
                      {"dst", workers[move.dst.value()]},
                      {"tensor", job.tensor(move.tensor).name},
                      {"box", {{"lo", ToJson(move.box.lo())}, {"hi", ToJson(move.box.hi())}}},
                      {"bytes", move.bytes}};
      out << separator << JsonText(json);
      separator = ",\n";
      ++count;
    }
  }
  out << "],\n\"summary\": " << JsonText(Summary(job, plan, count), 1) << "}\n";
}

void WritePlanSummaryJson(const Job& job, const Plan& plan, std::ostream& out) {
  out << JsonText(Json{{"summary", Summary(job, plan, CountMoves(plan))}}, 1) << '\n';
}

}  // namespace wb
