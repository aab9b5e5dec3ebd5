#include "planner/model/culprit.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace wb {
namespace {

// The payload: a line for each culprit, its fields in order, with kBetween between them.
constexpr char kPayload[] = "weightbridge.culprits";
constexpr char kBetween = '\x1f';
constexpr std::size_t kFields = 7;

/// Without what ends a field or a line.
std::string Field(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, '?');
  return text;
}

std::string Encode(const Culprit& culprit) {
  const std::array<std::string, kFields> fields{Name(culprit.reason),
                                                Field(culprit.worker),
                                                Field(culprit.group),
                                                Field(culprit.node),
                                                Field(culprit.host),
                                                Field(culprit.stage),
                                                absl::StrCat(culprit.since_seconds)};
  return absl::StrJoin(fields, std::string(1, kBetween));
}

Culprit Decode(absl::string_view line) {
  const std::vector<std::string> fields = absl::StrSplit(line, kBetween);
  Culprit culprit;
  if (fields.size() != kFields) return culprit;
  using Reason = Culprit::Reason;
  culprit.reason = fields[0] == Name(Reason::kGone) ? Reason::kGone : Reason::kLate;
  culprit.worker = fields[1];
  culprit.group = fields[2];
  culprit.node = fields[3];
  culprit.host = fields[4];
  culprit.stage = fields[5];
  if (!absl::SimpleAtod(fields[6], &culprit.since_seconds)) culprit.since_seconds = 0;
  return culprit;
}

}  // namespace

const char* Name(Culprit::Reason reason) {
  switch (reason) {
    case Culprit::Reason::kLate:
      return "LATE";
    case Culprit::Reason::kGone:
      return "GONE";
  }
  return "?";
}

absl::Status WithCulprits(absl::Status status, std::span<const Culprit> culprits) {
  if (status.ok()) return status;
  std::vector<std::string> lines;
  for (const Culprit& culprit : culprits.first(std::min(culprits.size(), kMaxCulprits))) {
    lines.push_back(Encode(culprit));
  }
  if (lines.empty()) {
    status.ErasePayload(kPayload);
  } else {
    status.SetPayload(kPayload, absl::Cord(absl::StrJoin(lines, "\n")));
  }
  return status;
}

std::vector<Culprit> CulpritsOf(const absl::Status& status) {
  std::vector<Culprit> culprits;
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return culprits;
  const std::string text(*payload);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    culprits.push_back(Decode(line));
  }
  return culprits;
}

absl::Status Reworded(const absl::Status& status, absl::string_view text) {
  absl::Status reworded(status.code(), text);
  status.ForEachPayload([&](absl::string_view name, const absl::Cord& payload) {
    reworded.SetPayload(name, payload);
  });
  return reworded;
}

}  // namespace wb
