#include "daemon/loop_watch.h"

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "planner/base/mutex.h"
#include "tests/daemon/rpc/loop_thread.h"
#include "tests/support/catch.h"
#include "tests/support/time_slack.h"

namespace wb {
namespace {

using test::LoopThread;
using test::Slack;
using namespace std::chrono_literals;

/// What a watch told, for another thread to wait for. Thread-safe.
class Told {
 public:
  void Take(const std::vector<LoopWatch::Stuck>& stuck) {
    const MutexLock lock(mu_);
    names_.clear();
    for (const LoopWatch::Stuck& one : stuck) names_.push_back(one.name);
    changed_.NotifyAll();
  }
  bool Becomes(const std::vector<std::string>& names, std::chrono::milliseconds bound) {
    const auto deadline = std::chrono::steady_clock::now() + bound;
    const MutexLock lock(mu_);
    while (names_ != names) {
      if (!changed_.WaitUntil(mu_, deadline)) return names_ == names;
    }
    return true;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::vector<std::string> names_ ABSL_GUARDED_BY(mu_);
};

LoopWatch::Loop Watched(const std::string& name, LoopThread& thread) {
  return {name, [&thread](std::function<void()> task) { thread.loop().Post(std::move(task)); }};
}

TEST_CASE("A loop that stops is named before the limit, the others go on, and it may turn again",
          "[daemon][health][field][case-108]") {
  const std::chrono::milliseconds limit = Slack(400ms);
  LoopThread control;
  LoopThread mover;
  control.Run();
  mover.Run();
  Told told;
  LoopWatch watch({Watched("control", control), Watched("mover", mover)}, limit,
                  [&](const std::vector<LoopWatch::Stuck>& stuck) { told.Take(stuck); });
  REQUIRE(watch.StuckLoops().empty());
  std::promise<void> go_on;
  mover.loop().Post([held = go_on.get_future().share()] { held.wait(); });
  REQUIRE(told.Becomes({"mover"}, limit + Slack(200ms)));
  REQUIRE(watch.IsStuck("mover"));
  REQUIRE_FALSE(watch.IsStuck("control"));
  const std::string text = watch.StuckLoops().at(0).ToString();
  REQUIRE(text.rfind("the mover thread has not turned for ", 0) == 0);
  go_on.set_value();
  REQUIRE(told.Becomes({}, limit));
}

TEST_CASE("A watch ends at once, whatever is stuck", "[daemon][health]") {
  LoopThread never_runs;
  const auto start = std::chrono::steady_clock::now();
  {
    const LoopWatch watch({Watched("leader", never_runs)}, 1h, [](const auto& /*stuck*/) {});
  }
  REQUIRE(std::chrono::steady_clock::now() - start < Slack(1s));
}

}  // namespace
}  // namespace wb
