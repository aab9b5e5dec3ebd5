#include "tests/proto/layout_cases.h"

#include <utility>
#include <variant>

#include "tests/support/catch.h"

namespace wb::test {

using nlohmann::json;

json GqaFile() {
  return json::parse(R"({ "job": "gqa",
  "tensors": { "q": {"dtype": "BF16", "shape": [16, 2]}, "k": {"dtype": "BF16", "shape": [4, 2]},
               "w": {"dtype": "FP32", "shape": [2, 3]} },
  "workers": [
    { "role": "TRAINER", "group": "policy", "rank": 0, "node": "n0",
      "params": [
        { "name": "linear_qkv.weight", "shape": [20, 2],
          "pieces": [ {"tensor": "q", "box": {"lo": [0,0], "hi": [8,2]}, "at": [0,0]},
                      {"tensor": "k", "box": {"lo": [0,0], "hi": [2,2]}, "at": [8,0]},
                      {"tensor": "q", "box": {"lo": [8,0], "hi": [16,2]}, "at": [10,0]},
                      {"tensor": "k", "box": {"lo": [2,0], "hi": [4,2]}, "at": [18,0]} ] },
        { "name": "w_t", "shape": [3, 2],
          "pieces": [ {"tensor": "w", "box": {"lo": [0,0], "hi": [2,3]}, "at": [0,0],
                       "axes": [1,0]} ] } ] },
    { "role": "ROLLOUT", "group": "engine0", "rank": 0, "node": "n1",
      "params": [
        { "name": "qkv", "shape": [20, 2],
          "pieces": [ {"tensor": "q", "box": {"lo": [0,0], "hi": [16,2]}, "at": [0,0]},
                      {"tensor": "k", "box": {"lo": [0,0], "hi": [4,2]}, "at": [16,0]} ] },
        { "name": "w", "shape": [2, 3], "strides": [4, 1], "dtype": "FP32",
          "pieces": [ {"tensor": "w", "box": {"lo": [0,0], "hi": [2,3]}, "at": [0,0]} ] } ] } ] })");
}

json PairFile(const json& tensors, const json& trainer_params, const json& rollout_params) {
  const auto worker = [](const char* role, const char* group, const char* node,
                         const json& params) {
    return json{{"role", role}, {"group", group}, {"rank", 0}, {"node", node}, {"params", params}};
  };
  return {{"job", "pair"},
          {"tensors", tensors},
          {"workers", json::array({worker("TRAINER", "policy", "n0", trainer_params),
                                   worker("ROLLOUT", "engine", "n1", rollout_params)})}};
}

json PieceOf(const std::string& tensor,
             const std::vector<std::int64_t>& lo,
             const std::vector<std::int64_t>& hi,
             const std::vector<std::int64_t>& at) {
  return {{"tensor", tensor}, {"box", {{"lo", lo}, {"hi", hi}}}, {"at", at}};
}

json WholeParam(const std::string& name,
                const std::string& tensor,
                const std::vector<std::int64_t>& shape) {
  const std::vector<std::int64_t> zeros(shape.size(), 0);
  return {{"name", name},
          {"shape", shape},
          {"pieces", json::array({PieceOf(tensor, zeros, shape, zeros)})}};
}

LoadedJob AcceptedText(const std::string& text) {
  std::variant<LoadedJob, Refusals> loaded = JobFromJson(text);
  if (const auto* refusals = std::get_if<Refusals>(&loaded)) {
    for (const Refusal& refusal : *refusals) UNSCOPED_INFO(refusal.text);
    FAIL("the layout file is refused");
  }
  return std::get<LoadedJob>(std::move(loaded));
}

Refusals RefusedText(const std::string& text) {
  std::variant<LoadedJob, Refusals> loaded = JobFromJson(text);
  REQUIRE(std::holds_alternative<Refusals>(loaded));
  Refusals refusals = std::get<Refusals>(std::move(loaded));
  REQUIRE_FALSE(refusals.empty());
  return refusals;
}

LoadedJob Accepted(const json& file) {
  return AcceptedText(file.dump());
}
Refusals Refused(const json& file) {
  return RefusedText(file.dump());
}

std::vector<std::string> Texts(const Refusals& refusals) {
  std::vector<std::string> texts;
  for (const Refusal& refusal : refusals) texts.push_back(refusal.text);
  return texts;
}

std::vector<std::string> Kinds(const Refusals& refusals) {
  std::vector<std::string> kinds;
  for (const Refusal& refusal : refusals) kinds.push_back(refusal.kind);
  return kinds;
}

}  // namespace wb::test
