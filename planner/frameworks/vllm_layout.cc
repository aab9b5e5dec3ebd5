#include "planner/frameworks/vllm_layout.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/frameworks/engine_rank.h"
#include "planner/frameworks/size_checks.h"

namespace wb {
namespace {

std::int64_t RowParts(const VllmLayout& vllm) {
  return vllm.ep ? 1 : vllm.dp * vllm.tp;
}

EngineParts PartsOf(const VllmLayout& vllm) {
  const EngineParts::Of tp{"tp", vllm.tp};
  return {.attention = tp,
          .embedding = tp,
          .head = tp,
          .dense = tp,
          .shared_experts = tp,
          .expert_rows = {"dp x tp", RowParts(vllm)}};
}

// Experts that do not divide over the group go to its first ranks, one each.
std::vector<std::int64_t> ExpertsOf(std::int64_t experts, std::int64_t parts, std::int64_t index) {
  const std::int64_t each = experts / parts;
  const std::int64_t more = experts % parts;
  std::vector<std::int64_t> held(static_cast<std::size_t>(each + (index < more ? 1 : 0)));
  std::iota(held.begin(), held.end(), index * each + std::min(index, more));
  return held;
}

void CheckStages(const HfConfig& config, const VllmLayout& vllm, SizeChecks& checks) {
  if (vllm.pp_layers.empty()) return;
  const auto stages = static_cast<std::int64_t>(vllm.pp_layers.size());
  if (stages != vllm.pp) {
    checks.Refuse("the number of pp_layers", stages, absl::StrCat("want pp (", vllm.pp, ")"));
  }
  std::int64_t layers = 0;
  for (const std::int64_t count : vllm.pp_layers) layers += count;
  if (layers != config.layers) {
    checks.Refuse("the sum of pp_layers", layers,
                  absl::StrCat("want num_hidden_layers (", config.layers, ")"));
  }
}

// What tells a rank's layout from another's: without experts, not its replica.
struct Place {
  std::int64_t d = 0;
  std::int64_t p = 0;
  std::int64_t t = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

std::vector<Place> PlacesOf(const HfConfig& config, const VllmLayout& vllm) {
  std::vector<Place> places;
  for (std::int64_t r = 0; r < RanksOf(vllm); ++r) {
    const std::int64_t d = config.experts > 0 ? r / (vllm.pp * vllm.tp) : 0;
    places.push_back({d, r / vllm.tp % vllm.pp, r % vllm.tp});
  }
  return places;
}

Layout LayOutPlace(const ModelTensors& model,
                   const VllmLayout& vllm,
                   const PipelineStages& stages,
                   const Place& place) {
  const Share tp{vllm.tp, place.t};
  const std::int64_t flat = place.d * vllm.tp + place.t;
  const auto experts = [&](std::int64_t /*layer*/) {
    return ExpertsOf(model.config().experts, vllm.ep ? vllm.dp * vllm.tp : 1, vllm.ep ? flat : 0);
  };
  return LayOutEngineRank(model, {.layers = stages[static_cast<std::size_t>(place.p)].front(),
                                  .embedding = place.p == 0,
                                  .head = place.p + 1 == vllm.pp,
                                  .attention = tp,
                                  .embedding_rows = tp,
                                  .head_rows = tp,
                                  .dense = tp,
                                  .shared_experts = tp,
                                  .expert_rows = {RowParts(vllm), flat % RowParts(vllm)},
                                  .experts = experts,
                                  .fused_qkv_a = "fused_qkv_a_proj"});
}

}  // namespace

PipelineStages VllmStages(std::int64_t layers, std::int64_t pp) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(pp), layers / pp);
  const auto last = counts.end() - 1;
  for (std::int64_t i = 1; i <= layers % pp; ++i) ++*(last - i);
  return StagesOf(counts);
}

std::int64_t RanksOf(const VllmLayout& vllm) {
  return vllm.dp * vllm.pp * vllm.tp;
}

Refusals CheckSizes(const HfConfig& config, const VllmLayout& vllm) {
  SizeChecks checks;
  CheckEngine(config, PartsOf(vllm), checks);
  CheckStages(config, vllm, checks);
  if (RanksOf(vllm) > static_cast<std::int64_t>(kMaxWorkers)) {
    checks.Refuse("dp x pp x tp", RanksOf(vllm), absl::StrCat("want at most ", kMaxWorkers));
  }
  if (vllm.ep && config.experts == 0) {
    checks.Refuse("expert_parallel", 1, "want 0: the model has no experts");
  }
  return checks.refusals();
}

std::variant<RankLayouts, Refusals> LayOut(const ModelTensors& model, const VllmLayout& vllm) {
  const HfConfig& config = model.config();
  if (Refusals refusals = CheckSizes(config, vllm); !refusals.empty()) return refusals;
  const PipelineStages stages =
      vllm.pp_layers.empty() ? VllmStages(config.layers, vllm.pp) : StagesOf(vllm.pp_layers);
  return MakeRanks(PlacesOf(config, vllm),
                   [&](const Place& place) { return LayOutPlace(model, vllm, stages, place); });
}

}  // namespace wb
