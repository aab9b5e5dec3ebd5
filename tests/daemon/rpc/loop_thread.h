#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "daemon/rpc/ask_loop.h"
#include "tests/support/time_slack.h"
#include "transport/loop/event_loop.h"

namespace wb::test {

/// An EventLoop and its thread. The test asks it; Stop ends it before what it serves is destroyed.
class LoopThread {
 public:
  LoopThread() : loop_(*EventLoop::Create()) {}
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;
  ~LoopThread() { Stop(); }

  EventLoop& loop() { return *loop_; }
  void Run() {
    thread_ = std::thread([this] { loop_->Run(); });
  }
  void Stop() {
    loop_->Stop();
    if (thread_.joinable()) thread_.join();
  }
  /// What `question` says on the loop.
  template <typename Question>
  auto Ask(Question question) {
    using Answer = decltype(question());
    return *AskLoop<Answer>(*loop_, Slack(std::chrono::seconds(5)), std::move(question));
  }
  /// Whether `question` becomes true on the loop within `bound`; asked again whenever the loop has
  /// turned.
  bool Becomes(const std::function<bool()>& question,
               std::chrono::milliseconds bound = std::chrono::seconds(5)) {
    const auto deadline = std::chrono::steady_clock::now() + Slack(bound);
    while (!Ask(question)) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  std::unique_ptr<EventLoop> loop_;
  std::thread thread_;
};

}  // namespace wb::test
