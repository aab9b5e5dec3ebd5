#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "planner/model/layout.h"

namespace wb {

/// How a group of workers cuts a checkpoint's tensors among its ranks.
enum class CutKind : std::uint8_t {
  kRows,        // dimension 0 over the ranks; 1-D tensors whole on every rank
  kColumns,     // the last dimension over the ranks; 1-D tensors whole on every rank
  kReplicated,  // every tensor whole on every rank
};

/// `rows:N`, `columns:N` or `replicated:N`: a cut over N ranks. Plain value.
struct Cut {
  CutKind kind = CutKind::kRows;
  std::int32_t ranks = 1;  // 1..kMaxCutRanks
  friend bool operator==(const Cut&, const Cut&) = default;
};

inline constexpr std::int32_t kMaxCutRanks = 4096;

/// INVALID_ARGUMENT naming the text and what was wanted.
[[nodiscard]] absl::StatusOr<Cut> ParseCut(std::string_view text);

/// [begin, end) of `extent` indices for one rank. What does not divide is cut unevenly: the first
/// `extent % ranks` ranks hold one more. Empty for the last ranks where extent < ranks.
struct Share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const Share&, const Share&) = default;
};
[[nodiscard]] Share ShareOf(std::int64_t extent, std::int32_t ranks, std::int32_t rank);

/// One group of a layout file.
struct CutGroup {
  Role role = Role::kTrainer;
  std::string group;
  std::string node;
  Cut cut;
};

/// A layout file (LayoutFile of layout.proto, in JSON): every group holds every tensor once, cut as
/// it says, each param named and shaped as its part of the tensor. A rank whose share is empty does
/// not have the param; tensors without elements are declared and held by no one.
[[nodiscard]] std::string CutLayoutJson(const std::string& job,
                                        const std::vector<Tensor>& tensors,
                                        const std::vector<CutGroup>& groups);

}  // namespace wb
