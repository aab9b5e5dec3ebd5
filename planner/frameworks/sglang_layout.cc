#include "planner/frameworks/sglang_layout.h"

#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/frameworks/engine_rank.h"
#include "planner/frameworks/size_checks.h"

namespace wb {
namespace {

std::int64_t Slots(const HfConfig& config, const SglangLayout& sglang) {
  return config.experts + sglang.redundant_experts;
}

EngineParts PartsOf(const SglangLayout& sglang) {
  const std::int64_t attention = sglang.tp / sglang.dp;
  const bool head_by_attention = sglang.dp == 1 || sglang.dp_lm_head;
  const std::string attention_key = sglang.dp == 1 ? "tp" : "tp / dp";
  return {
      .attention = {attention_key, attention},
      .embedding = {attention_key, attention},
      .head = {head_by_attention ? attention_key : "tp", head_by_attention ? attention : sglang.tp},
      .dense = {"tp", sglang.dense_tp_one ? 1 : sglang.tp},
      .shared_experts = {"tp", sglang.shared_experts_whole.value_or(false) ? 1 : sglang.tp},
      .expert_rows = {"tp / ep", sglang.tp / sglang.ep}};
}

void CheckMap(const HfConfig& config,
              const SglangLayout& sglang,
              std::size_t list,
              SizeChecks& checks) {
  const std::vector<std::int64_t>& map = sglang.physical_to_logical[list];
  const std::string key = absl::StrCat("the length of physical_to_logical[", list, "]");
  const auto size = static_cast<std::int64_t>(map.size());
  if (size != Slots(config, sglang)) {
    checks.Refuse(key, size,
                  absl::StrCat("want one for each of ", Slots(config, sglang), " slots"));
    return;
  }
  std::vector<bool> held(static_cast<std::size_t>(config.experts), false);
  for (std::size_t slot = 0; slot < map.size(); ++slot) {
    if (map[slot] < 0 || map[slot] >= config.experts) {
      checks.Refuse(absl::StrCat("physical_to_logical[", list, "][", slot, "]"), map[slot],
                    absl::StrCat("want an expert from 0 below ", config.experts));
      return;
    }
    held[static_cast<std::size_t>(map[slot])] = true;
  }
  for (std::size_t expert = 0; expert < held.size(); ++expert) {
    if (held[expert]) continue;
    checks.Refuse(absl::StrCat("the slots of physical_to_logical[", list, "] with expert ", expert),
                  0, "want at least 1");
    return;
  }
}

void CheckExperts(const HfConfig& config, const SglangLayout& sglang, SizeChecks& checks) {
  if (config.experts == 0) {
    if (sglang.ep != 1) checks.Refuse("ep", sglang.ep, "want 1: the model has no experts");
    if (sglang.redundant_experts != 0) {
      checks.Refuse("redundant_experts", sglang.redundant_experts,
                    "want 0: the model has no experts");
    }
    if (const auto lists = static_cast<std::int64_t>(sglang.physical_to_logical.size());
        lists != 0) {
      checks.Refuse("the number of lists of physical_to_logical", lists,
                    "want 0: the model has no experts");
    }
    return;
  }
  checks.Divides("ep", sglang.ep, "the experts and redundant_experts", Slots(config, sglang));
  const auto lists = static_cast<std::int64_t>(sglang.physical_to_logical.size());
  if (lists > 1 && lists != config.layers) {
    checks.Refuse("the number of lists of physical_to_logical", lists,
                  absl::StrCat("want 1, or one for each of ", config.layers, " layers"));
  }
  for (std::size_t i = 0; i < sglang.physical_to_logical.size(); ++i) {
    CheckMap(config, sglang, i, checks);
  }
}

// The experts of the layer in slots [q * local, (q + 1) * local).
std::vector<std::int64_t> ExpertsOf(const HfConfig& config,
                                    const SglangLayout& sglang,
                                    std::int64_t q,
                                    std::int64_t layer) {
  const std::int64_t local = Slots(config, sglang) / sglang.ep;
  std::vector<std::int64_t> slots(static_cast<std::size_t>(local));
  std::iota(slots.begin(), slots.end(), q * local);
  const auto& maps = sglang.physical_to_logical;
  for (std::int64_t& slot : slots) {
    slot = maps.empty() ? slot % config.experts
                        : maps[maps.size() == 1 ? 0 : static_cast<std::size_t>(layer)]
                              [static_cast<std::size_t>(slot)];
  }
  return slots;
}

}  // namespace

std::int64_t RanksOf(const SglangLayout& sglang) {
  return sglang.tp;
}

Refusals CheckSizes(const HfConfig& config, const SglangLayout& sglang) {
  SizeChecks checks;
  const bool divide = checks.Divides("dp", sglang.dp, "tp", sglang.tp) &&
                      checks.Divides("ep", sglang.ep, "tp", sglang.tp);
  if (divide) {
    CheckEngine(config, PartsOf(sglang), checks);
    CheckExperts(config, sglang, checks);
  }
  if (sglang.shared_experts_whole.has_value() && config.shared_intermediate == 0) {
    checks.Refuse("shared_experts", *sglang.shared_experts_whole ? "whole" : "cut",
                  "want it left out: the model has none");
  }
  if (sglang.dense_tp_one && (config.experts == 0 || config.intermediate == 0)) {
    checks.Refuse("moe_dense_tp", 1,
                  absl::StrCat("want it left out: the model has no ",
                               config.experts == 0 ? "experts" : "dense layers"));
  }
  return checks.refusals();
}

std::variant<RankLayouts, Refusals> LayOut(const ModelTensors& model, const SglangLayout& sglang) {
  const HfConfig& config = model.config();
  if (Refusals refusals = CheckSizes(config, sglang); !refusals.empty()) return refusals;
  const EngineParts parts = PartsOf(sglang);
  const auto share = [](const EngineParts::Of& of, std::int64_t rank) {
    return Share{of.parts, rank % of.parts};
  };
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(sglang.tp));
  std::iota(ranks.begin(), ranks.end(), 0);
  return MakeRanks(ranks, [&](std::int64_t r) {
    const std::int64_t q = r / parts.expert_rows.parts;
    return LayOutEngineRank(
        model,
        {.layers = {0, config.layers},
         .attention = share(parts.attention, r),
         .embedding_rows = share(parts.embedding, r),
         .head_rows = share(parts.head, r),
         .dense = share(parts.dense, r),
         .shared_experts = share(parts.shared_experts, r),
         .expert_rows = share(parts.expert_rows, r),
         .experts = [&, q](std::int64_t layer) { return ExpertsOf(config, sglang, q, layer); },
         .fused_qkv_a = "fused_qkv_a_proj_with_mqa"});
  });
}

}  // namespace wb
