#include "planner/model/culprit.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace wb {
namespace {

// The payload, readable where a log shows it: "reason=LATE worker=engine0/2 node=n1
// since_seconds=1.5; reason=GONE ...".
constexpr char kPayload[] = "weightbridge.culprits";
constexpr char kNext[] = "; ";

struct Field {
  const char* key;
  std::string Culprit::*text;
};
constexpr Field kFields[] = {{"worker", &Culprit::worker},
                             {"group", &Culprit::group},
                             {"node", &Culprit::node},
                             {"host", &Culprit::host},
                             {"stage", &Culprit::stage}};

/// Without what ends a field or a culprit.
std::string Word(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return (c >= 0 && c <= ' ') || c == ';'; }, '?');
  return text;
}

std::string Encode(const Culprit& culprit) {
  std::string line = absl::StrCat("reason=", Name(culprit.reason));
  for (const Field& field : kFields) {
    const std::string& text = culprit.*field.text;
    if (!text.empty()) absl::StrAppend(&line, " ", field.key, "=", Word(text));
  }
  return absl::StrCat(line, " since_seconds=", culprit.since_seconds);
}

Culprit Decode(absl::string_view line) {
  Culprit culprit;
  for (const absl::string_view word : absl::StrSplit(line, ' ')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const auto& [key, value] = pair;
    if (key == "reason" && value == Name(Culprit::Reason::kGone)) {
      culprit.reason = Culprit::Reason::kGone;
    }
    if (key == "since_seconds" && !absl::SimpleAtod(value, &culprit.since_seconds)) {
      culprit.since_seconds = 0;
    }
    for (const Field& field : kFields) {
      if (key == field.key) culprit.*field.text = value;
    }
  }
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
    status.SetPayload(kPayload, absl::Cord(absl::StrJoin(lines, kNext)));
  }
  return status;
}

std::vector<Culprit> CulpritsOf(const absl::Status& status) {
  std::vector<Culprit> culprits;
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return culprits;
  const std::string text(*payload);
  for (const absl::string_view line : absl::StrSplit(text, kNext)) {
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
