#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace wb {

/// Keeps what fails again and again from filling the log. Lines are alike when they differ in
/// numbers only, decimal or hexadecimal. In the minute that begins with the first of them a line
/// passes once, and kMostAlike different ones that are alike; what is held back is counted, and
/// told of in one line when the minute is over. In any minute kMostKinds kinds of lines pass.
/// Thread-compatible.
class RepeatedLines {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kQuiet{60};
  static constexpr std::size_t kMostAlike = 10;
  static constexpr std::size_t kMostKinds = 256;

  /// Whether the line is to be written; if not, it is counted.
  bool Passes(std::string_view line, Clock::time_point now);

  /// A line for each kind of which lines were held back in a minute that is over by `now`. Such a
  /// kind begins anew. To be asked before Passes with the same `now`.
  std::vector<std::string> TakeOver(Clock::time_point now);

  /// A line for each kind of which lines are held back, whenever its minute ends.
  std::vector<std::string> TakeAll() { return TakeOver(Clock::time_point::max()); }

 private:
  struct Kind {
    Clock::time_point end;
    std::set<std::size_t> passed;  // hashes of the lines
    std::uint64_t held_back = 0;
    std::string last;  // that was held back
  };
  std::map<std::string, Kind> kinds_;
  Kind others_;  // beyond kMostKinds
};

}  // namespace wb
