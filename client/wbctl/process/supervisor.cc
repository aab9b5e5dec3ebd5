#include "client/wbctl/process/supervisor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "planner/base/status_macros.h"

namespace wb {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxNoticeBytes = 4096;

absl::StatusOr<FdHandle> BindNotify(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = path.string();
  if (name.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("socket path ", name, " has ", name.size(),
                                                   " bytes, want less than ",
                                                   sizeof(address.sun_path)));
  }
  std::memcpy(static_cast<char*>(address.sun_path), name.data(), name.size());
  FdHandle fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot bind ", name));
  }
  return fd;
}

int MillisecondsUntil(Clock::time_point deadline) {
  constexpr std::int64_t kMost = 3'600'000;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kMost));
}

}  // namespace

absl::StatusOr<Supervisor> Supervisor::Create(const std::filesystem::path& notify_path,
                                              const StopSignals& signals) {
  WB_ASSIGN_OR_RETURN(FdHandle notify, BindNotify(notify_path));
  return Supervisor(notify_path, std::move(notify), signals);
}

Supervisor::Supervisor(Supervisor&&) noexcept = default;

Supervisor::~Supervisor() {
  if (!notify_) return;  // moved from
  // All at once first, so that their ends overlap; then each is reaped.
  for (const Watched& watched : watched_) watched.child.Signal(SIGKILL);
  watched_.clear();
  std::error_code ignored;  // the folder may be gone already
  std::filesystem::remove(notify_path_, ignored);
}

absl::StatusOr<std::size_t> Supervisor::StartNotifying(ChildOptions options) {
  options.environment.push_back(absl::StrCat("NOTIFY_SOCKET=", notify_path_.string()));
  WB_ASSIGN_OR_RETURN(Child child, Child::Start(options));
  watched_.push_back({std::move(child), std::nullopt, false});
  return watched_.size() - 1;
}

absl::StatusOr<std::size_t> Supervisor::StartControlled(ChildOptions options) {
  WB_ASSIGN_OR_RETURN(auto ends, ControlChannel::CreatePair());
  options.environment.emplace_back("NOTIFY_SOCKET");
  options.control_fd = ends.second.fd();
  WB_ASSIGN_OR_RETURN(Child child, Child::Start(options));
  watched_.push_back({std::move(child), std::move(ends.first), false});
  return watched_.size() - 1;
}

absl::Status Supervisor::Send(std::size_t index, const std::string& message) const {
  const Watched& watched = watched_[index];
  if (watched.control) return watched.control->Send(message);
  return absl::UnavailableError(
      absl::StrCat(watched.child.name(), " has closed its control channel"));
}

std::optional<SupervisorEvent> Supervisor::TakeSignal() const {
  const std::optional<int> signal = signals_.Take();
  if (!signal) return std::nullopt;
  return SupervisorEvent{
      .kind = SupervisorEvent::Kind::kSignal, .child = 0, .text = "", .signal = *signal};
}

std::optional<SupervisorEvent> Supervisor::TakeNotice() const {
  std::array<char, kMaxNoticeBytes> text{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
  iovec bytes{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(notify_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return std::nullopt;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_CREDENTIALS) return std::nullopt;
  ucred sender{};
  std::memcpy(&sender, CMSG_DATA(header), sizeof(sender));
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    if (watched_[i].child.pid() != sender.pid) continue;
    return SupervisorEvent{.kind = SupervisorEvent::Kind::kNotified,
                           .child = i,
                           .text = std::string(text.data(), static_cast<std::size_t>(got))};
  }
  return std::nullopt;  // not a child of ours: nobody we listen to
}

std::optional<SupervisorEvent> Supervisor::TakeFrom(std::size_t index) {
  Watched& watched = watched_[index];
  // Ask for the end first: what was said before it is in the channel by then.
  const bool ended = !watched.end_told && !watched.child.Ended().empty();
  if (watched.control) {
    const absl::StatusOr<std::string> said = watched.control->Receive();
    if (said.ok() && !said->empty()) {
      return SupervisorEvent{.kind = SupervisorEvent::Kind::kSaid, .child = index, .text = *said};
    }
    // A closed channel stays readable: stop polling it, the end is to come.
    if (!said.ok()) watched.control.reset();
  }
  if (!ended) return std::nullopt;
  watched.end_told = true;
  return SupervisorEvent{.kind = SupervisorEvent::Kind::kEnded, .child = index, .text = ""};
}

std::optional<SupervisorEvent> Supervisor::TakeAny() {
  std::optional<SupervisorEvent> event = TakeSignal();
  if (!event) event = TakeNotice();
  for (std::size_t i = 0; i < watched_.size() && !event; ++i) event = TakeFrom(i);
  return event;
}

absl::Status Supervisor::Poll(Clock::time_point deadline) const {
  std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0}, {notify_.get(), POLLIN, 0}};
  for (const Watched& watched : watched_) {
    if (!watched.end_told) fds.push_back({watched.child.pidfd(), POLLIN, 0});
    if (watched.control) fds.push_back({watched.control->fd(), POLLIN, 0});
  }
  if (::poll(fds.data(), fds.size(), MillisecondsUntil(deadline)) < 0 && errno != EINTR) {
    return absl::ErrnoToStatus(errno, "poll");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<SupervisorEvent>> Supervisor::Next(Clock::time_point deadline) {
  while (true) {
    std::optional<SupervisorEvent> event = TakeAny();
    if (event || Clock::now() >= deadline) return event;
    WB_RETURN_IF_ERROR(Poll(deadline));
  }
}

}  // namespace wb
