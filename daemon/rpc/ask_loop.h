#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "planner/base/mutex.h"
#include "transport/loop/event_loop.h"

namespace wb {

/// Runs `question` on the loop and waits for its answer, at most `timeout`: UNAVAILABLE then. What
/// the question refers to lives as long as the loop runs. Not from the loop's own thread.
template <typename T>
[[nodiscard]] absl::StatusOr<T> AskLoop(EventLoop& loop,
                                        std::chrono::milliseconds timeout,
                                        std::function<T()> question) {
  struct Answer {
    Mutex mu;
    CondVar changed;
    std::optional<T> value ABSL_GUARDED_BY(mu);
  };
  const auto answer = std::make_shared<Answer>();
  loop.Post([answer, ask = std::move(question)] {
    T value = ask();
    const MutexLock lock(answer->mu);
    answer->value = std::move(value);
    answer->changed.NotifyAll();
  });
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const MutexLock lock(answer->mu);
  while (!answer->value.has_value()) {
    if (!answer->changed.WaitUntil(answer->mu, deadline) && !answer->value.has_value()) {
      return absl::UnavailableError(
          absl::StrCat("the daemon's loop gave no answer in ", timeout.count(), " ms"));
    }
  }
  return *std::move(answer->value);
}

}  // namespace wb
