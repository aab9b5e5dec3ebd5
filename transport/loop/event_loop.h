#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "transport/loop/timers.h"

namespace wb {

/// One thread that sleeps in epoll and runs what is due: posted tasks, readable descriptors,
/// timers. State that is touched only from its tasks needs no lock ("loop-confined").
///
/// Post and Stop are thread-safe. Everything else is called before Run or from the loop's thread.
class EventLoop final : public Timers {
 public:
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();
  /// Run has returned, or was never called. Tasks and timers still due are dropped.
  ~EventLoop() override;
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Runs `task` on the loop, after all posted before it. After Stop tasks are dropped.
  void Post(Task task);
  /// Calls `on_ready` with the epoll events whenever `fd` has some of `events` (EPOLLIN, ...). One
  /// watch a descriptor, which is unwatched before it is closed.
  absl::Status Watch(int fd, std::uint32_t events, std::function<void(std::uint32_t)> on_ready);
  absl::Status ChangeWatch(int fd, std::uint32_t events);
  /// No callback of `fd` runs after this returns, not even one already due.
  void Unwatch(int fd);
  /// Runs `task` once at `when`.
  TimerId At(Clock::time_point when, Task task) override;
  void Cancel(TimerId timer) override;
  Clock::time_point Now() const override { return Clock::now(); }
  /// Called each time before the loop would sleep; returning false makes it poll without
  /// sleeping and come again. For sources that must be armed (UCX).
  void SetBeforeSleep(std::function<bool()> may_sleep);

  /// Runs until Stop; on the calling thread.
  void Run();
  void Stop();
  bool InLoop() const;

 private:
  EventLoop() = default;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wb
