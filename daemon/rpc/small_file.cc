#include "daemon/rpc/small_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "planner/base/fd_handle.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

absl::Status Unreadable(int error) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot be read: ", std::generic_category().message(error)));
}

/// What is left of `file`, or its first `most_bytes` bytes and one more.
absl::StatusOr<std::string> ReadUpTo(const FdHandle& file, std::size_t most_bytes) {
  std::string text(most_bytes + 1, '\0');
  std::size_t have = 0;
  ssize_t got = 0;
  do {
    got = ::read(file.get(), text.data() + have, text.size() - have);
    if (got < 0) return Unreadable(errno);
    have += static_cast<std::size_t>(got);
  } while (got > 0);
  text.resize(have);
  return text;
}

}  // namespace

absl::StatusOr<SmallFile> ReadSmallFile(const std::string& path, std::size_t most_bytes) {
  const FdHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return Unreadable(errno);
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return Unreadable(errno);
  if (!S_ISREG(found.st_mode)) return absl::InvalidArgumentError("is no regular file");
  WB_ASSIGN_OR_RETURN(std::string text, ReadUpTo(file, most_bytes));
  if (text.size() > most_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("has more than ", most_bytes, " bytes"));
  }
  return SmallFile{std::move(text), found.st_mode & 07777};
}

}  // namespace wb
