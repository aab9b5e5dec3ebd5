#include "tests/support/canonical_job.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tests/support/job_builder.h"

namespace wb::test {
namespace {

constexpr std::int64_t kWorkersPerNode = 8;
constexpr std::int64_t kMlaRows = 192;    // of a head of q: 128 and 64 with positions
constexpr std::int64_t kMlaKvRows = 256;  // of a head of kv_b: 128 of k, 128 of v
constexpr std::int64_t kHeadRows = 128;
constexpr std::int64_t kKvLora = 512;
constexpr std::int64_t kKvRows = kKvLora + 64;

// What is cut how: by heads or rows (dimension 0), columns (dimension 1), or not at all.
enum class Cut : std::uint8_t { kWhole, kRows, kColumns };

// One tensor of the model and how either side cuts it.
struct Entry {
  Tensor tensor;
  std::int64_t layer = 0;    // -1: with the first stage; the number of layers: with the last
  std::int64_t expert = -1;  // -1: none
  Cut cut = Cut::kWhole;
  bool attention = false;  // an engine cuts it over attention_tp, not over all its ranks
  bool whole_at_engine = false;
  std::int64_t parts = INT64_MAX;  // at most: heads of k and v
  std::int64_t trainer_rows = 1;   // a trainer's shard has a multiple of them, the last one fewer
};

std::string Padded(std::int64_t number, std::size_t digits) {
  const std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

// Collects a model's tensors. Used once by CanonicalJob.
class ModelTensors {
 public:
  explicit ModelTensors(const DeploymentShape& shape) : shape_(shape), model_(shape.model) {}

  std::vector<Entry> List() && {
    AddVocabulary("model.embed_tokens.weight", -1);
    for (layer_ = 0; layer_ < model_.layers; ++layer_) AddLayer();
    Add({Bf16("model.norm.weight", {model_.hidden}), model_.layers});
    AddVocabulary("lm_head.weight", model_.layers);
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.tensor.name < b.tensor.name; });
    return std::move(entries_);
  }

 private:
  static Tensor Bf16(std::string name, Index shape) {
    return {std::move(name), Dtype::kBf16, std::move(shape), false};
  }
  void Add(Entry entry) { entries_.push_back(std::move(entry)); }
  void AddVocabulary(const std::string& name, std::int64_t layer) {
    Entry entry{Bf16(name, {model_.vocab, model_.hidden}), layer, -1, Cut::kRows};
    entry.attention = true;
    entry.trainer_rows = 128;
    Add(std::move(entry));
  }
  void AddToLayer(const std::string& name, Index shape, Cut cut = Cut::kWhole) {
    Entry entry{Bf16("model.layers." + std::to_string(layer_) + "." + name, std::move(shape)),
                layer_, -1, cut};
    entry.attention = name.starts_with("self_attn.");
    if (name.starts_with("self_attn.k_proj") || name.starts_with("self_attn.v_proj")) {
      entry.parts = model_.kv_heads;
    }
    entry.whole_at_engine = shape_.whole_dense_mlp && name.starts_with("mlp.") &&
                            name.find("shared") == std::string::npos;
    Add(std::move(entry));
  }

  void AddLayer() {
    AddToLayer("input_layernorm.weight", {model_.hidden});
    AddToLayer("post_attention_layernorm.weight", {model_.hidden});
    if (model_.kv_heads > 0) {
      AddGroupedAttention();
    } else {
      AddLatentAttention();
    }
    if (layer_ < model_.dense_layers) {
      AddMlp("mlp.", model_.dense_rows);
    } else {
      AddExperts();
    }
  }

  void AddGroupedAttention() {
    const std::int64_t hidden = model_.hidden;
    AddToLayer("self_attn.q_proj.weight", {model_.heads * kHeadRows, hidden}, Cut::kRows);
    for (const char* name : {"self_attn.k_proj.weight", "self_attn.v_proj.weight"}) {
      AddToLayer(name, {model_.kv_heads * kHeadRows, hidden}, Cut::kRows);
    }
    AddToLayer("self_attn.q_norm.weight", {kHeadRows});
    AddToLayer("self_attn.k_norm.weight", {kHeadRows});
    AddToLayer("self_attn.o_proj.weight", {hidden, model_.heads * kHeadRows}, Cut::kColumns);
  }

  void AddLatentAttention() {
    const std::int64_t hidden = model_.hidden;
    const std::int64_t rows = model_.heads * kMlaRows;
    if (model_.q_lora > 0) {
      AddToLayer("self_attn.q_a_proj.weight", {model_.q_lora, hidden});
      AddToLayer("self_attn.q_a_layernorm.weight", {model_.q_lora});
      AddToLayer("self_attn.q_b_proj.weight", {rows, model_.q_lora}, Cut::kRows);
    } else {
      AddToLayer("self_attn.q_proj.weight", {rows, hidden}, Cut::kRows);
    }
    AddToLayer("self_attn.kv_a_proj_with_mqa.weight", {kKvRows, hidden});
    AddToLayer("self_attn.kv_a_layernorm.weight", {kKvLora});
    AddToLayer("self_attn.kv_b_proj.weight", {model_.heads * kMlaKvRows, kKvLora}, Cut::kRows);
    AddToLayer("self_attn.o_proj.weight", {hidden, model_.heads * kHeadRows}, Cut::kColumns);
  }

  void AddMlp(const std::string& prefix, std::int64_t rows) {
    AddToLayer(prefix + "gate_proj.weight", {rows, model_.hidden}, Cut::kRows);
    AddToLayer(prefix + "up_proj.weight", {rows, model_.hidden}, Cut::kRows);
    AddToLayer(prefix + "down_proj.weight", {model_.hidden, rows}, Cut::kColumns);
  }

  void AddExperts() {
    AddToLayer("mlp.gate.weight", {model_.experts, model_.hidden});
    if (model_.kv_heads == 0) {
      AddToLayer("mlp.gate.e_score_correction_bias", {model_.experts});
      entries_.back().tensor.dtype = Dtype::kFp32;
    }
    if (model_.shared_rows > 0) AddMlp("mlp.shared_experts.", model_.shared_rows);
    for (std::int64_t e = 0; e < model_.experts; ++e) {
      const std::size_t first = entries_.size();
      AddMlp("mlp.experts." + std::to_string(e) + ".", model_.expert_rows);
      for (std::size_t i = first; i < entries_.size(); ++i) {
        entries_[i].expert = e;
        entries_[i].cut = Cut::kWhole;
      }
    }
  }

  const DeploymentShape& shape_;
  const ModelShape& model_;
  std::int64_t layer_ = 0;
  std::vector<Entry> entries_;
};

// Cuts the model for one worker after the other. Used once by CanonicalJob.
class Cutter {
 public:
  explicit Cutter(const DeploymentShape& shape)
      : shape_(shape), entries_(ModelTensors(shape).List()) {}

  Job Make() && {
    Job job;
    job.name = shape_.model.name;
    for (const Entry& entry : entries_) job.tensors.push_back(entry.tensor);
    std::vector<Layout> ranks;
    for (std::int64_t r = 0; r < shape_.ranks; ++r) ranks.push_back(EngineRank(r));
    for (std::int64_t e = 0; e < shape_.engines; ++e) {
      for (std::int64_t r = 0; r < shape_.ranks; ++r) {
        Layout& layout = job.layouts.emplace_back(ranks[static_cast<std::size_t>(r)]);
        Name(layout, "engine" + Padded(e, 3), r, "r", e * shape_.ranks + r);
      }
    }
    // Expert data parallel ranks hold the same.
    const std::int64_t period = std::max(shape_.ep, shape_.tp);
    const std::int64_t per_stage = shape_.trainers / shape_.pp;
    for (std::int64_t w = 0; w < shape_.trainers; ++w) {
      const std::int64_t twin = w / per_stage * per_stage + w % per_stage % period;
      const std::size_t first = job.layouts.size() - static_cast<std::size_t>(w - twin);
      Layout layout = twin < w ? job.layouts[first] : TrainerRank(w / per_stage, w % per_stage);
      Name(layout, "policy", w, "t", w);
      job.layouts.push_back(std::move(layout));
    }
    return job;
  }

 private:
  static void Name(Layout& layout,
                   const std::string& group,
                   std::int64_t rank,
                   const std::string& node,
                   std::int64_t worker) {
    layout.name = {group, static_cast<std::int32_t>(rank)};
    layout.node = node + Padded(worker / kWorkersPerNode, 4);
  }

  std::int64_t StageOf(std::int64_t layer) const {
    const std::int64_t layers = shape_.model.layers;
    if (layer < 0) return 0;
    if (layer >= layers || shape_.pp == 1) return shape_.pp - 1;
    const std::int64_t last =
        shape_.last_stage_layers > 0 ? shape_.last_stage_layers : layers / shape_.pp;
    return std::min(layer / ((layers - last) / (shape_.pp - 1)), shape_.pp - 1);
  }

  Layout TrainerRank(std::int64_t stage, std::int64_t rank) const {
    Layout layout;
    layout.role = Role::kTrainer;
    const std::int64_t held = shape_.model.experts / shape_.ep;
    for (const Entry& entry : entries_) {
      if (StageOf(entry.layer) != stage) continue;
      if (entry.expert >= 0 && entry.expert / held != rank % shape_.ep) continue;
      Hold(layout, entry, rank % shape_.tp, shape_.tp, entry.trainer_rows);
    }
    return layout;
  }

  Layout EngineRank(std::int64_t rank) const {
    Layout layout;
    layout.role = Role::kRollout;
    const std::int64_t held = shape_.model.experts / shape_.ranks;
    for (const Entry& entry : entries_) {
      if (entry.expert >= 0 && entry.expert / held != rank) continue;
      const std::int64_t ways = entry.attention ? shape_.attention_tp : shape_.ranks;
      Hold(layout, entry, rank % ways, entry.whole_at_engine ? 1 : ways, 1);
    }
    return layout;
  }

  // Part `part` of `ways`, a multiple of `multiple` long if it is not the last; of heads that are
  // fewer than the ways, each goes to several.
  void Hold(Layout& layout,
            const Entry& entry,
            std::int64_t part,
            std::int64_t ways,
            std::int64_t multiple) const {
    Index lo(entry.tensor.shape.size(), 0);
    Index hi = entry.tensor.shape;
    if (entry.cut != Cut::kWhole && ways > 1) {
      const std::size_t dim = entry.cut == Cut::kRows ? 0 : 1;
      const std::int64_t parts = std::min(ways, entry.parts);
      const std::int64_t units = parts * multiple;
      const std::int64_t extent = (hi[dim] + units - 1) / units * multiple;
      lo[dim] = extent * (part * parts / ways);
      hi[dim] = std::min(hi[dim], lo[dim] + extent);
    }
    Index shape;
    for (std::size_t d = 0; d < lo.size(); ++d) shape.push_back(hi[d] - lo[d]);
    const auto number = static_cast<std::uint32_t>(layout.pieces.size());
    const Index strides = RowMajor(shape);
    const Box box = *Box::Create(lo, hi);
    const std::uint64_t bytes = static_cast<std::uint64_t>(
        box.elements() * static_cast<std::int64_t>(DtypeBytes(entry.tensor.dtype)));
    layout.buffers.push_back({entry.tensor.name, bytes});
    layout.params.push_back(
        {entry.tensor.name, entry.tensor.dtype, shape, strides, number, 0, false});
    Index axes;
    for (std::size_t d = 0; d < lo.size(); ++d) axes.push_back(static_cast<std::int64_t>(d));
    layout.pieces.push_back({TensorId(static_cast<std::uint32_t>(&entry - entries_.data())), box,
                             number, number, 0, strides, Index(lo.size(), 0), axes});
  }

  const DeploymentShape& shape_;
  std::vector<Entry> entries_;
};

}  // namespace

DeploymentShape Moonlight() {
  return {.model = {.name = "moonlight",
                    .layers = 27,
                    .hidden = 2048,
                    .heads = 16,
                    .experts = 64,
                    .expert_rows = 1408,
                    .shared_rows = 2816,
                    .dense_layers = 1,
                    .dense_rows = 11264,
                    .vocab = 163840},
          .trainers = 8,
          .tp = 2,
          .pp = 1,
          .ep = 8,
          .engines = 1,
          .ranks = 8,
          .attention_tp = 8};
}

DeploymentShape Qwen3_30B() {
  return {.model = {.name = "qwen3-30b",
                    .layers = 48,
                    .hidden = 2048,
                    .heads = 32,
                    .kv_heads = 4,
                    .experts = 128,
                    .expert_rows = 768,
                    .vocab = 151936},
          .trainers = 16,
          .tp = 4,
          .pp = 1,
          .ep = 8,
          .engines = 2,
          .ranks = 8,
          .attention_tp = 8};
}

DeploymentShape Qwen3_235B() {
  return {.model = {.name = "qwen3-235b",
                    .layers = 94,
                    .hidden = 4096,
                    .heads = 64,
                    .kv_heads = 4,
                    .experts = 128,
                    .expert_rows = 1536,
                    .vocab = 151936},
          .trainers = 64,
          .tp = 4,
          .pp = 4,
          .ep = 16,
          .last_stage_layers = 22,
          .engines = 2,
          .ranks = 32,
          .attention_tp = 32};
}

DeploymentShape KimiK2() {
  return {.model = {.name = "kimi-k2",
                    .layers = 61,
                    .hidden = 7168,
                    .heads = 64,
                    .q_lora = 1536,
                    .experts = 384,
                    .expert_rows = 2048,
                    .shared_rows = 2048,
                    .dense_layers = 1,
                    .dense_rows = 18432,
                    .vocab = 163840},
          .trainers = 256,
          .tp = 8,
          .pp = 8,
          .ep = 32,
          .last_stage_layers = 5,
          .engines = 8,
          .ranks = 32,
          .attention_tp = 4,
          .whole_dense_mlp = true};
}

Job CanonicalJob(const DeploymentShape& shape) {
  return Cutter(shape).Make();
}

}  // namespace wb::test
