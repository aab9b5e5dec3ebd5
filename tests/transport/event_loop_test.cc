#include "transport/loop/event_loop.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "planner/base/fd_handle.h"
#include "tests/support/catch.h"
#include "tests/support/time_slack.h"

namespace wb {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<EventLoop> MakeLoop() {
  std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
  // No test hangs: each stops its loop long before this.
  loop->At(EventLoop::Clock::now() + test::Slack(seconds(20)), [&loop = *loop] {
    loop.Stop();
    FAIL("the loop was not stopped");
  });
  return loop;
}

FdHandle Event(unsigned value = 0) {
  return FdHandle(eventfd(value, EFD_CLOEXEC | EFD_NONBLOCK));
}

TEST_CASE("posted tasks run in order, on the loop's thread", "[transport][loop]") {
  const std::unique_ptr<EventLoop> loop = MakeLoop();
  std::vector<int> order;
  REQUIRE_FALSE(loop->InLoop());
  loop->Post([&] {
    order.push_back(1);
    REQUIRE(loop->InLoop());
    loop->Post([&] {
      order.push_back(3);
      loop->Stop();
    });
  });
  loop->Post([&] { order.push_back(2); });
  loop->Run();
  REQUIRE(order == std::vector<int>{1, 2, 3});
  REQUIRE_FALSE(loop->InLoop());
}

TEST_CASE("a post from another thread wakes a sleeping loop", "[transport][loop]") {
  const std::unique_ptr<EventLoop> loop = MakeLoop();
  constexpr int kThreads = 4;
  constexpr int kPosts = 500;
  int ran = 0;
  std::atomic<bool> elsewhere = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kPosts; ++i) {
        elsewhere = elsewhere || loop->InLoop();
        loop->Post([&] {
          if (++ran == kThreads * kPosts) loop->Stop();
        });
      }
    });
  }
  loop->Run();
  for (std::thread& thread : threads) thread.join();
  REQUIRE(ran == kThreads * kPosts);
  REQUIRE_FALSE(elsewhere);
}

TEST_CASE("timers run by their time, then by their age, and never early", "[transport][loop]") {
  const std::unique_ptr<EventLoop> loop = MakeLoop();
  const auto start = EventLoop::Clock::now();
  std::string order;
  loop->At(start + milliseconds(20), [&] {
    order += 'd';
    REQUIRE(EventLoop::Clock::now() >= start + milliseconds(20));
    loop->Stop();
  });
  loop->At(start + milliseconds(10), [&] { order += 'b'; });
  loop->At(start + milliseconds(10), [&] { order += 'c'; });
  loop->At(start - seconds(1), [&] { order += 'a'; });
  loop->Run();
  REQUIRE(order == "abcd");
}

TEST_CASE("a cancelled timer does not run, and others do", "[transport][loop]") {
  const std::unique_ptr<EventLoop> loop = MakeLoop();
  const auto now = EventLoop::Clock::now();
  bool ran = false;
  const TimerId first = loop->At(now, [&] { ran = true; });
  const TimerId late = loop->At(now + milliseconds(5), [&] { ran = true; });
  loop->Cancel(first);
  loop->Cancel(first);
  loop->Cancel(TimerId(999));
  loop->At(now + milliseconds(1), [&] { loop->Cancel(late); });
  loop->At(now + milliseconds(10), [&] { loop->Stop(); });
  loop->Run();
  REQUIRE_FALSE(ran);
}

TEST_CASE("a timer may cancel another that is due, and set a new one", "[transport][loop]") {
  const std::unique_ptr<EventLoop> loop = MakeLoop();
  const auto now = EventLoop::Clock::now();
  bool ran = false;
  TimerId second;
  loop->At(now - milliseconds(2), [&] {
    loop->Cancel(second);
    loop->At(now, [&] { loop->Stop(); });
  });
  second = loop->At(now - milliseconds(1), [&] { ran = true; });
  loop->Run();
  REQUIRE_FALSE(ran);
}

TEST_CASE("a watched descriptor calls back with its events as long as it is ready",
          "[transport][loop]") {
  const std::unique_ptr<EventLoop> loop = MakeLoop();
  const FdHandle event = Event();
  int calls = 0;
  REQUIRE(loop->Watch(event.get(), EPOLLIN,
                      [&](std::uint32_t events) {
                        REQUIRE((events & EPOLLIN) != 0);
                        if (++calls < 3) return;  // not read: level-triggered
                        loop->Stop();
                      })
              .ok());
  bool signalled = false;
  std::thread other([&] {
    const std::uint64_t one = 1;
    signalled = write(event.get(), &one, sizeof(one)) == sizeof(one);
  });
  loop->Run();
  other.join();
  REQUIRE(signalled);
  REQUIRE(calls == 3);
}

TEST_CASE("ChangeWatch changes what is waited for", "[transport][loop]") {
  const std::unique_ptr<EventLoop> loop = MakeLoop();
  const FdHandle event = Event(1);  // readable and writable
  std::vector<std::uint32_t> seen;
  REQUIRE(loop->Watch(event.get(), EPOLLIN,
                      [&](std::uint32_t events) {
                        seen.push_back(events);
                        if (seen.size() == 2) return loop->Stop();
                        REQUIRE(loop->ChangeWatch(event.get(), EPOLLOUT).ok());
                      })
              .ok());
  loop->Run();
  REQUIRE(seen == std::vector<std::uint32_t>{EPOLLIN, EPOLLOUT});
  REQUIRE(loop->ChangeWatch(12345, EPOLLIN).code() == absl::StatusCode::kNotFound);
}

TEST_CASE("after Unwatch no callback runs, not even one already due", "[transport][loop]") {
  const std::unique_ptr<EventLoop> loop = MakeLoop();
  // All are ready before the loop runs: one wait returns them together.
  std::vector<FdHandle> events;
  for (int i = 0; i < 8; ++i) events.push_back(Event(1));
  int calls = 0;
  for (const FdHandle& event : events) {
    REQUIRE(loop->Watch(event.get(), EPOLLIN,
                        [&](std::uint32_t) {
                          ++calls;
                          for (const FdHandle& each : events)
                            loop->Unwatch(each.get());  // itself too
                        })
                .ok());
  }
  loop->At(EventLoop::Clock::now() + milliseconds(20), [&] { loop->Stop(); });
  loop->Run();
  REQUIRE(calls == 1);
  loop->Unwatch(events[0].get());  // not watched: no effect
}

TEST_CASE("a descriptor that takes a closed one's number is not taken for it",
          "[transport][loop]") {
  const std::unique_ptr<EventLoop> loop = MakeLoop();
  FdHandle first = Event(1);
  const FdHandle trigger = Event(1);
  FdHandle second;
  int old_calls = 0;
  int new_calls = 0;
  const int number = first.get();
  REQUIRE(loop->Watch(trigger.get(), EPOLLIN,
                      [&](std::uint32_t) {
                        loop->Unwatch(trigger.get());
                        loop->Unwatch(number);
                        first.Reset();
                        second = Event(1);
                        REQUIRE(second.get() == number);
                        REQUIRE(loop->Watch(number, EPOLLIN,
                                            [&](std::uint32_t) {
                                              ++new_calls;
                                              loop->Stop();
                                            })
                                    .ok());
                      })
              .ok());
  REQUIRE(loop->Watch(number, EPOLLIN, [&](std::uint32_t) { ++old_calls; }).ok());
  loop->Run();
  REQUIRE(old_calls == 0);
  REQUIRE(new_calls == 1);
}

TEST_CASE("what cannot be watched is refused by name", "[transport][loop]") {
  const std::unique_ptr<EventLoop> loop = MakeLoop();
  REQUIRE_FALSE(loop->Watch(-1, EPOLLIN, [](std::uint32_t) {}).ok());
  const FdHandle event = Event();
  REQUIRE(loop->Watch(event.get(), EPOLLIN, [](std::uint32_t) {}).ok());
  const absl::Status twice = loop->Watch(event.get(), EPOLLIN, [](std::uint32_t) {});
  REQUIRE(twice.code() == absl::StatusCode::kAlreadyExists);
  REQUIRE(std::string(twice.message()).find(std::to_string(event.get())) != std::string::npos);
}

TEST_CASE("while the source before sleep is not armed, the loop polls and comes again",
          "[transport][loop]") {
  const std::unique_ptr<EventLoop> loop = MakeLoop();
  int asked = 0;
  int ran = 0;
  loop->SetBeforeSleep([&] {
    if (++asked < 10) return false;
    if (asked == 10) {
      loop->Post([&] { ++ran; });  // seen without a sleep
      loop->At(EventLoop::Clock::now() + milliseconds(1), [&] { loop->Stop(); });  // as is this
    }
    return true;
  });
  loop->Run();
  REQUIRE(asked >= 10);
  REQUIRE(ran == 1);
}

TEST_CASE("after Stop tasks are dropped, with what they hold", "[transport][loop]") {
  std::unique_ptr<EventLoop> loop = MakeLoop();
  const auto held = std::make_shared<int>(1);
  bool ran = false;
  loop->Post([&loop = *loop] { loop.Stop(); });
  loop->Post([&ran, held] { ran = true; });
  loop->Run();
  loop->Post([&ran, held] { ran = true; });
  loop->At(EventLoop::Clock::now(), [held] {});
  loop->Run();  // returns at once
  REQUIRE_FALSE(ran);
  loop.reset();
  REQUIRE(held.use_count() == 1);
}

}  // namespace
}  // namespace wb
