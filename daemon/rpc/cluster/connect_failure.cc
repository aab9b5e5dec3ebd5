#include "daemon/rpc/cluster/connect_failure.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace wb {
namespace {

/// What follows `mark` in `text`; all of it where the mark is not there.
absl::string_view After(absl::string_view text, absl::string_view mark) {
  const std::size_t at = text.find(mark);
  return at == absl::string_view::npos ? text : text.substr(at + mark.size());
}

/// Whether the other side ended a connection that was there.
bool Ended(absl::string_view text) {
  return absl::StrContains(text, "Socket closed") || absl::StrContains(text, "Connection reset") ||
         absl::StrContains(text, "Broken pipe") || absl::StrContains(text, "shutdown");
}

}  // namespace

absl::Status ExplainConnectFailure(const absl::Status& why, const TlsIdentity* tls) {
  if (why.code() != absl::StatusCode::kUnavailable) return why;
  const absl::string_view text = After(why.message(), "last error: ");
  if (tls == nullptr) {
    if (!Ended(text)) return absl::UnavailableError(text);
    return absl::UnavailableError(
        absl::StrCat(text, " (this daemon has no tls: does the leader want it?)"));
  }
  constexpr absl::string_view kRefused = "Custom verification check failed with error: ";
  if (absl::StrContains(text, kRefused)) {
    return absl::UnauthenticatedError(
        absl::StrCat("the leader is not trusted: ", After(After(text, kRefused), ": ")));
  }
  if (absl::StrContains(text, "wrong version number")) {
    return absl::UnavailableError(
        absl::StrCat("the leader speaks no TLS, and this daemon has tls: ", text));
  }
  if (!Ended(text)) return absl::UnavailableError(text);
  const absl::Status own = tls->CheckOwn();
  return absl::UnavailableError(
      absl::StrCat(text, ": the leader may not take our certificate, its log says why; ",
                   own.ok() ? tls->ToString() : absl::StrCat("by our own CA, ", own.message())));
}

}  // namespace wb
