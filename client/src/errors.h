#pragma once

#include <string>

#include "client/include/weightbridge/client.h"

namespace wb::client {

using weightbridge::Error;
using weightbridge::Result;

/// INVALID_ARGUMENT.
[[nodiscard]] Error Invalid(std::string message);

/// "Permission denied (EACCES)"; "(errno 999)" for a number without a name here.
[[nodiscard]] std::string ErrnoText(int error);

/// The code that a failed system call means to a caller: a missing or forbidden thing, a resource
/// that ran out, a call that the system does not offer.
[[nodiscard]] wb_status CodeOfErrno(int error);

/// `call` is named as the system calls it: "memfd_create: Function not implemented (ENOSYS)".
[[nodiscard]] Error SystemError(int error, const std::string& call);

}  // namespace wb::client
