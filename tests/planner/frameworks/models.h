#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "planner/frameworks/layout_draft.h"
#include "planner/frameworks/model_tensors.h"
#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb::test {

/// The config of deploy/examples/configs/NAME.json.
[[nodiscard]] nlohmann::json ExampleConfig(const std::string& name);
/// Small models: a dense one of grouped queries with everything that has a bias or a norm, Mixtral,
/// Qwen3 MoE (8 experts), DeepSeek-V3 with and without q_lora.
[[nodiscard]] nlohmann::json SmallQwen3();
[[nodiscard]] nlohmann::json SmallMixtral();
[[nodiscard]] nlohmann::json SmallMoe();
[[nodiscard]] nlohmann::json SmallDeepseek();

/// The model's tensors in BF16; the test fails where the config is refused.
[[nodiscard]] ModelTensors MustModel(const nlohmann::json& config);
[[nodiscard]] ModelTensors MustModel(const nlohmann::json& config, std::int64_t layers);
/// The ranks' layouts; the test fails where they are refused.
template <typename Framework>
[[nodiscard]] RankLayouts MustLayOut(const ModelTensors& model, const Framework& framework);
/// The reasons' texts; the test fails where there are none.
template <typename Framework>
[[nodiscard]] std::vector<std::string> Reasons(const ModelTensors& model,
                                               const Framework& framework);
[[nodiscard]] std::vector<std::string> TextsOf(const Refusals& refusals);

/// A job of a trainer group "policy" on node "t" and engines "engine0", ... on nodes "e0", ...
[[nodiscard]] Job JobOf(const ModelTensors& model,
                        const RankLayouts& trainer,
                        const std::vector<RankLayouts>& engines);

/// Plans the job, runs the plan byte by byte, and requires that every rollout holds every element
/// it should. The plan.
Plan RequireArrives(const Job& job);

/// The rank's param; the test fails if there is none.
[[nodiscard]] const Param& ParamNamed(const Layout& layout, const std::string& name);
[[nodiscard]] bool HasParam(const Layout& layout, const std::string& name);
/// "tensor [lo]..[hi] at [at]" of the pieces of a param, in order of `at`.
[[nodiscard]] std::vector<std::string> PiecesOf(const ModelTensors& model,
                                                const Layout& layout,
                                                const std::string& param);

/// How many ranks hold each element of a tensor, by a grid of all boxes' edges; the test fails
/// where elements differ.
[[nodiscard]] std::int64_t Holders(const ModelTensors& model,
                                   const RankLayouts& ranks,
                                   const std::string& tensor);
/// The same of every tensor: bytes of the model by the number of ranks that hold them.
[[nodiscard]] std::map<std::int64_t, std::uint64_t> BytesByHolders(const ModelTensors& model,
                                                                   const RankLayouts& ranks);

/// Bytes of a rank's params, padding included.
[[nodiscard]] std::uint64_t ParamBytes(const Layout& layout);
/// Bytes of a rank's pieces.
[[nodiscard]] std::uint64_t PieceBytes(const ModelTensors& model, const Layout& layout);
[[nodiscard]] std::uint64_t ModelBytes(const ModelTensors& model);

template <typename Framework>
RankLayouts MustLayOut(const ModelTensors& model, const Framework& framework) {
  std::variant<RankLayouts, Refusals> laid = LayOut(model, framework);
  if (const auto* refusals = std::get_if<Refusals>(&laid)) {
    throw std::invalid_argument("refused: " + refusals->front().text);
  }
  return std::get<RankLayouts>(std::move(laid));
}

template <typename Framework>
std::vector<std::string> Reasons(const ModelTensors& model, const Framework& framework) {
  const std::variant<RankLayouts, Refusals> laid = LayOut(model, framework);
  if (!std::holds_alternative<Refusals>(laid)) throw std::invalid_argument("accepted");
  return TextsOf(std::get<Refusals>(laid));
}

}  // namespace wb::test
