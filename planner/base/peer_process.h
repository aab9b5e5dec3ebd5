#pragma once

#include <cerrno>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "planner/base/fd_handle.h"

namespace wb {

/// Who is at the other end of a connected AF_UNIX socket, as the kernel saw it at connect (or at
/// listen, if that is the other end); zeros where it cannot be told.
inline ucred PeerCredentialsOf(int socket) {
  ucred found{};
  socklen_t bytes = sizeof(found);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &bytes) != 0) return {};
  return found;
}

/// A descriptor that is readable once the process at the other end has ended, whoever else holds
/// that end by then. Else none, and errno: ESRCH when it has ended already, EMFILE, or why it
/// cannot be known (an old kernel and another PID namespace, or a seccomp profile).
inline FdHandle OpenProcessOfPeer(int socket) {
  constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD, of Linux 6.5
  int process = -1;
  socklen_t bytes = sizeof(process);
  if (::getsockopt(socket, SOL_SOCKET, kPeerPidfd, &process, &bytes) == 0) return FdHandle(process);
  if (errno == EMFILE) return {};
  // The number may be another process's by now, if the peer has ended as soon as it connected.
  return FdHandle(static_cast<int>(::syscall(SYS_pidfd_open, PeerCredentialsOf(socket).pid, 0)));
}

}  // namespace wb
