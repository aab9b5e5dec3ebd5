#include "client/wbctl/contents/cut.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "client/wbctl/json_text.h"

namespace wb {
namespace {

using Json = nlohmann::ordered_json;

Json List(const Index& index) {
  return std::vector<std::int64_t>(index.begin(), index.end());
}

/// The rank's box of the tensor; false when its share is empty.
bool CutBox(const Tensor& tensor, const Cut& cut, std::int32_t rank, Index& lo, Index& hi) {
  lo.assign(tensor.shape.size(), 0);
  hi = tensor.shape;
  if (std::find(hi.begin(), hi.end(), 0) != hi.end()) return false;
  if (cut.kind == CutKind::kReplicated || tensor.shape.size() < 2) return true;
  const std::size_t dim = cut.kind == CutKind::kRows ? 0 : tensor.shape.size() - 1;
  const Share share = ShareOf(tensor.shape[dim], cut.ranks, rank);
  lo[dim] = share.begin;
  hi[dim] = share.end;
  return share.begin < share.end;
}

Json ParamJson(const Tensor& tensor, const Index& lo, const Index& hi) {
  Index shape;
  for (std::size_t d = 0; d < lo.size(); ++d) shape.push_back(hi[d] - lo[d]);
  return {{"name", tensor.name},
          {"shape", List(shape)},
          {"pieces",
           {{{"tensor", tensor.name},
             {"box", {{"lo", List(lo)}, {"hi", List(hi)}}},
             {"at", List(Index(lo.size(), 0))}}}}};
}

void AppendWorker(const std::vector<Tensor>& tensors,
                  const CutGroup& group,
                  std::int32_t rank,
                  std::string& out) {
  absl::StrAppend(&out,
                  "    { \"role\": ", group.role == Role::kTrainer ? "\"TRAINER\"" : "\"ROLLOUT\"",
                  ", \"group\": ", JsonText(Json(group.group)), ", \"rank\": ", rank,
                  ", \"node\": ", JsonText(Json(group.node)), ", \"params\": [");
  const char* separator = "\n";
  for (const Tensor& tensor : tensors) {
    Index lo;
    Index hi;
    if (!CutBox(tensor, group.cut, rank, lo, hi)) continue;
    absl::StrAppend(&out, separator, "      ", JsonText(ParamJson(tensor, lo, hi)));
    separator = ",\n";
  }
  absl::StrAppend(&out, " ] }");
}

}  // namespace

absl::StatusOr<Cut> ParseCut(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, CutKind>, 3> kKinds{
      {{"rows", CutKind::kRows},
       {"columns", CutKind::kColumns},
       {"replicated", CutKind::kReplicated}}};
  const std::size_t colon = text.find(':');
  const std::string_view digits = colon == text.npos ? "" : text.substr(colon + 1);
  Cut cut;
  const bool number = absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &cut.ranks);
  for (const auto& [name, kind] : kKinds) {
    if (text.substr(0, colon) != name || !number) continue;
    if (cut.ranks < 1 || cut.ranks > kMaxCutRanks) break;
    cut.kind = kind;
    return cut;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(text), "\" is no cut, want rows:N, columns:N or replicated:N",
                   " with N from 1 to ", kMaxCutRanks));
}

Share ShareOf(std::int64_t extent, std::int32_t ranks, std::int32_t rank) {
  const std::int64_t each = extent / ranks;
  const std::int64_t more = extent % ranks;
  const std::int64_t begin = rank * each + std::min<std::int64_t>(rank, more);
  return {begin, begin + each + (rank < more ? 1 : 0)};
}

std::string CutLayoutJson(const std::string& job,
                          const std::vector<Tensor>& tensors,
                          const std::vector<CutGroup>& groups) {
  // A line a tensor, a line a param: a large model's file is written without a tree of it.
  std::string out = absl::StrCat("{ \"job\": ", JsonText(Json(job)), ",\n  \"tensors\": {");
  const char* separator = "\n";
  for (const Tensor& tensor : tensors) {
    const Json entry{{"dtype", DtypeName(tensor.dtype)}, {"shape", List(tensor.shape)}};
    absl::StrAppend(&out, separator, "    ", JsonText(Json(tensor.name)), ": ", JsonText(entry));
    separator = ",\n";
  }
  absl::StrAppend(&out, "\n  },\n  \"workers\": [");
  separator = "\n";
  for (const CutGroup& group : groups) {
    for (std::int32_t rank = 0; rank < group.cut.ranks; ++rank) {
      absl::StrAppend(&out, separator);
      AppendWorker(tensors, group, rank, out);
      separator = ",\n";
    }
  }
  absl::StrAppend(&out, "\n  ]\n}\n");
  return out;
}

}  // namespace wb
