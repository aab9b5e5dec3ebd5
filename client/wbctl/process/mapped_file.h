#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

#include <sys/mman.h>

#include "absl/status/statusor.h"

namespace wb {

/// A whole file, mapped for reading. Move-only; unmapped on destruction.
class MappedFile {
 public:
  /// An error naming the file when it is not a readable regular file. An empty file is an empty
  /// span.
  static absl::StatusOr<MappedFile> Open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    if (this != &other) {
      Unmap();
      bytes_ = std::exchange(other.bytes_, {});
    }
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() { Unmap(); }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<std::byte> bytes) : bytes_(bytes) {}
  void Unmap() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  }
  std::span<std::byte> bytes_;
};

}  // namespace wb
