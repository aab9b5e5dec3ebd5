#include "client/wbctl/rehearse/run_directory.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wb {
namespace {

namespace fs = std::filesystem;

/// Socket paths have 107 bytes at most; ours add about 20 to the folder's.
constexpr std::size_t kMaxPathBytes = 80;

}  // namespace

absl::StatusOr<RunDirectory> RunDirectory::Create() {
  std::error_code error;
  const char* runtime =
      std::getenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe): one thread
  fs::path parent;
  if (runtime != nullptr && fs::is_directory(runtime, error)) parent = runtime;
  if (parent.empty()) parent = fs::temp_directory_path(error);
  if (parent.empty()) return absl::NotFoundError("there is no temporary folder: set TMPDIR");
  std::string path = (fs::absolute(parent, error) / "wb-XXXXXX").string();
  if (path.size() > kMaxPathBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the folder ", parent.string(), " is too deep for socket paths: want at most ",
                     kMaxPathBytes, " bytes for ", path, "; set XDG_RUNTIME_DIR or TMPDIR"));
  }
  if (::mkdtemp(path.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a folder in ", parent.string()));
  }
  return RunDirectory(path);
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})), keep_(other.keep_) {}

void RunDirectory::Remove() {
  if (path_.empty() || keep_) return;
  std::error_code ignored;  // nothing to do about a file that does not go
  fs::remove_all(path_, ignored);
}

absl::Status WriteTextFile(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (out) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path.string()));
}

}  // namespace wb
