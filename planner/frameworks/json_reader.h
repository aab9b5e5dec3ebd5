#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "planner/model/refusal.h"

namespace wb {

/// Reads the keys of one JSON object and keeps every reason to refuse it (kind "model"), each with
/// the file's name, the key and its value. A value that is refused reads as the least that is
/// allowed, so that what follows can go on. Used by ParseHfConfig.
class JsonReader {
 public:
  /// Refuses what is no JSON object, has more than 1 MiB (published configs have some KiB), is
  /// nested deeper than 32 levels, or has a key twice anywhere.
  JsonReader(std::string_view json, std::string file);

  /// Absent or null.
  bool Lacks(const std::string& key) const;
  /// An integer from `least` to `most`; refused where it is missing, unless `fallback` is given.
  std::int64_t Integer(const std::string& key,
                       std::int64_t least,
                       std::int64_t most,
                       std::optional<std::int64_t> fallback = std::nullopt);
  /// null as `none`; refused where it is missing.
  std::int64_t IntegerOrNull(const std::string& key,
                             std::int64_t least,
                             std::int64_t most,
                             std::int64_t none);
  bool Flag(const std::string& key, std::optional<bool> fallback = std::nullopt);
  /// Empty where it is refused.
  std::string Text(const std::string& key);
  /// The only text of a list of one.
  std::string OnlyText(const std::string& key);
  /// A list of integers from 0 below `end`; none where it is missing.
  std::vector<std::int64_t> Indices(const std::string& key, std::int64_t end);

  /// `key` as the file has it, and `wanted`.
  void Refuse(const std::string& key, const std::string& wanted);
  const Refusals& refusals() const { return refusals_; }

 private:
  void Parse(std::string_view json);
  void Add(const std::string& text);

  const std::string file_;
  nlohmann::json object_;
  Refusals refusals_;
};

}  // namespace wb
