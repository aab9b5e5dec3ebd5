#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "planner/base/utf8.h"
#include "proto/convert.h"
#include "proto/door/names.h"

namespace wb {
namespace {

// The wire carries valid UTF-8 of bounded length; texts of libraries may be neither.
std::string WireText(std::string_view text) {
  std::string kept(text.substr(0, std::min(text.size(), kMaxStatusBytes)));
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
  return WithDetails(absl::Status(static_cast<absl::StatusCode>(wire.code()), text), lines);
}

v1::Status ToProto(const absl::Status& status) {
  v1::Status wire;
  wire.set_code(static_cast<int>(status.code()));
  wire.set_message(WireText({status.message().data(), status.message().size()}));
  const absl::optional<absl::Cord> details = status.GetPayload(kDetailsPayload);
  if (!details.has_value()) return wire;
  const std::string text = WireText(std::string(*details));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    wire.add_details(std::string(line));
  }
  return wire;
}

}  // namespace wb
