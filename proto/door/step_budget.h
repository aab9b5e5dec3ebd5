#pragma once

#include <cstdint>

namespace wb {

/// How much work an untrusted input may still cause. Spent, it stays spent.
class StepBudget {
 public:
  explicit StepBudget(std::uint64_t steps) : left_(steps) {}
  /// Whether `steps` more were left; takes them.
  bool Spend(std::uint64_t steps) {
    if (steps > left_) {
      left_ = 0;
      return false;
    }
    left_ -= steps;
    return true;
  }

 private:
  std::uint64_t left_;
};

}  // namespace wb
