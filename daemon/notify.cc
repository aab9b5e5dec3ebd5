#include "daemon/notify.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

#include <sys/socket.h>
#include <sys/un.h>

#include "absl/strings/str_cat.h"

#include "planner/base/fd_handle.h"

namespace wb {

absl::Status NotifyServiceManager(const std::string& socket, const std::string& state) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() < 2 || socket.size() >= sizeof(address.sun_path) ||
      (socket.front() != '/' && socket.front() != '@')) {
    return absl::InvalidArgumentError(
        absl::StrCat("NOTIFY_SOCKET: '", socket, "' is neither a path nor an abstract name"));
  }
  std::memcpy(address.sun_path, socket.data(), socket.size());
  if (socket.front() == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  const FdHandle sender(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!sender || ::sendto(sender.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                          reinterpret_cast<const sockaddr*>(&address), length) < 0) {
    return absl::UnavailableError(
        absl::StrCat("NOTIFY_SOCKET ", socket, ": ", std::generic_category().message(errno)));
  }
  return absl::OkStatus();
}

}  // namespace wb
