#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include <sys/types.h>

#include "absl/status/statusor.h"

#include "planner/base/mutex.h"

namespace wb {

/// A mapping in this process, unmapped when destroyed.
class Mapping {
 public:
  /// Of `bytes` at `start`, as mmap has given them.
  Mapping(void* start, std::uint64_t bytes) : start_(start), bytes_(bytes) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  std::byte* start() const { return static_cast<std::byte*>(start_); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void* const start_;
  const std::uint64_t bytes_;
};

/// The mappings of files that a process has to read only: one for all who want the same stretch of
/// the same file, gone with the last of them. What is written is not shared: it has one user. Any
/// thread.
///
/// Invariant: `mappings` holds what is mapped, and that is what keeps a file's number its own.
class MappedFiles {
 public:
  /// [from, from + bytes) of `fd`, in whole pages. Fails as mmap does, also where another has it.
  absl::StatusOr<std::shared_ptr<const Mapping>> MapToRead(int fd,
                                                           std::uint64_t from,
                                                           std::uint64_t bytes);
  /// The same, to write as well, and for this user alone.
  static absl::StatusOr<std::shared_ptr<const Mapping>> MapToWrite(int fd,
                                                                   std::uint64_t from,
                                                                   std::uint64_t bytes);
  /// That are mapped to read only.
  std::size_t size() const;

 private:
  struct Stretch {
    dev_t device;
    ino_t inode;
    std::uint64_t from;
    std::uint64_t bytes;
    auto operator<=>(const Stretch&) const = default;
  };
  struct Shared {
    mutable Mutex mu;
    std::map<Stretch, std::weak_ptr<const Mapping>> mappings ABSL_GUARDED_BY(mu);
  };

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();  // mappings may outlive us
};

}  // namespace wb
