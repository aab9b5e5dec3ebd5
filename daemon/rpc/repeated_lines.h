#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "planner/base/mutex.h"

namespace wb {

/// Keeps lines that come again and again, as a refused peer's tries do, from filling the log: each
/// passes once a minute. Remembers at most kMostLines; a further one passes. Thread-safe.
class RepeatedLines {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kQuiet{60};
  static constexpr std::size_t kMostLines = 256;

  bool Passes(const std::string& line, Clock::time_point now) {
    const MutexLock lock(mu_);
    const auto found = passed_.find(line);
    if (found != passed_.end() && now - found->second < kQuiet) return false;
    if (found == passed_.end() && passed_.size() >= kMostLines) passed_.clear();
    passed_[line] = now;
    return true;
  }

 private:
  Mutex mu_;
  std::map<std::string, Clock::time_point> passed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace wb
