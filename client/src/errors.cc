#include "client/src/errors.h"

#include <array>
#include <cerrno>
#include <system_error>

#include "planner/base/utf8.h"

namespace wb::client {
namespace {

struct ErrnoMeaning {
  int error;
  const char* name;
  wb_status code;
};

constexpr std::array kMeanings{
    ErrnoMeaning{EACCES, "EACCES", WB_PERMISSION_DENIED},
    ErrnoMeaning{EPERM, "EPERM", WB_PERMISSION_DENIED},
    ErrnoMeaning{ENOENT, "ENOENT", WB_UNAVAILABLE},
    ErrnoMeaning{ENOTDIR, "ENOTDIR", WB_UNAVAILABLE},
    ErrnoMeaning{ENOTSOCK, "ENOTSOCK", WB_UNAVAILABLE},
    ErrnoMeaning{ECONNREFUSED, "ECONNREFUSED", WB_UNAVAILABLE},
    ErrnoMeaning{ECONNRESET, "ECONNRESET", WB_UNAVAILABLE},
    ErrnoMeaning{EPIPE, "EPIPE", WB_UNAVAILABLE},
    ErrnoMeaning{EPROTOTYPE, "EPROTOTYPE", WB_UNAVAILABLE},
    ErrnoMeaning{ENOSYS, "ENOSYS", WB_UNAVAILABLE},
    ErrnoMeaning{EAFNOSUPPORT, "EAFNOSUPPORT", WB_UNAVAILABLE},
    ErrnoMeaning{ENOMEM, "ENOMEM", WB_RESOURCE_EXHAUSTED},
    ErrnoMeaning{ENOBUFS, "ENOBUFS", WB_RESOURCE_EXHAUSTED},
    ErrnoMeaning{EMFILE, "EMFILE", WB_RESOURCE_EXHAUSTED},
    ErrnoMeaning{ENFILE, "ENFILE", WB_RESOURCE_EXHAUSTED},
    ErrnoMeaning{ETOOMANYREFS, "ETOOMANYREFS", WB_RESOURCE_EXHAUSTED},
    ErrnoMeaning{EFBIG, "EFBIG", WB_RESOURCE_EXHAUSTED},
    ErrnoMeaning{EBADF, "EBADF", WB_INVALID_ARGUMENT},
    ErrnoMeaning{EINVAL, "EINVAL", WB_INVALID_ARGUMENT},
};

const ErrnoMeaning* Find(int error) {
  for (const ErrnoMeaning& meaning : kMeanings) {
    if (meaning.error == error) return &meaning;
  }
  return nullptr;
}

}  // namespace

std::string CulpritDetail(const std::string& reason,
                          const std::string& domain,
                          const std::map<std::string, std::string>& metadata) {
  std::string detail = "reason=" + reason + " domain=" + domain;
  for (const auto& [key, value] : metadata) {
    detail.append(" ").append(key).append("=").append(value);
  }
  return detail;
}

Error Invalid(std::string message) {
  return Error{WB_INVALID_ARGUMENT, std::move(message), {}};
}

Result<void> CheckUtf8(const std::string& what, std::string_view text) {
  const std::optional<std::size_t> fault = Utf8Fault(text);
  if (!fault.has_value()) return {};
  return Invalid(what + " is not UTF-8 at byte " + std::to_string(*fault));
}

std::string ErrnoText(int error) {
  const ErrnoMeaning* meaning = Find(error);
  const std::string name =
      meaning != nullptr ? std::string(meaning->name) : "errno " + std::to_string(error);
  return std::generic_category().message(error) + " (" + name + ")";
}

wb_status CodeOfErrno(int error) {
  const ErrnoMeaning* meaning = Find(error);
  return meaning != nullptr ? meaning->code : WB_INTERNAL;
}

Error SystemError(int error, const std::string& call) {
  return Error{CodeOfErrno(error), call + ": " + ErrnoText(error), {}};
}

}  // namespace wb::client
