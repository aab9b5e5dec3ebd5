#include "planner/frameworks/engine_rank.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/base/divide_up.h"
#include "planner/frameworks/layout_draft.h"

namespace wb {
namespace {

// Engines round the vocabulary up to a multiple of this, whatever the number of ranks.
constexpr std::int64_t kVocabUnit = 64;

std::int64_t PaddedVocab(const HfConfig& config) {
  return DivideUp(config.vocab, kVocabUnit) * kVocabUnit;
}

class EngineLayout {
 public:
  EngineLayout(const ModelTensors& model, const EngineRank& rank)
      : model_(model), config_(model.config()), rank_(rank), draft_(model) {}

  Layout Make() && {
    const bool tied_copy = config_.tied && rank_.head;  // the head is the embedding itself
    if (rank_.embedding || tied_copy) {
      AddVocabulary("model.embed_tokens.weight", *model_.Find(Weight::kEmbedding),
                    rank_.embedding_rows);
    }
    const std::int64_t end = std::min(rank_.layers.first + rank_.layers.count, model_.layers());
    for (layer_ = rank_.layers.first; layer_ < end; ++layer_) AddLayer();
    if (rank_.head) {
      draft_.Add("model.norm.weight", draft_.Whole(*model_.Find(Weight::kFinalNorm)));
      const std::optional<TensorId> head = model_.Find(Weight::kHead);
      if (head.has_value()) AddVocabulary("lm_head.weight", *head, rank_.head_rows);
    }
    return std::move(draft_).Finish(Role::kRollout);
  }

 private:
  void AddVocabulary(const char* name, TensorId tensor, const Share& share) {
    const std::int64_t rows = PaddedVocab(config_) / share.parts;
    const std::int64_t lo = std::min(share.index * rows, config_.vocab);
    const std::int64_t hi = std::min(lo + rows, config_.vocab);
    draft_.AddParam(name, {rows, config_.hidden}, model_.dtype());
    draft_.Place({tensor, 0, lo, hi}, {0, 0});
  }

  void AddLayer() {
    prefix_ = absl::StrCat("model.layers.", layer_, ".");
    AddWhole("input_layernorm.weight", Weight::kInputNorm);
    AddWhole("post_attention_layernorm.weight", Weight::kPostNorm);
    if (config_.latent) {
      AddLatentAttention();
    } else {
      AddGroupedAttention();
    }
    if (config_.sparse[static_cast<std::size_t>(layer_)]) {
      AddSparseMlp();
    } else {
      AddGateUp("mlp.gate_up_proj.weight", Weight::kGate, Weight::kUp, rank_.dense);
      AddGateUp("mlp.gate_up_proj.bias", Weight::kGateBias, Weight::kUpBias, rank_.dense);
      AddPart("mlp.down_proj.weight", Weight::kDown, 1, rank_.dense);
      AddWhole("mlp.down_proj.bias", Weight::kDownBias);
    }
  }

  // ---- params of a weight, where the model has it ----

  bool Has(Weight weight) const { return model_.Find(weight, layer_).has_value(); }
  Cut Part(Weight weight, std::size_t dim, const Share& share) const {
    const TensorId tensor = *model_.Find(weight, layer_);
    return EqualPart(tensor, dim, model_.tensor(tensor).shape[dim], share.parts, share.index);
  }
  void AddWhole(const char* name, Weight weight) { AddPart(name, weight, 0, {}); }
  void AddPart(const char* name, Weight weight, std::size_t dim, const Share& share) {
    if (Has(weight)) draft_.Add(prefix_ + name, Part(weight, dim, share));
  }
  void AddGateUp(const char* name, Weight gate, Weight up, const Share& share) {
    if (!Has(gate)) return;
    draft_.AddStacked(prefix_ + name, std::vector<Cut>{Part(gate, 0, share), Part(up, 0, share)});
  }

  // ---- attention ----

  // Where there are more ranks than key heads, several ranks have the same one.
  Share KeyShare() const {
    const std::int64_t parts = std::min(rank_.attention.parts, config_.kv_heads);
    return {parts, rank_.attention.index / (rank_.attention.parts / parts)};
  }

  void AddQkv(const char* name, Weight q, Weight k, Weight v) {
    if (!Has(q)) return;
    draft_.AddStacked(prefix_ + name,
                      std::vector<Cut>{Part(q, 0, rank_.attention), Part(k, 0, KeyShare()),
                                       Part(v, 0, KeyShare())});
  }

  void AddGroupedAttention() {
    AddQkv("self_attn.qkv_proj.weight", Weight::kQ, Weight::kK, Weight::kV);
    AddQkv("self_attn.qkv_proj.bias", Weight::kQBias, Weight::kKBias, Weight::kVBias);
    AddWhole("self_attn.q_norm.weight", Weight::kQNorm);
    AddWhole("self_attn.k_norm.weight", Weight::kKNorm);
    AddPart("self_attn.o_proj.weight", Weight::kO, 1, rank_.attention);
    AddWhole("self_attn.o_proj.bias", Weight::kOBias);
  }

  void AddLatentAttention() {
    if (Has(Weight::kQA)) {
      draft_.AddStacked(prefix_ + "self_attn." + rank_.fused_qkv_a + ".weight",
                        std::vector<Cut>{Part(Weight::kQA, 0, {}), Part(Weight::kKvA, 0, {})});
      AddWhole("self_attn.q_a_layernorm.weight", Weight::kQANorm);
      AddPart("self_attn.q_b_proj.weight", Weight::kQB, 0, rank_.attention);
    } else {
      AddPart("self_attn.q_proj.weight", Weight::kQ, 0, rank_.attention);
      AddWhole("self_attn.kv_a_proj_with_mqa.weight", Weight::kKvA);
    }
    AddWhole("self_attn.kv_a_layernorm.weight", Weight::kKvANorm);
    AddPart("self_attn.kv_b_proj.weight", Weight::kKvB, 0, rank_.attention);
    AddPart("self_attn.o_proj.weight", Weight::kO, 1, rank_.attention);
  }

  // ---- experts ----

  void AddSparseMlp() {
    const std::string mlp = config_.mixtral_names ? "block_sparse_moe." : "mlp.";
    AddWhole((mlp + "gate.weight").c_str(), Weight::kRouter);
    AddWhole((mlp + "gate.e_score_correction_bias").c_str(), Weight::kRouterBias);
    AddExperts(prefix_ + mlp + "experts.");
    AddGateUp("mlp.shared_experts.gate_up_proj.weight", Weight::kSharedGate, Weight::kSharedUp,
              rank_.shared_experts);
    AddPart("mlp.shared_experts.down_proj.weight", Weight::kSharedDown, 1, rank_.shared_experts);
  }

  Cut ExpertPart(Weight weight, std::int64_t expert, std::size_t dim) const {
    return EqualPart(model_.Expert(weight, layer_, expert), dim, config_.expert_intermediate,
                     rank_.expert_rows.parts, rank_.expert_rows.index);
  }

  void AddExperts(const std::string& prefix) {
    const std::vector<std::int64_t> slots = rank_.experts(layer_);
    const auto count = static_cast<std::int64_t>(slots.size());
    const std::int64_t rows = config_.expert_intermediate / rank_.expert_rows.parts;
    draft_.AddParam(prefix + "w13_weight", {count, 2 * rows, config_.hidden}, model_.dtype());
    for (std::int64_t slot = 0; slot < count; ++slot) {
      const std::int64_t expert = slots[static_cast<std::size_t>(slot)];
      draft_.Place(ExpertPart(Weight::kExpertGate, expert, 0), {slot, 0, 0});
      draft_.Place(ExpertPart(Weight::kExpertUp, expert, 0), {slot, rows, 0});
    }
    draft_.AddParam(prefix + "w2_weight", {count, config_.hidden, rows}, model_.dtype());
    for (std::int64_t slot = 0; slot < count; ++slot) {
      const std::int64_t expert = slots[static_cast<std::size_t>(slot)];
      draft_.Place(ExpertPart(Weight::kExpertDown, expert, 1), {slot, 0, 0});
    }
  }

  const ModelTensors& model_;
  const HfConfig& config_;
  const EngineRank& rank_;
  LayoutDraft draft_;
  std::string prefix_;  // of the layer's params
  std::int64_t layer_ = 0;
};

void CheckHeads(const HfConfig& config, const EngineParts::Of& of, SizeChecks& checks) {
  if (!checks.DividesHeads(of.key, of.parts, "num_attention_heads", config.heads,
                           config.q_head_rows())) {
    return;
  }
  if (config.latent || config.kv_heads % of.parts == 0 || of.parts % config.kv_heads == 0) return;
  checks.Refuse(of.key, of.parts,
                absl::StrCat("want one that divides num_key_value_heads (", config.kv_heads,
                             ") or is a multiple of it"));
}

}  // namespace

Layout LayOutEngineRank(const ModelTensors& model, const EngineRank& rank) {
  return EngineLayout(model, rank).Make();
}

void CheckEngine(const HfConfig& config, const EngineParts& parts, SizeChecks& checks) {
  const auto divides = [&](const EngineParts::Of& of, const std::string& what,
                           std::int64_t extent) {
    if (extent > 0) checks.Divides(of.key, of.parts, what, extent);
  };
  CheckHeads(config, parts.attention, checks);
  const std::string vocab = absl::StrCat("vocab_size rounded up to ", kVocabUnit);
  divides(parts.embedding, vocab, PaddedVocab(config));
  if (!config.tied && (parts.head.parts != parts.embedding.parts)) {
    divides(parts.head, vocab, PaddedVocab(config));
  }
  divides(parts.dense, "intermediate_size", config.intermediate);
  divides(parts.shared_experts, "the rows of the shared experts", config.shared_intermediate);
  divides(parts.expert_rows, "the rows of an expert", config.expert_intermediate);
}

}  // namespace wb
