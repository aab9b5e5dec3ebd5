#include "daemon/rpc/run_dir.h"

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "planner/base/status_macros.h"

namespace wb {
namespace {

constexpr mode_t kDirMode = 0750;
constexpr mode_t kLockMode = 0640;
constexpr std::size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;  // bytes

absl::Status Refused(const std::string& path, std::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("run_dir ", path, ": ", absl::string_view(why.data(), why.size())));
}

std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

absl::Status EnsureDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), kDirMode) == 0) {
    // mkdir obeys the umask; the mode is part of what we promise.
    if (::chmod(path.c_str(), kDirMode) == 0) return absl::OkStatus();
    return Refused(path, "cannot set its mode: " + ErrnoText(errno));
  }
  if (errno != EEXIST) return Refused(path, "cannot create it: " + ErrnoText(errno));
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return Refused(path, ErrnoText(errno));
  if (!S_ISDIR(found.st_mode)) return Refused(path, "is no directory");
  if (found.st_uid != ::geteuid() && ::geteuid() != 0) {
    return Refused(path, absl::StrCat("belongs to uid ", found.st_uid, ", want ", ::geteuid()));
  }
  if ((found.st_mode & S_IWOTH) != 0) return Refused(path, "is writable by everyone, want 0750");
  return absl::OkStatus();
}

/// The process id that the holder wrote, for people.
std::string HolderOf(int lock) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(lock, text.data(), text.size(), 0);
  if (got <= 0) return "of unknown pid";
  const std::string raw(text.data(), static_cast<std::size_t>(got));
  return absl::StrCat("of pid ", std::string(absl::StripAsciiWhitespace(raw)));
}

absl::Status TakeLock(int lock, const std::string& dir) {
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Refused(dir, "cannot lock it: " + ErrnoText(errno));
    return Refused(dir, "another weightbridged " + HolderOf(lock) + " holds " + dir + "/lock");
  }
  const std::string pid = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(lock, 0) != 0 ||
      ::pwrite(lock, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return Refused(dir, "cannot write " + dir + "/lock: " + ErrnoText(errno));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunDir> RunDir::Open(const std::string& path) {
  WB_RETURN_IF_ERROR(EnsureDirectory(path));
  const std::string lock_path = path + "/lock";
  FdHandle lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kLockMode));
  if (!lock) return Refused(path, "cannot open " + lock_path + ": " + ErrnoText(errno));
  WB_RETURN_IF_ERROR(TakeLock(lock.get(), path));
  return RunDir(path, std::move(lock));
}

RunDir::~RunDir() {
  for (const std::string& socket : sockets_) ::unlink(socket.c_str());
}

absl::StatusOr<std::string> RunDir::ClaimSocket(const std::string& name) {
  const std::string path = path_ + "/" + name;
  if (path.size() > kMaxSocketPath) {
    return Refused(path_, absl::StrCat(path, " has ", path.size(),
                                       " bytes, a socket's path at most ", kMaxSocketPath));
  }
  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode)) {
      return Refused(path_, name + " is there and is no socket; left as it is");
    }
    if (::unlink(path.c_str()) != 0) {
      return Refused(path_, "cannot remove the stale " + name + ": " + ErrnoText(errno));
    }
  } else if (errno != ENOENT) {
    return Refused(path_, name + ": " + ErrnoText(errno));
  }
  sockets_.push_back(path);
  return path;
}

}  // namespace wb
