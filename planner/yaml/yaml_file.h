#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wb {

/// What reads the value of each key, by the key's path ("leader.listen"). An error is to be read
/// after the path: "'x', want true or false".
using YamlReaders = std::map<std::string, std::function<absl::Status(const YAML::Node&)>>;

/// Reads one YAML file strictly: every key is known, there once, and of a value that its reader
/// takes. Keeps the first hundred reasons to refuse the file, each one line with the file, the line
/// and the key's path. Not thread-safe.
class YamlFile {
 public:
  /// No file may have more; it is refused before it is parsed, which takes 100 times its size.
  static constexpr std::size_t kMaxBytes = 1 << 20;

  explicit YamlFile(std::string name) : name_(std::move(name)) {}

  /// Parses `text` as one document and gives its root to `read`. Text that is too long or no YAML,
  /// or goes on after the document, is a reason.
  void Read(std::string_view text, const std::function<void(const YAML::Node&)>& read);

  /// Walks a map, and the maps in it that are sections of `readers`, and gives each value to its
  /// reader. Paths begin with `path`, and readers' keys are relative to it. The keys that were
  /// there, relative too. `owner` is what another key is no key of. Ends early once full.
  std::set<std::string> Walk(const YAML::Node& map,
                             const std::string& path,
                             const YamlReaders& readers,
                             const std::string& owner);

  void Refuse(const YAML::Node& at, const std::string& path, const std::string& why);
  void Refuse(const std::string& path, const std::string& why);
  const std::vector<std::string>& reasons() const { return reasons_; }
  /// Whether there are so many reasons that no more are kept.
  bool full() const;
  /// INVALID_ARGUMENT with every reason, one a line; OK when there is none.
  [[nodiscard]] absl::Status status() const;

 private:
  void Add(const std::string& where, const std::string& reason);

  const std::string name_;
  std::vector<std::string> reasons_;
};

// Readers of one value.

/// Not empty, without control characters.
[[nodiscard]] absl::StatusOr<std::string> ReadText(const YAML::Node& value);
[[nodiscard]] absl::StatusOr<bool> ReadBool(const YAML::Node& value);
/// A decimal integer, plain: without quotes, tag or zeros before it.
[[nodiscard]] absl::StatusOr<std::uint64_t> ReadInteger(const YAML::Node& value,
                                                        std::uint64_t least,
                                                        std::uint64_t most);
/// A decimal number from 0.001 to 1000000, plain too: "50", "12.5".
[[nodiscard]] absl::StatusOr<double> ReadDecimal(const YAML::Node& value);
[[nodiscard]] absl::StatusOr<std::string> ReadOneOf(const YAML::Node& value,
                                                    const std::vector<std::string>& choices);
/// [A-Za-z0-9._-]+, at most 255 bytes.
[[nodiscard]] absl::StatusOr<std::string> ReadName(const YAML::Node& value);

/// INVALID_ARGUMENT "'found', want wanted", with an excerpt of what was found.
[[nodiscard]] absl::Status Want(std::string_view found, std::string_view wanted);

/// The value into the field, if there is one.
template <typename T, typename U>
[[nodiscard]] absl::Status Assign(T& field, const absl::StatusOr<U>& read) {
  if (read.ok()) field = static_cast<T>(*read);
  return read.status();
}

}  // namespace wb
