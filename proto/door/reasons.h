#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/model/refusal.h"
#include "proto/door/names.h"

namespace wb {

/// At most this many reasons are kept of one input; beyond it they are only counted, so that a
/// hostile input cannot fill memory with complaints about itself.
inline constexpr std::size_t kMaxReasons = 10'000;

/// What a reason speaks of: fields of a Refusal, empty where it has none. `tensor` may be any
/// bytes.
struct Subject {
  std::string_view tensor = {};
  std::string_view worker = {};
};

/// Collects the reasons why one input is refused, in the order they are found. Used inside the
/// door only. Not thread-safe.
class Reasons {
 public:
  void Add(std::string_view kind, Subject subject, std::string text) {
    ++found_;
    if (refusals_.size() >= kMaxReasons) return;
    std::string tensor = subject.tensor.empty() ? "" : Shown(subject.tensor);
    refusals_.push_back(
        {std::string(kind), std::move(tensor), std::string(subject.worker), std::move(text)});
  }

  /// Counts reasons that were found and not told.
  void Skip(std::size_t count) { found_ += count; }

  std::size_t found() const { return found_; }
  bool empty() const { return found_ == 0; }
  bool full() const { return found_ >= kMaxReasons; }

  /// The reasons kept, and one more that counts the others.
  Refusals Take() && {
    if (found_ > refusals_.size()) {
      const std::size_t others = found_ - refusals_.size();
      refusals_.push_back({"limit", "", "", absl::StrCat("and ", others, " more reasons")});
    }
    return std::move(refusals_);
  }

 private:
  Refusals refusals_;
  std::size_t found_ = 0;
};

}  // namespace wb
