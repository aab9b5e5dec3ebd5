#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "planner/base/mutex.h"

namespace wb {

/// Keeps lines that come again and again, as a refused peer's tries do, from filling the log: each
/// passes once a minute, with the number of those held back since. Remembers at most kMostLines; a
/// further one passes. Thread-safe.
class RepeatedLines {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kQuiet{60};
  static constexpr std::size_t kMostLines = 256;

  /// What to say after the line, "" if nothing is; none if the line is to be held back.
  std::optional<std::string> Passes(const std::string& line, Clock::time_point now) {
    const MutexLock lock(mu_);
    const auto found = passed_.find(line);
    if (found == passed_.end()) {
      if (passed_.size() >= kMostLines) passed_.clear();
      passed_[line] = {now, 0};
      return "";
    }
    if (now - found->second.at < kQuiet) {
      ++found->second.held_back;
      return std::nullopt;
    }
    const std::uint64_t held_back = std::exchange(found->second, {now, 0}).held_back;
    if (held_back == 0) return "";
    return " (and " + std::to_string(held_back) + " times since it was last logged)";
  }

 private:
  struct Passed {
    Clock::time_point at;
    std::uint64_t held_back = 0;
  };
  Mutex mu_;
  std::map<std::string, Passed> passed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace wb
