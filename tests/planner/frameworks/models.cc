#include "tests/planner/frameworks/models.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "planner/solve/planner.h"
#include "planner/solve/validate.h"
#include "tests/support/byte_walk.h"
#include "tests/support/catch.h"
#include "tests/support/whole_file.h"

namespace wb::test {
namespace {

using Json = nlohmann::json;

std::int64_t BytesOf(const Tensor& tensor, std::int64_t elements) {
  return elements * DtypeBytes(tensor.dtype);
}

// The boxes of each tensor, of all ranks.
std::vector<std::vector<const Box*>> BoxesByTensor(const ModelTensors& model,
                                                   const RankLayouts& ranks) {
  std::vector<std::vector<const Box*>> boxes(model.tensors().size());
  for (const Layout& rank : ranks) {
    for (const Piece& piece : rank.pieces) boxes[piece.tensor.value()].push_back(&piece.box);
  }
  return boxes;
}

// How many boxes hold each element of the shape; they have to be the same everywhere.
std::int64_t EvenCover(const Tensor& tensor, const std::vector<const Box*>& boxes) {
  std::vector<std::vector<std::int64_t>> edges;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    std::set<std::int64_t> cut{0, tensor.shape[d]};
    for (const Box* box : boxes) cut.insert({box->lo()[d], box->hi()[d]});
    edges.emplace_back(cut.begin(), cut.end());
  }
  if (edges.size() == 1) edges.push_back({0, 1});
  std::set<std::int64_t> covers;
  for (std::size_t i = 0; i + 1 < edges[0].size(); ++i) {
    for (std::size_t j = 0; j + 1 < edges[1].size(); ++j) {
      const auto holds = [&](const Box* box) {
        const bool columns =
            box->ndim() < 2 || (box->lo()[1] <= edges[1][j] && edges[1][j + 1] <= box->hi()[1]);
        return columns && box->lo()[0] <= edges[0][i] && edges[0][i + 1] <= box->hi()[0];
      };
      covers.insert(std::count_if(boxes.begin(), boxes.end(), holds));
    }
  }
  if (covers.size() != 1) throw std::logic_error(tensor.name + " is not covered evenly");
  return *covers.begin();
}

}  // namespace

Json ExampleConfig(const std::string& name) {
  return Json::parse(ReadWholeFile(std::string(WB_EXAMPLES) + "/configs/" + name + ".json"));
}

Json SmallQwen3() {
  return {{"architectures", {"Qwen3ForCausalLM"}},
          {"model_type", "qwen3"},
          {"attention_bias", true},
          {"head_dim", 8},
          {"hidden_size", 32},
          {"intermediate_size", 48},
          {"num_attention_heads", 8},
          {"num_hidden_layers", 4},
          {"num_key_value_heads", 4},
          {"tie_word_embeddings", false},
          {"vocab_size", 192}};
}

Json SmallMixtral() {
  return {{"architectures", {"MixtralForCausalLM"}},
          {"model_type", "mixtral"},
          {"hidden_size", 32},
          {"intermediate_size", 24},
          {"num_attention_heads", 4},
          {"num_experts_per_tok", 2},
          {"num_hidden_layers", 2},
          {"num_key_value_heads", 4},
          {"num_local_experts", 4},
          {"tie_word_embeddings", false},
          {"vocab_size", 128}};
}

Json SmallMoe() {
  Json config = SmallQwen3();
  config.update({{"architectures", {"Qwen3MoeForCausalLM"}},
                 {"model_type", "qwen3_moe"},
                 {"attention_bias", false},
                 {"moe_intermediate_size", 12},
                 {"num_experts", 8},
                 {"num_experts_per_tok", 2}});
  return config;
}

Json SmallDeepseek() {
  return {{"architectures", {"DeepseekV3ForCausalLM"}},
          {"model_type", "deepseek_v3"},
          {"first_k_dense_replace", 1},
          {"hidden_size", 32},
          {"intermediate_size", 64},
          {"kv_lora_rank", 16},
          {"moe_intermediate_size", 16},
          {"n_routed_experts", 8},
          {"n_shared_experts", 2},
          {"num_attention_heads", 4},
          {"num_hidden_layers", 3},
          {"q_lora_rank", 24},
          {"qk_nope_head_dim", 8},
          {"qk_rope_head_dim", 4},
          {"tie_word_embeddings", false},
          {"topk_method", "noaux_tc"},
          {"v_head_dim", 6},
          {"vocab_size", 128}};
}

ModelTensors MustModel(const Json& config, std::int64_t layers) {
  std::variant<HfConfig, Refusals> parsed = ParseHfConfig(config.dump(), "config.json");
  if (const auto* refusals = std::get_if<Refusals>(&parsed)) {
    throw std::invalid_argument("refused: " + refusals->front().text);
  }
  std::variant<ModelTensors, Refusals> model =
      ModelTensors::Create(std::get<HfConfig>(std::move(parsed)), Dtype::kBf16, layers);
  if (const auto* refusals = std::get_if<Refusals>(&model)) {
    throw std::invalid_argument("refused: " + refusals->front().text);
  }
  return std::get<ModelTensors>(std::move(model));
}

ModelTensors MustModel(const Json& config) {
  return MustModel(config, HfConfig::kMaxLayers);
}

std::vector<std::string> TextsOf(const Refusals& refusals) {
  std::vector<std::string> texts;
  for (const Refusal& refusal : refusals) texts.push_back(refusal.text);
  return texts;
}

Job JobOf(const ModelTensors& model,
          const RankLayouts& trainer,
          const std::vector<RankLayouts>& engines) {
  Job job{"job", model.tensors(), {}};
  const auto add = [&](const RankLayouts& ranks, const std::string& group,
                       const std::string& node) {
    for (Layout layout : ranks) {
      layout.name.group = group;
      layout.node = node;
      job.layouts.push_back(std::move(layout));
    }
  };
  for (std::size_t i = 0; i < engines.size(); ++i) {
    add(engines[i], absl::StrCat("engine", i), absl::StrCat("e", i));
  }
  add(trainer, "policy", "t");
  return job;
}

Plan RequireArrives(const Job& job) {
  std::variant<Plan, Refusals> solved = Solve(job);
  if (const auto* refusals = std::get_if<Refusals>(&solved)) FAIL(refusals->front().text);
  Plan plan = std::get<Plan>(std::move(solved));
  REQUIRE(ValidatePlan(job, plan).ok());
  const std::vector<Memory> memory = Execute(job, plan, 4096, HashValue);
  for (std::size_t w = 0; w < job.layouts.size(); ++w) {
    if (job.layouts[w].role != Role::kRollout) continue;
    INFO(job.layouts[w].name.ToString());
    REQUIRE(memory[w] == Filled(job, job.layouts[w], HashValue));
  }
  return plan;
}

const Param& ParamNamed(const Layout& layout, const std::string& name) {
  const auto found = std::find_if(layout.params.begin(), layout.params.end(),
                                  [&](const Param& param) { return param.name == name; });
  if (found == layout.params.end()) throw std::out_of_range("no param " + name);
  return *found;
}

bool HasParam(const Layout& layout, const std::string& name) {
  return std::any_of(layout.params.begin(), layout.params.end(),
                     [&](const Param& param) { return param.name == name; });
}

std::vector<std::string> PiecesOf(const ModelTensors& model,
                                  const Layout& layout,
                                  const std::string& param) {
  std::map<Index, std::string> pieces;
  for (const Piece& piece : layout.pieces) {
    if (layout.params[piece.param].name != param) continue;
    pieces[piece.at] = absl::StrCat(model.tensor(piece.tensor).name, " ", piece.box.ToString(),
                                    " at [", absl::StrJoin(piece.at, ","), "]");
  }
  std::vector<std::string> texts;
  for (const auto& [at, text] : pieces) texts.push_back(text);
  return texts;
}

std::int64_t Holders(const ModelTensors& model,
                     const RankLayouts& ranks,
                     const std::string& tensor) {
  const auto boxes = BoxesByTensor(model, ranks);
  for (std::size_t t = 0; t < model.tensors().size(); ++t) {
    if (model.tensors()[t].name == tensor) return EvenCover(model.tensors()[t], boxes[t]);
  }
  throw std::out_of_range("no tensor " + tensor);
}

std::map<std::int64_t, std::uint64_t> BytesByHolders(const ModelTensors& model,
                                                     const RankLayouts& ranks) {
  const auto boxes = BoxesByTensor(model, ranks);
  std::map<std::int64_t, std::uint64_t> bytes;
  for (std::size_t t = 0; t < model.tensors().size(); ++t) {
    const Tensor& tensor = model.tensors()[t];
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= extent;
    bytes[EvenCover(tensor, boxes[t])] += static_cast<std::uint64_t>(BytesOf(tensor, elements));
  }
  return bytes;
}

std::uint64_t ParamBytes(const Layout& layout) {
  std::uint64_t bytes = 0;
  for (const Buffer& buffer : layout.buffers) bytes += buffer.bytes;
  return bytes;
}

std::uint64_t PieceBytes(const ModelTensors& model, const Layout& layout) {
  std::int64_t bytes = 0;
  for (const Piece& piece : layout.pieces) {
    bytes += BytesOf(model.tensor(piece.tensor), piece.box.elements());
  }
  return static_cast<std::uint64_t>(bytes);
}

std::uint64_t ModelBytes(const ModelTensors& model) {
  std::int64_t bytes = 0;
  for (const Tensor& tensor : model.tensors()) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= extent;
    bytes += BytesOf(tensor, elements);
  }
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace wb::test
