#include "tests/proto/layout_cases.h"

#include <utility>
#include <variant>

#include "tests/support/catch.h"
#include "tests/support/gqa_file.h"

namespace wb::test {

using nlohmann::json;

json GqaFile() {
  return json::parse(kGqaFile);
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
