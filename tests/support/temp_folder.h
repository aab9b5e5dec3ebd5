#pragma once

#include <filesystem>
#include <string>
#include <utility>

namespace wb::test {

/// A fresh folder of its own for one test, removed with all that is in it. Movable; what is left
/// behind has no folder.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempFolder& operator=(TempFolder&&) = delete;
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Where a file of that name is, or would be.
  std::filesystem::path File(const std::string& name) const {
    return std::filesystem::path(path_) / name;
  }
  /// Writes a file and says where it is; throws when it cannot be written.
  std::filesystem::path Write(const std::string& name, const std::string& bytes) const;

 private:
  std::string path_;
};

}  // namespace wb::test
