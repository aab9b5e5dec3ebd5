#include "planner/frameworks/megatron_layout.h"

#include <algorithm>
#include <compare>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "planner/base/divide_up.h"
#include "planner/frameworks/size_checks.h"

namespace wb {
namespace {

// What tells a rank's layout from another's.
struct Place {
  std::int64_t stage = 0;
  std::int64_t t = 0;  // of tp
  std::int64_t e = 0;  // of ep
  std::int64_t x = 0;  // of etp
  friend auto operator<=>(const Place&, const Place&) = default;
};

class MegatronRank {
 public:
  MegatronRank(const ModelTensors& model,
               const MegatronLayout& megatron,
               const PipelineStages& stages,
               const Place& place)
      : model_(model),
        config_(model.config()),
        megatron_(megatron),
        stages_(stages),
        place_(place),
        draft_(model) {}

  Layout Make() && {
    const std::vector<LayerRange>& chunks = stages_[static_cast<std::size_t>(place_.stage)];
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      chunk_ = chunks.size() > 1 ? absl::StrCat("model", chunk, ".") : "";
      if (place_.stage == 0 && chunk == 0) {
        AddVocabulary("embedding.word_embeddings.weight", *model_.Find(Weight::kEmbedding));
      }
      AddLayers(chunks[chunk]);
      if (IsLast() && chunk + 1 == chunks.size()) AddHead(chunks.size());
    }
    return std::move(draft_).Finish(Role::kTrainer);
  }

 private:
  bool IsLast() const { return place_.stage + 1 == megatron_.pipeline.pp; }

  // ---- outside layers ----

  void AddVocabulary(const std::string& name, TensorId tensor) {
    const std::int64_t unit = megatron_.vocab_divisor * megatron_.tp;
    const std::int64_t rows = DivideUp(config_.vocab, unit) * megatron_.vocab_divisor;
    const std::int64_t lo = std::min(place_.t * rows, config_.vocab);
    const std::int64_t hi = std::min(lo + rows, config_.vocab);
    draft_.AddParam(chunk_ + name, {rows, config_.hidden}, model_.dtype());
    draft_.Place({tensor, 0, lo, hi}, {0, 0});  // the rest is padding
  }

  // A tied head is the embedding, which the last stage keeps a copy of where it is not the first.
  void AddHead(std::size_t chunks) {
    draft_.Add(chunk_ + "decoder.final_layernorm.weight",
               draft_.Whole(*model_.Find(Weight::kFinalNorm)));
    const std::optional<TensorId> head = model_.Find(Weight::kHead);
    if (head.has_value()) AddVocabulary("output_layer.weight", *head);
    const bool copy = place_.stage != 0 || chunks > 1;
    if (!head.has_value() && copy) {
      AddVocabulary("output_layer.weight", *model_.Find(Weight::kEmbedding));
    }
  }

  // ---- a layer ----

  void AddLayers(const LayerRange& range) {
    for (std::int64_t i = 0; i < range.count; ++i) {
      layer_ = range.first + i;
      if (layer_ >= model_.layers()) return;
      prefix_ = absl::StrCat(chunk_, "decoder.layers.", i, ".");
      if (config_.latent) {
        AddLatentAttention();
      } else {
        AddGroupedAttention();
      }
      if (config_.sparse[static_cast<std::size_t>(layer_)]) {
        AddSparseMlp();
      } else {
        AddDenseMlp();
      }
    }
  }

  TensorId Get(Weight weight) const { return *model_.Find(weight, layer_); }
  std::int64_t Extent(Weight weight, std::size_t dim) const {
    return model_.tensor(Get(weight)).shape[dim];
  }
  Cut TpPart(Weight weight, std::size_t dim) const {
    return EqualPart(Get(weight), dim, Extent(weight, dim), megatron_.tp, place_.t);
  }

  void AddWhole(const char* name, Weight weight) {
    const std::optional<TensorId> tensor = model_.Find(weight, layer_);
    if (tensor.has_value()) draft_.Add(prefix_ + name, draft_.Whole(*tensor));
  }
  void AddTpPart(const char* name, Weight weight, std::size_t dim) {
    draft_.Add(prefix_ + name, TpPart(weight, dim));
  }

  // Query groups follow each other, each the queries, then its key, then its value.
  void AddGroups(const char* name, Weight q, Weight k, Weight v) {
    if (!model_.Find(q, layer_).has_value()) return;
    const std::int64_t groups = config_.kv_heads / megatron_.tp;
    const std::int64_t kv = config_.head_dim;
    const std::int64_t queries = config_.heads / config_.kv_heads * kv;
    std::vector<Cut> cuts;
    for (std::int64_t g = place_.t * groups; g < (place_.t + 1) * groups; ++g) {
      cuts.push_back({Get(q), 0, g * queries, (g + 1) * queries});
      cuts.push_back({Get(k), 0, g * kv, (g + 1) * kv});
      cuts.push_back({Get(v), 0, g * kv, (g + 1) * kv});
    }
    draft_.AddStacked(prefix_ + name, cuts);
  }

  void AddGroupedAttention() {
    AddWhole("self_attention.linear_qkv.layer_norm_weight", Weight::kInputNorm);
    AddGroups("self_attention.linear_qkv.weight", Weight::kQ, Weight::kK, Weight::kV);
    AddGroups("self_attention.linear_qkv.bias", Weight::kQBias, Weight::kKBias, Weight::kVBias);
    AddWhole("self_attention.q_layernorm.weight", Weight::kQNorm);
    AddWhole("self_attention.k_layernorm.weight", Weight::kKNorm);
    AddTpPart("self_attention.linear_proj.weight", Weight::kO, 1);
    AddWhole("self_attention.linear_proj.bias", Weight::kOBias);
  }

  void AddLatentAttention() {
    AddWhole("input_layernorm.weight", Weight::kInputNorm);
    if (config_.q_lora_rank == 0) {
      AddTpPart("self_attention.linear_q_proj.weight", Weight::kQ, 0);
    } else {
      AddWhole("self_attention.linear_q_down_proj.weight", Weight::kQA);
      AddWhole("self_attention.linear_q_up_proj.layer_norm_weight", Weight::kQANorm);
      AddTpPart("self_attention.linear_q_up_proj.weight", Weight::kQB, 0);
    }
    AddWhole("self_attention.linear_kv_down_proj.weight", Weight::kKvA);
    AddWhole("self_attention.linear_kv_up_proj.layer_norm_weight", Weight::kKvANorm);
    AddTpPart("self_attention.linear_kv_up_proj.weight", Weight::kKvB, 0);
    AddTpPart("self_attention.linear_proj.weight", Weight::kO, 1);
  }

  // The rank's rows of gate, then those of up.
  void AddGateUp(const char* name, Weight gate, Weight up) {
    if (!model_.Find(gate, layer_).has_value()) return;
    draft_.AddStacked(prefix_ + name, std::vector<Cut>{TpPart(gate, 0), TpPart(up, 0)});
  }

  void AddDenseMlp() {
    AddWhole("mlp.linear_fc1.layer_norm_weight", Weight::kPostNorm);
    AddGateUp("mlp.linear_fc1.weight", Weight::kGate, Weight::kUp);
    AddGateUp("mlp.linear_fc1.bias", Weight::kGateBias, Weight::kUpBias);
    AddTpPart("mlp.linear_fc2.weight", Weight::kDown, 1);
    AddWhole("mlp.linear_fc2.bias", Weight::kDownBias);
  }

  void AddSparseMlp() {
    AddWhole("pre_mlp_layernorm.weight", Weight::kPostNorm);
    AddWhole("mlp.router.weight", Weight::kRouter);
    AddWhole("mlp.router.expert_bias", Weight::kRouterBias);
    if (megatron_.experts == MegatronExperts::kLegacyGrouped) {
      AddStackedExperts();
    } else {
      AddExperts();
    }
    if (!model_.Find(Weight::kSharedGate, layer_).has_value()) return;
    AddGateUp("mlp.shared_experts.linear_fc1.weight", Weight::kSharedGate, Weight::kSharedUp);
    AddTpPart("mlp.shared_experts.linear_fc2.weight", Weight::kSharedDown, 1);
  }

  std::int64_t local_experts() const { return config_.experts / megatron_.ep; }
  Cut ExpertPart(Weight weight, std::int64_t local, std::size_t dim) const {
    const std::int64_t expert = place_.e * local_experts() + local;
    return EqualPart(model_.Expert(weight, layer_, expert), dim, config_.expert_intermediate,
                     megatron_.etp, place_.x);
  }

  void AddExperts() {
    const bool grouped = megatron_.experts == MegatronExperts::kGrouped;
    for (std::int64_t j = 0; j < local_experts(); ++j) {
      const std::string before =
          grouped ? "mlp.experts." : absl::StrCat("mlp.experts.local_experts.", j, ".");
      const std::string after = grouped ? absl::StrCat(j) : "";
      draft_.AddStacked(absl::StrCat(prefix_, before, "linear_fc1.weight", after),
                        std::vector<Cut>{ExpertPart(Weight::kExpertGate, j, 0),
                                         ExpertPart(Weight::kExpertUp, j, 0)});
      draft_.Add(absl::StrCat(prefix_, before, "linear_fc2.weight", after),
                 ExpertPart(Weight::kExpertDown, j, 1));
    }
  }

  // weight1 is [experts, hidden, gate and up], weight2 [experts, rows, hidden]: as the forward pass
  // views them, whatever shape Megatron declares the parameters with.
  void AddStackedExperts() {
    const std::int64_t rows = config_.expert_intermediate / megatron_.etp;
    const Index transposed{2, 1};
    draft_.AddParam(prefix_ + "mlp.experts.weight1", {local_experts(), config_.hidden, 2 * rows},
                    model_.dtype());
    for (std::int64_t j = 0; j < local_experts(); ++j) {
      draft_.Place(ExpertPart(Weight::kExpertGate, j, 0), {j, 0, 0}, transposed);
      draft_.Place(ExpertPart(Weight::kExpertUp, j, 0), {j, 0, rows}, transposed);
    }
    draft_.AddParam(prefix_ + "mlp.experts.weight2", {local_experts(), rows, config_.hidden},
                    model_.dtype());
    for (std::int64_t j = 0; j < local_experts(); ++j) {
      draft_.Place(ExpertPart(Weight::kExpertDown, j, 1), {j, 0, 0}, transposed);
    }
  }

  const ModelTensors& model_;
  const HfConfig& config_;
  const MegatronLayout& megatron_;
  const PipelineStages& stages_;
  const Place place_;
  LayoutDraft draft_;
  std::string chunk_;   // prefix of the chunk's params
  std::string prefix_;  // of the layer's
  std::int64_t layer_ = 0;
};

void CheckModel(const HfConfig& config, const MegatronLayout& megatron, SizeChecks& checks) {
  if (config.latent) {
    checks.DividesHeads("tp", megatron.tp, "num_attention_heads", config.heads,
                        config.q_head_rows());
  } else {
    checks.DividesHeads("tp", megatron.tp, "num_key_value_heads", config.kv_heads, config.head_dim);
  }
  if (config.intermediate > 0) {
    checks.Divides("tp", megatron.tp, "intermediate_size", config.intermediate);
  }
  if (config.shared_intermediate > 0) {
    checks.Divides("tp", megatron.tp, "the rows of the shared experts", config.shared_intermediate);
  }
  if (config.experts > 0) {
    checks.Divides("ep", megatron.ep, "the number of experts", config.experts);
    checks.Divides("etp", megatron.etp, "the rows of an expert", config.expert_intermediate);
    return;
  }
  if (megatron.ep != 1) checks.Refuse("ep", megatron.ep, "want 1: the model has no experts");
  if (megatron.etp != 1) checks.Refuse("etp", megatron.etp, "want 1: the model has no experts");
}

SizeChecks CheckParts(const HfConfig& config, const MegatronLayout& megatron) {
  SizeChecks checks;
  if (checks.Divides("pp", megatron.pipeline.pp, "ranks", megatron.ranks)) {
    const std::int64_t stage = megatron.ranks / megatron.pipeline.pp;
    checks.Divides("tp x cp", megatron.tp * megatron.cp, "the ranks of a stage", stage);
    if (config.experts > 0) {
      checks.Divides("ep x etp", megatron.ep * megatron.etp, "the ranks of a stage", stage);
    }
  }
  CheckModel(config, megatron, checks);
  return checks;
}

}  // namespace

std::int64_t RanksOf(const MegatronLayout& megatron) {
  return megatron.ranks;
}

Refusals CheckSizes(const HfConfig& config, const MegatronLayout& megatron) {
  Refusals refusals = CheckParts(config, megatron).refusals();
  std::variant<PipelineStages, Refusals> split = SplitLayers(megatron.pipeline, config.layers);
  if (auto* more = std::get_if<Refusals>(&split)) {
    std::move(more->begin(), more->end(), std::back_inserter(refusals));
  }
  return refusals;
}

std::variant<RankLayouts, Refusals> LayOut(const ModelTensors& model,
                                           const MegatronLayout& megatron) {
  if (Refusals refusals = CheckSizes(model.config(), megatron); !refusals.empty()) return refusals;
  const auto stages =
      std::get<PipelineStages>(SplitLayers(megatron.pipeline, model.config().layers));
  const std::int64_t stage_ranks = megatron.ranks / megatron.pipeline.pp;
  std::vector<Place> places;
  for (std::int64_t r = 0; r < megatron.ranks; ++r) {
    const std::int64_t in_stage = r % stage_ranks;
    places.push_back({r / stage_ranks, in_stage % megatron.tp,
                      in_stage / megatron.etp % megatron.ep, in_stage % megatron.etp});
  }
  return MakeRanks(places, [&](const Place& place) {
    return MegatronRank(model, megatron, stages, place).Make();
  });
}

}  // namespace wb
