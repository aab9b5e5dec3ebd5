#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

#include "client/wbctl/process/mapped_file.h"
#include "planner/model/box.h"
#include "planner/model/dtype.h"
#include "planner/model/refusal.h"

namespace wb {

/// A tensor of a safetensors file. [begin, end) are bytes of the file's data, which starts after
/// the header; the elements lie there row-major, little endian, at any alignment.
struct SafetensorsEntry {
  std::string name;
  Dtype dtype = Dtype::kFp32;
  Index shape;  // as the file says: empty for a scalar
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const SafetensorsEntry&, const SafetensorsEntry&) = default;
};

/// The longest header the format allows, in bytes.
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

/// The tensors of a header (JSON, without the eight bytes of its length) over `data_bytes` of
/// data, or every reason why the file is damaged: `file` names it in the texts.
///
/// What is returned tiles the data exactly: ordered by offset, no overlap, no hole, every
/// tensor as long as its shape and dtype say.
[[nodiscard]] std::variant<std::vector<SafetensorsEntry>, Refusals> ParseSafetensorsHeader(
    std::string_view header, std::uint64_t data_bytes, const std::string& file);

/// A safetensors file, mapped for reading and checked whole. Immutable, thread-safe; movable.
/// A file that someone cuts short while it is mapped raises SIGBUS in who reads it.
class SafetensorsFile {
 public:
  /// Every reason why the file is refused: not readable, truncated, header too long, ...
  static std::variant<SafetensorsFile, Refusals> Open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  /// Ordered by offset.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  /// The elements of one of entries().
  std::span<const std::byte> elements(const SafetensorsEntry& entry) const {
    return data().subspan(entry.begin, entry.end - entry.begin);
  }
  /// Length and header as they are in the file: a copy that starts with them and holds the same
  /// elements is the same file byte for byte.
  std::span<const std::byte> head() const { return bytes().first(head_bytes_); }
  std::span<const std::byte> bytes() const { return map_.bytes(); }

 private:
  SafetensorsFile(std::filesystem::path path,
                  MappedFile map,
                  std::uint64_t head_bytes,
                  std::vector<SafetensorsEntry> entries);
  std::span<const std::byte> data() const { return bytes().subspan(head_bytes_); }

  std::filesystem::path path_;
  MappedFile map_;
  std::uint64_t head_bytes_ = 0;
  std::vector<SafetensorsEntry> entries_;
};

}  // namespace wb
