#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "proto/convert.h"

namespace wb::test {

/// The complete layout file of the design: a fused QKV, a transposed and a strided param.
[[nodiscard]] nlohmann::json GqaFile();

/// A file of one trainer and one rollout on two nodes, each with the params given.
[[nodiscard]] nlohmann::json PairFile(const nlohmann::json& tensors,
                                      const nlohmann::json& trainer_params,
                                      const nlohmann::json& rollout_params);

/// A param that holds all of one tensor; more keys may be added.
[[nodiscard]] nlohmann::json WholeParam(const std::string& name,
                                        const std::string& tensor,
                                        const std::vector<std::int64_t>& shape);

/// A piece; `at` of zeros when left out.
[[nodiscard]] nlohmann::json PieceOf(const std::string& tensor,
                                     const std::vector<std::int64_t>& lo,
                                     const std::vector<std::int64_t>& hi,
                                     const std::vector<std::int64_t>& at);

/// The file's job. Fails the test with the reasons where it is refused.
[[nodiscard]] LoadedJob Accepted(const nlohmann::json& file);
[[nodiscard]] LoadedJob AcceptedText(const std::string& text);

/// The reasons why the file is refused. Fails the test where it is not.
[[nodiscard]] Refusals Refused(const nlohmann::json& file);
[[nodiscard]] Refusals RefusedText(const std::string& text);

/// Their texts, and their kinds.
[[nodiscard]] std::vector<std::string> Texts(const Refusals& refusals);
[[nodiscard]] std::vector<std::string> Kinds(const Refusals& refusals);

}  // namespace wb::test
