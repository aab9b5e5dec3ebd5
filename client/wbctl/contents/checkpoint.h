#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "client/wbctl/contents/safetensors.h"
#include "planner/model/layout.h"
#include "planner/model/refusal.h"

namespace wb {

/// A checkpoint's tensors, in one safetensors file or in several (shards). Immutable value.
///
/// Invariant: tensors are ordered by name and unique over all files; a scalar has shape [1], as
/// layouts have no shape [].
class Checkpoint {
 public:
  struct Entry {
    Tensor tensor;
    std::size_t file = 0;   // index into files()
    std::size_t index = 0;  // into that file's entries()
  };

  /// `path` is a *.safetensors file, a *.safetensors.index.json, or a folder that holds one or
  /// the other. Every reason why it is refused otherwise.
  static std::variant<Checkpoint, Refusals> Open(const std::filesystem::path& path);

  const std::vector<SafetensorsFile>& files() const { return files_; }
  /// Opened as a folder or by its index: a copy of it is a folder too.
  bool sharded() const { return sharded_; }
  const std::vector<Entry>& entries() const { return entries_; }
  /// The entry of that name, or null.
  const Entry* Find(std::string_view name) const;
  std::span<const std::byte> elements(const Entry& entry) const {
    return files_[entry.file].elements(files_[entry.file].entries()[entry.index]);
  }

 private:
  Checkpoint() = default;
  std::vector<SafetensorsFile> files_;
  std::vector<Entry> entries_;
  bool sharded_ = false;
};

}  // namespace wb
