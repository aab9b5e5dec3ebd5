#pragma once

#include <memory>
#include <string>
#include <vector>

#include <spdlog/sinks/sink.h>

#include "daemon/log/repeated_lines.h"
#include "planner/base/mutex.h"

namespace wb {

/// Passes lines on to another sink, warnings and worse only as RepeatedLines lets them: the steps
/// of versions, at level info, are always written. Critical lines are as well. Thread-safe.
class FoldingSink final : public spdlog::sinks::sink {
 public:
  explicit FoldingSink(std::shared_ptr<spdlog::sinks::sink> to) : to_(std::move(to)) {}
  FoldingSink(const FoldingSink&) = delete;
  FoldingSink& operator=(const FoldingSink&) = delete;
  /// Tells what has been held back.
  ~FoldingSink() override;

  void log(const spdlog::details::log_msg& message) override;
  /// Tells what has been held back in minutes that are over.
  void flush() override;
  void set_pattern(const std::string& pattern) override { to_->set_pattern(pattern); }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    to_->set_formatter(std::move(formatter));
  }

 private:
  void Tell(const std::vector<std::string>& summaries);

  const std::shared_ptr<spdlog::sinks::sink> to_;
  Mutex mu_;
  RepeatedLines repeated_ ABSL_GUARDED_BY(mu_);
};

}  // namespace wb
