#include "client/wbctl/process/child.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace wb {
namespace {

constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC, which older headers lack

/// A name without value in `changes` is removed, others replace or add.
std::vector<std::string> Environment(const std::vector<std::string>& changes) {
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool changed = std::any_of(changes.begin(), changes.end(), [&](const std::string& c) {
      return name_of(c) == name_of(*entry);
    });
    if (!changed) result.emplace_back(*entry);
  }
  for (const std::string& change : changes) {
    if (change.find('=') != std::string::npos) result.push_back(change);
  }
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// All that the child needs between fork and exec, made before: it may not allocate there.
struct Launch {
  std::vector<char*> argv;
  std::vector<char*> environment;
  int null_fd;
  int log_fd;
  int control_fd;
  int error_fd;
  pid_t parent;
};

/// Puts `from` at `to`, open across exec.
bool Place(int from, int to) {
  if (from == to) return ::fcntl(to, F_SETFD, 0) == 0;
  return ::dup2(from, to) == to;
}

/// Runs in the child; async-signal-safe calls only.
[[noreturn]] void RunChild(const Launch& launch) {
  sigset_t none;
  ::sigemptyset(&none);
  bool ready = ::setpgid(0, 0) == 0 && ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
               ::getppid() == launch.parent &&
               ::pthread_sigmask(SIG_SETMASK, &none, nullptr) == 0 &&
               ::signal(SIGPIPE, SIG_DFL) != SIG_ERR;
  ready = ready && Place(launch.null_fd, 0) && Place(launch.log_fd, 1) && Place(launch.log_fd, 2) &&
          (launch.control_fd < 0 || Place(launch.control_fd, kControlFd));
  // Whatever our own parent let us inherit ends here. An older kernel cannot do it: no harm.
  const unsigned first = launch.control_fd < 0 ? kControlFd : kControlFd + 1;
  ::syscall(SYS_close_range, first, ~0U, kCloseOnExec);
  if (ready) ::execve(launch.argv[0], launch.argv.data(), launch.environment.data());
  const int why = errno;
  // If the parent is gone too there is nobody to tell.
  [[maybe_unused]] const ssize_t written = ::write(launch.error_fd, &why, sizeof(why));
  ::_exit(127);
}

/// Moves a descriptor out of the way of 0, 1, 2 and kControlFd, which the child overwrites.
FdHandle OutOfTheWay(FdHandle fd) {
  if (fd.get() > kControlFd) return fd;
  return FdHandle(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kControlFd + 1));
}

absl::Status Failed(const ChildOptions& options, int error) {
  return absl::ErrnoToStatus(error,
                             absl::StrCat("cannot start ", options.name, ", ", options.argv[0]));
}

}  // namespace

absl::StatusOr<Child> Child::Start(const ChildOptions& options) {
  std::vector<std::string> argv = options.argv;
  std::vector<std::string> environment = Environment(options.environment);
  const FdHandle null = OutOfTheWay(FdHandle(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  const FdHandle log = OutOfTheWay(
      FdHandle(::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)));
  const FdHandle control = OutOfTheWay(
      FdHandle(options.control_fd < 0 ? -1 : ::fcntl(options.control_fd, F_DUPFD_CLOEXEC, 0)));
  std::array<int, 2> pipe{-1, -1};
  if (!null || !log || ::pipe2(pipe.data(), O_CLOEXEC) != 0) return Failed(options, errno);
  const FdHandle error_read(pipe[0]);
  FdHandle error_write = OutOfTheWay(FdHandle(pipe[1]));

  const Launch launch{Pointers(argv), Pointers(environment), null.get(), log.get(),
                      control.get(),  error_write.get(),     ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return Failed(options, errno);
  if (pid == 0) RunChild(launch);

  Child child;
  child.name_ = options.name;
  child.log_ = options.log;
  child.pid_ = pid;
  child.pidfd_ = FdHandle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!child.pidfd_) return Failed(options, errno);
  // Ends when exec closes the pipe, or with the reason why there was none.
  error_write.Reset();
  int why = 0;
  if (::read(error_read.get(), &why, sizeof(why)) > 0) return Failed(options, why);
  return child;
}

Child::Child(Child&& other) noexcept
    : name_(std::move(other.name_)),
      log_(std::move(other.log_)),
      pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      wait_status_(other.wait_status_) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    Kill();
    name_ = std::move(other.name_);
    log_ = std::move(other.log_);
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
    wait_status_ = other.wait_status_;
  }
  return *this;
}

Child::~Child() {
  Kill();
}

void Child::Signal(int signal) const {
  if (pid_ > 0 && !wait_status_) ::kill(-pid_, signal);
}

std::string Child::Ended() {
  if (pid_ > 0 && !wait_status_) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return "";
    wait_status_ = status;
  }
  if (!wait_status_) return "";
  if (WIFSIGNALED(*wait_status_)) {
    const int signal = WTERMSIG(*wait_status_);
    return absl::StrCat("was killed by signal ", signal, " (", ::sigdescr_np(signal), ")");
  }
  return absl::StrCat("exited with code ", WEXITSTATUS(*wait_status_));
}

void Child::Kill() {
  if (pid_ <= 0 || wait_status_) return;
  // The group first; the process itself too, in case it was killed before it had its group.
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  // SIGKILL ends everything but a process stuck inside the kernel: that one init will reap.
  constexpr int kPatienceMs = 5000;
  pollfd ended{pidfd_.get(), POLLIN, 0};
  if (!pidfd_ || ::poll(&ended, 1, kPatienceMs) == 1) Ended();
  pid_ = -1;
}

std::string Tail(const std::filesystem::path& file, int lines, const char* indent) {
  constexpr std::streamoff kMostBytes{65'536};
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - kMostBytes));
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<absl::string_view> all = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  const std::size_t keep = std::min(all.size(), static_cast<std::size_t>(lines));
  std::string tail;
  for (std::size_t i = all.size() - keep; i < all.size() && !text.empty(); ++i) {
    absl::StrAppend(&tail, indent, all[i], "\n");
  }
  return tail;
}

}  // namespace wb
