#include "client/wbctl/plan/explanation_json.h"

#include <utility>

#include "client/wbctl/plan/readable.h"

namespace wb {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Spread& spread) {
  return {{"min", spread.min}, {"mean", spread.mean}, {"max", spread.max}};
}

Json ToJson(const RunShare& share) {
  return {{"contiguous_bytes", share.contiguous_bytes}, {"strided_bytes", share.strided_bytes}};
}

Json ToJson(const Job& job, const BusyNic& nic) {
  Json causes = Json::array();
  for (const Cause& cause : nic.causes) {
    causes.push_back(
        {{"tensors", cause.tensors}, {"holders", cause.holders}, {"bytes", cause.bytes}});
  }
  const Layout& layout = job.layout(nic.nic.worker);
  return {{"worker", layout.name.ToString()},
          {"node", layout.node},
          {"direction", NameOf(nic.nic.direction)},
          {"bytes", nic.bytes},
          {"peers", nic.peers},
          {"groups", nic.groups},
          {"causes", std::move(causes)},
          {"other_causes", nic.other_causes},
          {"other_bytes", nic.other_bytes}};
}

const char* NameOf(Binding::Kind kind) {
  switch (kind) {
    case Binding::Kind::kNothing:
      return "nothing";
    case Binding::Kind::kIngress:
      return "ingress";
    case Binding::Kind::kEgress:
      return "egress";
  }
  return "";
}

Json ToJson(const Job& job, const Binding& binding) {
  Json workers = Json::array();
  for (const WorkerIndex worker : binding.workers) {
    workers.push_back(job.layout(worker).name.ToString());
  }
  return {
      {"kind", NameOf(binding.kind)}, {"workers", std::move(workers)}, {"bytes", binding.bytes}};
}

Json WireJson(const ExplainedPlan& explained) {
  if (!explained.explanation.wire.has_value()) return nullptr;
  const WireTime& wire = *explained.explanation.wire;
  return {{"seconds", wire.seconds()},
          {"rail_seconds", wire.rail},
          {"nvlink_seconds", wire.nvlink},
          {"bound_seconds", wire.bound},
          {"rail_gb_per_s", explained.rates->rail_gb_per_s},
          {"nvlink_gb_per_s", explained.rates->nvlink_gb_per_s}};
}

}  // namespace

Json ExplanationJson(const ExplainedPlan& explained) {
  const Explanation& e = explained.explanation;
  Json ratios = Json::object();
  for (const BoundRatio& bound : e.bounds) ratios[bound.name] = bound.max_over_bound;
  Json busiest = Json::array();
  for (const BusyNic& nic : e.busiest) busiest.push_back(ToJson(explained.job, nic));
  Json replicas = Json::array();
  for (const ReplicaUse& use : e.replicas) {
    replicas.push_back({{"holders", use.holders},
                        {"bytes", use.bytes},
                        {"least_senders", use.least_senders},
                        {"mean_senders", use.mean_senders}});
  }
  return {{"tensors", explained.job.tensors.size()},
          {"refused", Json::array()},
          {"max_over_bounds", std::move(ratios)},
          {"binding", e.binding.has_value() ? ToJson(explained.job, *e.binding) : Json()},
          {"wire", WireJson(explained)},
          {"nic_bytes", {{"out", ToJson(e.out)}, {"in", ToJson(e.in)}}},
          {"full_nics", e.full_nics},
          {"busiest_nics", std::move(busiest)},
          {"replicas", std::move(replicas)},
          {"source", ToJson(e.survey.source)},
          {"destination", ToJson(e.survey.destination)}};
}

}  // namespace wb
