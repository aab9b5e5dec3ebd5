#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "planner/base/utf8.h"
#include "planner/model/culprit.h"
#include "proto/convert.h"
#include "proto/door/names.h"

namespace wb {
namespace {

constexpr char kDomain[] = "weightbridge";
constexpr std::size_t kMaxFieldBytes = 256;  // of a culprit's

struct CulpritField {
  const char* key;
  std::string Culprit::*text;
};
constexpr CulpritField kCulpritFields[] = {{"worker", &Culprit::worker},
                                           {"group", &Culprit::group},
                                           {"node", &Culprit::node},
                                           {"host", &Culprit::host},
                                           {"stage", &Culprit::stage}};
constexpr char kSinceSeconds[] = "since_seconds";

// The wire carries valid UTF-8 of bounded length; texts of libraries may be neither.
std::string WireText(std::string_view text, std::size_t limit = kMaxStatusBytes) {
  std::string kept(text.substr(0, std::min(text.size(), limit)));
  const bool cut = kept.size() < text.size();
  while (const std::optional<std::size_t> fault = Utf8Fault(kept)) {
    if (cut && kept.size() - *fault < 4) {
      kept.resize(*fault);  // the cut went through a code point
    } else {
      kept[*fault] = '?';
    }
  }
  return kept;
}

v1::ErrorInfo ToProto(const Culprit& culprit) {
  v1::ErrorInfo wire;
  wire.set_reason(Name(culprit.reason));
  wire.set_domain(kDomain);
  auto& metadata = *wire.mutable_metadata();
  for (const CulpritField& field : kCulpritFields) {
    const std::string& text = culprit.*field.text;
    if (!text.empty()) metadata[field.key] = WireText(text, kMaxFieldBytes);
  }
  metadata[kSinceSeconds] = absl::StrFormat("%.1f", culprit.since_seconds);
  return wire;
}

Culprit CulpritFromProto(const v1::ErrorInfo& wire) {
  Culprit culprit;
  using Reason = Culprit::Reason;
  culprit.reason = wire.reason() == Name(Reason::kGone) ? Reason::kGone : Reason::kLate;
  const auto& metadata = wire.metadata();
  for (const CulpritField& field : kCulpritFields) {
    const auto found = metadata.find(field.key);
    if (found != metadata.end()) culprit.*field.text = WireText(found->second, kMaxFieldBytes);
  }
  const auto since = metadata.find(kSinceSeconds);
  double seconds = 0;
  const bool stated = since != metadata.end() && absl::SimpleAtod(since->second, &seconds);
  if (stated && std::isfinite(seconds) && seconds >= 0) culprit.since_seconds = seconds;
  return culprit;
}

/// Those of our own domain, as many as a status may have.
std::vector<Culprit> CulpritsFromProto(const v1::Status& wire) {
  std::vector<Culprit> culprits;
  for (const v1::ErrorInfo& info : wire.infos()) {
    if (culprits.size() == kMaxCulprits) break;
    if (info.domain() == kDomain) culprits.push_back(CulpritFromProto(info));
  }
  return culprits;
}

}  // namespace

absl::Status WithDetails(absl::Status status, std::span<const std::string> lines) {
  if (!status.ok() && !lines.empty()) {
    status.SetPayload(kDetailsPayload, absl::Cord(absl::StrJoin(lines, "\n")));
  }
  return status;
}

absl::Status StatusFromProto(const v1::Status& wire) {
  const std::string text = WireText(wire.message());
  const bool known =
      wire.code() >= 0 && wire.code() <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  if (!known) return absl::UnknownError(absl::StrCat("status code ", wire.code(), ": ", text));
  const std::vector<std::string> lines(wire.details().begin(), wire.details().end());
  return WithCulprits(
      WithDetails(absl::Status(static_cast<absl::StatusCode>(wire.code()), text), lines),
      CulpritsFromProto(wire));
}

v1::Status ToProto(const absl::Status& status) {
  v1::Status wire;
  wire.set_code(static_cast<int>(status.code()));
  wire.set_message(WireText({status.message().data(), status.message().size()}));
  for (const Culprit& culprit : CulpritsOf(status)) *wire.add_infos() = ToProto(culprit);
  const absl::optional<absl::Cord> details = status.GetPayload(kDetailsPayload);
  if (!details.has_value()) return wire;
  const std::string text = WireText(std::string(*details));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    wire.add_details(std::string(line));
  }
  return wire;
}

}  // namespace wb
