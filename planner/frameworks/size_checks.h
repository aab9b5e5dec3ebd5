#pragma once

#include <cstdint>
#include <string>

#include "planner/model/refusal.h"

namespace wb {

/// Keeps every reason why parallel sizes do not fit a model or each other (kind "size"), each with
/// the key, its value and what was wanted. All sizes given are at least 1.
class SizeChecks {
 public:
  /// `key` is `size`, and has to divide `count`, which is of `what`. Whether it does.
  bool Divides(const std::string& key,
               std::int64_t size,
               const std::string& what,
               std::int64_t count);
  /// Heads are whole on each of `size` ranks: else the reason tells how many of the `head_rows`
  /// rows of a head a rank would have.
  bool DividesHeads(const std::string& key,
                    std::int64_t size,
                    const std::string& what,
                    std::int64_t heads,
                    std::int64_t head_rows);
  void Refuse(const std::string& key, std::int64_t size, const std::string& why);
  /// Of a key whose value is a word.
  void Refuse(const std::string& key, const std::string& value, const std::string& why);

  const Refusals& refusals() const { return refusals_; }

 private:
  Refusals refusals_;
};

}  // namespace wb
