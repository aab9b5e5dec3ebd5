#include "client/wbctl/process/stop_signals.h"

#include <cerrno>
#include <csignal>

#include <sys/signalfd.h>
#include <unistd.h>

#include "absl/status/status.h"

namespace wb {
namespace {

/// Those not ignored: nohup has SIGHUP ignored, and means it.
sigset_t Signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) ::sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

absl::StatusOr<StopSignals> StopSignals::Block() {
  // A reader of our output that goes away must not end us before we have cleaned up.
  if (::signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
    return absl::ErrnoToStatus(errno, "cannot ignore SIGPIPE");
  }
  const sigset_t set = Signals();
  FdHandle fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return absl::ErrnoToStatus(errno, "cannot make a signalfd");
  const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  if (error != 0) return absl::ErrnoToStatus(error, "cannot block signals");
  return StopSignals(std::move(fd));
}

StopSignals::~StopSignals() {
  if (!fd_) return;
  const sigset_t set = Signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

std::optional<int> StopSignals::Take() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace wb
