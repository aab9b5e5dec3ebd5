#include "planner/frameworks/fsdp_layout.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "planner/base/divide_up.h"
#include "planner/frameworks/size_checks.h"

namespace wb {
namespace {

struct Chunk {
  std::int64_t lo = 0;
  std::int64_t hi = 0;
};

// Chunk `index` of torch.chunk(extent, parts).
Chunk ChunkOf(std::int64_t extent, std::int64_t parts, std::int64_t index) {
  const std::int64_t each = DivideUp(extent, parts);
  return {std::min(index * each, extent), std::min((index + 1) * each, extent)};
}

class FsdpRank {
 public:
  FsdpRank(const ModelTensors& model, const FsdpLayout& fsdp, std::int64_t index)
      : model_(model), config_(model.config()), fsdp_(fsdp), index_(index), draft_(model) {}

  Layout Make() && {
    for (const Weight weight : {Weight::kEmbedding, Weight::kFinalNorm, Weight::kHead}) {
      AddChunk(model_.Find(weight));
    }
    for (std::int64_t layer = 0; layer < model_.layers(); ++layer) AddLayer(layer);
    return std::move(draft_).Finish(Role::kTrainer);
  }

 private:
  void AddChunk(std::optional<TensorId> tensor) {
    if (!tensor.has_value()) return;
    const Tensor& whole = model_.tensor(*tensor);
    const Chunk chunk = ChunkOf(whole.shape[0], fsdp_.shard, index_);
    draft_.Add(whole.name, {*tensor, 0, chunk.lo, chunk.hi});
  }

  void AddLayer(std::int64_t layer) {
    for (auto weight = Weight::kInputNorm; weight < Weight::kExpertGate;
         weight = static_cast<Weight>(static_cast<int>(weight) + 1)) {
      AddChunk(model_.Find(weight, layer));
    }
    if (!config_.sparse[static_cast<std::size_t>(layer)]) return;
    if (fsdp_.ep > 1) return AddStacks(layer);
    for (std::int64_t expert = 0; expert < config_.experts; ++expert) {
      for (const Weight weight : {Weight::kExpertGate, Weight::kExpertUp, Weight::kExpertDown}) {
        AddChunk(model_.Expert(weight, layer, expert));
      }
    }
  }

  void AddStacks(std::int64_t layer) {
    const std::string prefix =
        absl::StrCat("model.layers.", layer,
                     config_.mixtral_names ? ".block_sparse_moe.experts." : ".mlp.experts.");
    AddStack(prefix + "w1", Weight::kExpertGate, layer);
    AddStack(prefix + "w3", Weight::kExpertUp, layer);
    AddStack(prefix + "w2", Weight::kExpertDown, layer);
  }

  void AddStack(const std::string& name, Weight weight, std::int64_t layer) {
    const std::int64_t local = config_.experts / fsdp_.ep;
    const std::int64_t left = fsdp_.shard / fsdp_.ep;
    const std::int64_t first = index_ % fsdp_.ep * local;
    Index shape = model_.tensor(model_.Expert(weight, layer, first)).shape;
    const bool rows_cut = left > local;
    const Chunk experts = ChunkOf(local, rows_cut ? 1 : left, rows_cut ? 0 : index_ / fsdp_.ep);
    const Chunk rows = ChunkOf(shape[0], rows_cut ? left : 1, rows_cut ? index_ / fsdp_.ep : 0);
    draft_.AddParam(name, {experts.hi - experts.lo, rows.hi - rows.lo, shape[1]}, model_.dtype());
    for (std::int64_t e = experts.lo; e < experts.hi; ++e) {
      draft_.Place({model_.Expert(weight, layer, first + e), 0, rows.lo, rows.hi},
                   {e - experts.lo, 0, 0});
    }
  }

  const ModelTensors& model_;
  const HfConfig& config_;
  const FsdpLayout& fsdp_;
  const std::int64_t index_;  // of shard
  LayoutDraft draft_;
};

}  // namespace

std::int64_t RanksOf(const FsdpLayout& fsdp) {
  return fsdp.shard * fsdp.replicate;
}

Refusals CheckSizes(const HfConfig& config, const FsdpLayout& fsdp) {
  SizeChecks checks;
  if (RanksOf(fsdp) > static_cast<std::int64_t>(kMaxWorkers)) {
    checks.Refuse("shard x replicate", RanksOf(fsdp), absl::StrCat("want at most ", kMaxWorkers));
  }
  checks.Divides("ep", fsdp.ep, "shard", fsdp.shard);
  if (config.experts > 0) {
    checks.Divides("ep", fsdp.ep, "the number of experts", config.experts);
  } else if (fsdp.ep != 1) {
    checks.Refuse("ep", fsdp.ep, "want 1: the model has no experts");
  }
  return checks.refusals();
}

std::variant<RankLayouts, Refusals> LayOut(const ModelTensors& model, const FsdpLayout& fsdp) {
  if (Refusals refusals = CheckSizes(model.config(), fsdp); !refusals.empty()) return refusals;
  std::vector<std::int64_t> ranks;
  for (std::int64_t r = 0; r < RanksOf(fsdp); ++r) ranks.push_back(r % fsdp.shard);
  return MakeRanks(ranks, [&](std::int64_t index) { return FsdpRank(model, fsdp, index).Make(); });
}

}  // namespace wb
