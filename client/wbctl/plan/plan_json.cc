#include "client/wbctl/plan/plan_json.h"

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "client/wbctl/json_text.h"
#include "client/wbctl/plan/explanation_json.h"
#include "planner/model/plan_moves.h"

namespace wb {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Index& index) {
  Json list = Json::array();
  for (const std::int64_t value : index) list.push_back(value);
  return list;
}

Json Summary(const ExplainedPlan& explained) {
  const Job& job = explained.job;
  const Plan& plan = explained.plan;
  Json unused = Json::array();
  for (const TensorId tensor : plan.unused) unused.push_back(job.tensor(tensor).name);
  Json ties = Json::array();
  for (const Tie& tie : plan.ties) {
    ties.push_back(
        {{"alias", job.tensor(tie.alias).name}, {"target", job.tensor(tie.target).name}});
  }
  Json summary{
      {"bytes", plan.bytes},
      {"moves", explained.explanation.survey.moves},
      {"max_egress_bytes", plan.max_egress_bytes},
      {"max_ingress_bytes", plan.max_ingress_bytes},
      {"bound_bytes", plan.bound_bytes()},
      {"intra_node_bytes", plan.intra_node_bytes},
      {"unused", std::move(unused)},
      {"max_over_bound", explained.explanation.bounds.front().max_over_bound},
      {"bounds",
       {{"direct", plan.bounds.direct},
        {"fan_out", plan.bounds.fan_out},
        {"node_sharing", plan.bounds.node_sharing}}},
      {"ties", std::move(ties)},
      {"fingerprint", absl::StrCat(absl::Hex(plan.fingerprint.value(), absl::kZeroPad16))}};
  summary.update(ExplanationJson(explained));
  return summary;
}

}  // namespace

void WritePlanJson(const ExplainedPlan& explained, std::ostream& out) {
  const Job& job = explained.job;
  std::vector<std::string> workers;
  workers.reserve(job.layouts.size());
  for (const Layout& layout : job.layouts) workers.push_back(layout.name.ToString());
  out << "{\"moves\": [";
  const char* separator = "\n";
  for (const PlanGroup& group : explained.plan.groups) {
    for (const Move& move : MovesOf(explained.plan, group)) {
      const Json json{{"src", workers[move.src.value()]},
                      {"dst", workers[move.dst.value()]},
                      {"tensor", job.tensor(move.tensor).name},
                      {"box", {{"lo", ToJson(move.box.lo())}, {"hi", ToJson(move.box.hi())}}},
                      {"bytes", move.bytes}};
      out << separator << JsonText(json);
      separator = ",\n";
    }
  }
  out << "],\n\"summary\": " << JsonText(Summary(explained), 1) << "}\n";
}

void WritePlanSummaryJson(const ExplainedPlan& explained, std::ostream& out) {
  out << JsonText(Json{{"summary", Summary(explained)}}, 1) << '\n';
}

}  // namespace wb
