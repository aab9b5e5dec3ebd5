#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/wbctl/contents/checkpoint.h"
#include "planner/base/fd_handle.h"

namespace wb {

/// A copy of a checkpoint in the making: the same headers, elements still to come. It lies in a
/// folder of its own beside `out` until Commit gives it its name; removed if that never happens. A
/// copy of a sharded checkpoint is a folder. Move-only; the checkpoint outlives it.
class CheckpointCopy {
 public:
  /// Whether a copy may get this name: a folder must not hold anything yet, a file must be a plain
  /// one and none of the checkpoint's own.
  static absl::Status CheckOut(const Checkpoint& checkpoint, const std::filesystem::path& out);
  /// Makes the files at their full size, mode 0644 as the umask allows; checks `out` first.
  static absl::StatusOr<CheckpointCopy> Create(const Checkpoint& checkpoint,
                                               const std::filesystem::path& out);
  ~CheckpointCopy();
  CheckpointCopy(CheckpointCopy&& other) noexcept;
  CheckpointCopy& operator=(CheckpointCopy&&) = delete;
  CheckpointCopy(const CheckpointCopy&) = delete;
  CheckpointCopy& operator=(const CheckpointCopy&) = delete;

  /// The folder where it is being made: what a CheckpointCopyWriter of another process opens.
  const std::filesystem::path& path() const { return path_; }
  /// Compares it with the checkpoint byte for byte: a sentence for each tensor that differs, at
  /// most `most` of them. Empty: the same.
  absl::StatusOr<std::vector<std::string>> Differences(std::size_t most) const;
  /// Gives it its name, replacing a file that was there.
  absl::Status Commit();

 private:
  CheckpointCopy(const Checkpoint& checkpoint,
                 std::filesystem::path path,
                 std::filesystem::path out)
      : checkpoint_(checkpoint), path_(std::move(path)), out_(std::move(out)) {}
  const Checkpoint& checkpoint_;
  std::filesystem::path path_;  // empty: moved from, or renamed as a whole
  std::filesystem::path out_;
};

/// Writes elements into a checkpoint's copy; several processes may do so at once.
class CheckpointCopyWriter {
 public:
  static absl::StatusOr<CheckpointCopyWriter> Open(const Checkpoint& checkpoint,
                                                   const std::filesystem::path& copy);
  /// Elements of `tensor` from row-major index `begin`.
  absl::Status Write(const Tensor& tensor, std::uint64_t begin, std::span<const std::byte> bytes);

 private:
  explicit CheckpointCopyWriter(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  const Checkpoint& checkpoint_;
  std::vector<FdHandle> files_;  // as checkpoint_.files()
};

}  // namespace wb
