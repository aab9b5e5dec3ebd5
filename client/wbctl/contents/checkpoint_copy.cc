#include "client/wbctl/contents/checkpoint_copy.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "client/wbctl/process/mapped_file.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

namespace fs = std::filesystem;

/// "a/b/" names the folder a/b.
fs::path WithoutSlash(const fs::path& path) {
  return path.filename().empty() ? path.parent_path() : path;
}

fs::path FileOfCopy(const Checkpoint& checkpoint, const fs::path& copy, std::size_t file) {
  return copy / checkpoint.files()[file].path().filename();
}

absl::Status WriteAt(int fd, std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return absl::ErrnoToStatus(errno, "cannot write the checkpoint's copy");
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  return absl::OkStatus();
}

/// The file with its header, and room for its elements taken: a full disk shows here.
absl::Status MakeFile(const SafetensorsFile& like, const fs::path& path) {
  const FdHandle fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", path.string()));
  const int full = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(like.bytes().size()));
  if (full != 0) {
    return absl::ErrnoToStatus(full, absl::StrCat("cannot make room for ", path.string()));
  }
  return WriteAt(fd.get(), like.head(), 0);
}

absl::Status MakeFiles(const Checkpoint& checkpoint, const fs::path& copy) {
  for (std::size_t i = 0; i < checkpoint.files().size(); ++i) {
    WB_RETURN_IF_ERROR(MakeFile(checkpoint.files()[i], FileOfCopy(checkpoint, copy, i)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckpointCopy::CheckOut(const Checkpoint& checkpoint, const fs::path& given) {
  const fs::path out = WithoutSlash(given);
  std::error_code error;
  const fs::file_status there = fs::symlink_status(out, error);
  if (there.type() == fs::file_type::not_found) return absl::OkStatus();
  if (checkpoint.sharded()) {
    if (fs::is_directory(there) && fs::is_empty(out, error)) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat(out.string(), " is there already"));
  }
  if (fs::is_directory(there)) {
    return absl::AlreadyExistsError(absl::StrCat(out.string(), " is a folder, want a file"));
  }
  if (!fs::is_regular_file(there)) {
    return absl::AlreadyExistsError(
        absl::StrCat(out.string(), " is no regular file, want one or a new name"));
  }
  const fs::path& original = checkpoint.files().front().path();
  if (fs::equivalent(out, original, error)) {
    return absl::AlreadyExistsError(
        absl::StrCat(out.string(), " is the checkpoint itself, want another name"));
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckpointCopy> CheckpointCopy::Create(const Checkpoint& checkpoint,
                                                      const fs::path& given) {
  WB_RETURN_IF_ERROR(CheckOut(checkpoint, given));
  const fs::path out = WithoutSlash(given);
  std::string folder = absl::StrCat(out.string(), ".wb-XXXXXX");
  if (::mkdtemp(folder.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a folder beside ", out.string()));
  }
  CheckpointCopy copy(checkpoint, folder, out);
  WB_RETURN_IF_ERROR(MakeFiles(checkpoint, copy.path_));
  return copy;
}

CheckpointCopy::CheckpointCopy(CheckpointCopy&& other) noexcept
    : checkpoint_(other.checkpoint_),
      path_(std::exchange(other.path_, {})),
      out_(std::move(other.out_)) {}

CheckpointCopy::~CheckpointCopy() {
  std::error_code ignored;  // nothing to do about a file that does not go
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

absl::StatusOr<std::vector<std::string>> CheckpointCopy::Differences(std::size_t most) const {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < checkpoint_.files().size(); ++i) {
    const SafetensorsFile& original = checkpoint_.files()[i];
    WB_ASSIGN_OR_RETURN(const MappedFile copy, MappedFile::Open(FileOfCopy(checkpoint_, path_, i)));
    const std::span<const std::byte> want = original.bytes();
    const std::span<const std::byte> got = copy.bytes();
    if (std::equal(want.begin(), want.end(), got.begin(), got.end())) continue;
    for (const SafetensorsEntry& entry : original.entries()) {
      const std::span<const std::byte> elements = original.elements(entry);
      const std::span<const std::byte> copied =
          got.subspan(original.head().size() + entry.begin, elements.size());
      const auto at = std::mismatch(elements.begin(), elements.end(), copied.begin());
      if (at.first == elements.end() || found.size() == most) continue;
      found.push_back(absl::StrCat("tensor ", entry.name, " differs first at its byte ",
                                   at.first - elements.begin(), " of ", elements.size()));
    }
  }
  return found;
}

absl::Status CheckpointCopy::Commit() {
  const fs::path from = checkpoint_.sharded() ? path_ : FileOfCopy(checkpoint_, path_, 0);
  if (checkpoint_.sharded()) ::chmod(path_.c_str(), 0755);
  if (::rename(from.c_str(), out_.c_str()) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot rename ", from.string(), " to ", out_.string()));
  }
  if (checkpoint_.sharded()) path_.clear();
  return absl::OkStatus();
}

absl::StatusOr<CheckpointCopyWriter> CheckpointCopyWriter::Open(const Checkpoint& checkpoint,
                                                                const fs::path& copy) {
  CheckpointCopyWriter writer(checkpoint);
  for (std::size_t i = 0; i < checkpoint.files().size(); ++i) {
    const fs::path path = FileOfCopy(checkpoint, copy, i);
    writer.files_.emplace_back(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!writer.files_.back()) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path.string()));
    }
  }
  return writer;
}

absl::Status CheckpointCopyWriter::Write(const Tensor& tensor,
                                         std::uint64_t begin,
                                         std::span<const std::byte> bytes) {
  const Checkpoint::Entry* entry = checkpoint_.Find(tensor.name);
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat("tensor ", tensor.name, " is not in the checkpoint"));
  }
  const SafetensorsFile& file = checkpoint_.files()[entry->file];
  const auto element = static_cast<std::uint64_t>(DtypeBytes(tensor.dtype));
  const std::uint64_t offset =
      file.head().size() + file.entries()[entry->index].begin + begin * element;
  return WriteAt(files_[entry->file].get(), bytes, offset);
}

}  // namespace wb
