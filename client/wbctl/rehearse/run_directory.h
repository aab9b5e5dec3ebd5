#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wb {

/// A private folder (0700) for the sockets, configurations and logs of one rehearsal, under
/// $XDG_RUNTIME_DIR or else the temporary folder. Removed with all that is in it on destruction,
/// unless it is to be kept. Move-only.
class RunDirectory {
 public:
  static absl::StatusOr<RunDirectory> Create();
  ~RunDirectory() { Remove(); }
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void Keep() { keep_ = true; }

 private:
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  void Remove();
  std::filesystem::path path_;
  bool keep_ = false;
};

/// Writes a file whole, or an error that names it.
[[nodiscard]] absl::Status WriteTextFile(const std::filesystem::path& path,
                                         const std::string& text);

}  // namespace wb
