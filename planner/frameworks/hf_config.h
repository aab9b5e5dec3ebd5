#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "planner/model/refusal.h"

namespace wb {

/// What a Hugging Face config.json says about the tensors of a model: their number and shapes, and
/// nothing about how they are computed with. Plain value, made by ParseHfConfig.
///
/// Invariant: every extent is from 1 to kMaxExtent (vocab: kMaxVocab), and 0 only where it says
/// "none" here; so the elements of any tensor, and of any stack of a layer's experts, fit 63 bits
/// with room for the size of an element.
struct HfConfig {
  std::string architecture;  // "Qwen3MoeForCausalLM"
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t heads = 0;

  bool latent = false;        // multi-head latent attention (MLA); else grouped queries
  std::int64_t kv_heads = 0;  // grouped queries only, as head_dim
  std::int64_t head_dim = 0;
  std::int64_t q_lora_rank = 0;  // latent only, as the next four; 0: none, q_proj is whole
  std::int64_t kv_lora_rank = 0;
  std::int64_t nope_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t v_dim = 0;

  bool qkv_bias = false;
  bool o_bias = false;
  bool qk_norm = false;  // of each head
  bool mlp_bias = false;

  std::int64_t intermediate = 0;         // of dense layers; 0: there are none
  std::int64_t experts = 0;              // routed, in each sparse layer; 0: no layer is sparse
  std::int64_t expert_intermediate = 0;  // 0: no experts
  std::int64_t shared_intermediate = 0;  // of all shared experts, one MLP; 0: none
  bool router_bias = false;              // e_score_correction_bias, FP32
  std::vector<bool> sparse;              // per layer: has experts
  bool mixtral_names = false;            // block_sparse_moe.experts.{e}.w1, w3, w2
  bool tied = false;                     // the head is the embedding

  static constexpr std::int64_t kMaxExtent = 1 << 20;
  static constexpr std::int64_t kMaxVocab = 1 << 24;
  static constexpr std::int64_t kMaxLayers = 1 << 12;
  static constexpr std::int64_t kMaxHeads = 1 << 12;
  static constexpr std::int64_t kMaxExperts = 1 << 14;

  /// Rows of one head of q_proj (q_b_proj).
  std::int64_t q_head_rows() const { return latent ? nope_dim + rope_dim : head_dim; }
  /// Columns of one head of o_proj.
  std::int64_t o_head_columns() const { return latent ? v_dim : head_dim; }
  /// Rows of one head of kv_b_proj; latent only.
  std::int64_t kv_b_head_rows() const { return nope_dim + v_dim; }

  friend bool operator==(const HfConfig&, const HfConfig&) = default;
};

/// The config in `json`, or every reason why it is refused (kind "model"), each with `file`, the
/// key and its value. Known: Qwen2, Qwen3, Qwen3 MoE, Llama, Mixtral, DeepSeek-V2 and -V3
/// (Moonlight, Kimi-K2). Keys that say nothing about the tensors may be missing; layers for
/// multi-token prediction are left out, as trainers and engines leave them out;
/// `quantization_config` is not looked at: it is about the published files, and the dtype is the
/// deployment's.
[[nodiscard]] std::variant<HfConfig, Refusals> ParseHfConfig(std::string_view json,
                                                             const std::string& file);

}  // namespace wb
