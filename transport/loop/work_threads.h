#pragma once

#include <functional>
#include <memory>

namespace wb {

/// Threads that run what is too long for a loop: checks of large layouts, making memory present.
/// Tasks are begun in their order. Thread-safe.
class WorkThreads {
 public:
  explicit WorkThreads(int threads);
  /// Tasks not yet begun are dropped; returns when those begun have ended.
  ~WorkThreads();
  WorkThreads(const WorkThreads&) = delete;
  WorkThreads& operator=(const WorkThreads&) = delete;

  void Submit(std::function<void()> task);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wb
