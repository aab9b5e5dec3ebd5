#pragma once

#include <map>
#include <string>
#include <string_view>

#include "client/include/weightbridge/client.h"

namespace wb::client {

using weightbridge::Error;
using weightbridge::Result;

/// A culprit as a detail of an Error: "reason=LATE domain=weightbridge stage=answer ...", the
/// metadata in the order of its keys.
[[nodiscard]] std::string CulpritDetail(const std::string& reason,
                                        const std::string& domain,
                                        const std::map<std::string, std::string>& metadata);

/// INVALID_ARGUMENT.
[[nodiscard]] Error Invalid(std::string message);

/// Refuses a text that no message can carry: `what` "is not UTF-8 at byte 3".
[[nodiscard]] Result<void> CheckUtf8(const std::string& what, std::string_view text);

/// "Permission denied (EACCES)"; "(errno 999)" for a number without a name here.
[[nodiscard]] std::string ErrnoText(int error);

/// The code that a failed system call means to a caller: a missing or forbidden thing, a resource
/// that ran out, a call that the system does not offer.
[[nodiscard]] wb_status CodeOfErrno(int error);

/// `call` is named as the system calls it: "memfd_create: Function not implemented (ENOSYS)".
[[nodiscard]] Error SystemError(int error, const std::string& call);

}  // namespace wb::client
