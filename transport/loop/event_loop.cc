#include "transport/loop/event_loop.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "planner/base/fd_handle.h"
#include "planner/base/mutex.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

constexpr std::uint64_t kWakeKey = 0;  // of the loop's own eventfd; watches count from 1
constexpr int kEventsPerWait = 64;

absl::Status Control(int epoll, int operation, int fd, epoll_event event) {
  if (epoll_ctl(epoll, operation, fd, &event) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("loop: epoll_ctl of descriptor ", fd));
}

epoll_event Interest(std::uint32_t events, std::uint64_t key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return event;
}

}  // namespace

struct EventLoop::State {
  struct Watcher {
    int fd = -1;
    std::function<void(std::uint32_t)> on_ready;
  };

  FdHandle epoll;
  FdHandle wake;

  Mutex mu;
  std::vector<Task> posted ABSL_GUARDED_BY(mu);
  bool stopped ABSL_GUARDED_BY(mu) = false;

  std::atomic<std::thread::id> runner;

  // From here on: the loop's thread only.
  std::vector<Task> running;
  std::uint64_t next_key = kWakeKey + 1;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<Watcher>> watchers;
  absl::flat_hash_map<int, std::uint64_t> key_of_fd;
  std::vector<std::unique_ptr<Watcher>> unwatched;  // one of them may be running right now
  std::uint64_t next_timer = 1;
  std::map<std::pair<Clock::time_point, TimerId>, Task> timers;
  absl::flat_hash_map<TimerId, Clock::time_point> timer_times;
  std::function<bool()> may_sleep;

  void Wake() const {
    const std::uint64_t one = 1;
    // Fails only when the counter is full, and then the loop wakes all the same.
    static_cast<void>(!write(wake.get(), &one, sizeof(one)));
  }
  bool Stopped() {
    const MutexLock lock(mu);
    return stopped;
  }
  bool HasPosted() {
    const MutexLock lock(mu);
    return !posted.empty();
  }
  void RunPosted();
  void RunTimers();
  void Dispatch(const epoll_event& event);
  void WaitAndDispatch();
  int SleepMilliseconds();
};

void EventLoop::State::RunPosted() {
  {
    const MutexLock lock(mu);
    running.swap(posted);
  }
  for (Task& task : running) {
    if (Stopped()) break;
    task();
  }
  running.clear();
}

void EventLoop::State::RunTimers() {
  const Clock::time_point now = Clock::now();
  while (!timers.empty() && timers.begin()->first.first <= now && !Stopped()) {
    const auto first = timers.extract(timers.begin());
    timer_times.erase(first.key().second);
    first.mapped()();
  }
}

int EventLoop::State::SleepMilliseconds() {
  if (HasPosted()) return 0;
  if (timers.empty()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(timers.begin()->first.first - Clock::now());
  if (left.count() <= 0) return 0;
  return static_cast<int>(std::min<std::int64_t>(left.count(), std::numeric_limits<int>::max()));
}

void EventLoop::State::Dispatch(const epoll_event& event) {
  const std::uint64_t key = event.data.u64;  // by value: an epoll_event is packed
  if (key == kWakeKey) {
    std::uint64_t count = 0;
    static_cast<void>(!read(wake.get(), &count, sizeof(count)));
    return;
  }
  const auto found = watchers.find(key);
  if (found == watchers.end()) return;  // unwatched by a callback before this one
  found->second->on_ready(event.events);
}

void EventLoop::State::WaitAndDispatch() {
  int timeout = SleepMilliseconds();
  if (timeout != 0 && may_sleep) {
    const bool may = may_sleep();
    timeout = may ? SleepMilliseconds() : 0;  // it may have set a timer
  }
  std::array<epoll_event, kEventsPerWait> events{};
  const int count = epoll_wait(epoll.get(), events.data(), kEventsPerWait, timeout);
  if (count < 0 && errno != EINTR) std::abort();  // a descriptor of ours was closed by others
  for (int i = 0; i < count && !Stopped(); ++i) Dispatch(events[static_cast<std::size_t>(i)]);
  unwatched.clear();
}

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  std::unique_ptr<EventLoop> loop(new EventLoop());
  loop->state_ = std::make_unique<State>();
  State& state = *loop->state_;
  state.epoll = FdHandle(epoll_create1(EPOLL_CLOEXEC));
  if (!state.epoll) return absl::ErrnoToStatus(errno, "loop: epoll_create1");
  state.wake = FdHandle(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!state.wake) return absl::ErrnoToStatus(errno, "loop: eventfd");
  WB_RETURN_IF_ERROR(
      Control(state.epoll.get(), EPOLL_CTL_ADD, state.wake.get(), Interest(EPOLLIN, kWakeKey)));
  return loop;
}

EventLoop::~EventLoop() = default;

void EventLoop::Post(Task task) {
  {
    const MutexLock lock(state_->mu);
    if (state_->stopped) return;
    state_->posted.push_back(std::move(task));
    if (state_->posted.size() > 1) return;  // the first one has woken the loop
  }
  state_->Wake();
}

absl::Status EventLoop::Watch(int fd,
                              std::uint32_t events,
                              std::function<void(std::uint32_t)> on_ready) {
  const std::uint64_t key = state_->next_key++;
  WB_RETURN_IF_ERROR(Control(state_->epoll.get(), EPOLL_CTL_ADD, fd, Interest(events, key)));
  state_->watchers[key] = std::make_unique<State::Watcher>(State::Watcher{fd, std::move(on_ready)});
  state_->key_of_fd[fd] = key;
  return absl::OkStatus();
}

absl::Status EventLoop::ChangeWatch(int fd, std::uint32_t events) {
  const auto found = state_->key_of_fd.find(fd);
  if (found == state_->key_of_fd.end()) {
    return absl::NotFoundError(absl::StrCat("loop: descriptor ", fd, " is not watched"));
  }
  return Control(state_->epoll.get(), EPOLL_CTL_MOD, fd, Interest(events, found->second));
}

void EventLoop::Unwatch(int fd) {
  const auto found = state_->key_of_fd.find(fd);
  if (found == state_->key_of_fd.end()) return;
  // Fails only for a descriptor that is closed already, which epoll has forgotten by itself.
  static_cast<void>(Control(state_->epoll.get(), EPOLL_CTL_DEL, fd, {}));
  const auto watcher = state_->watchers.find(found->second);
  state_->unwatched.push_back(std::move(watcher->second));
  state_->watchers.erase(watcher);
  state_->key_of_fd.erase(found);
}

TimerId EventLoop::At(Clock::time_point when, Task task) {
  const TimerId id(state_->next_timer++);
  state_->timers.emplace(std::pair{when, id}, std::move(task));
  state_->timer_times.emplace(id, when);
  return id;
}

void EventLoop::Cancel(TimerId timer) {
  const auto found = state_->timer_times.find(timer);
  if (found == state_->timer_times.end()) return;
  state_->timers.erase({found->second, timer});
  state_->timer_times.erase(found);
}

void EventLoop::SetBeforeSleep(std::function<bool()> may_sleep) {
  state_->may_sleep = std::move(may_sleep);
}

void EventLoop::Run() {
  state_->runner.store(std::this_thread::get_id());
  while (!state_->Stopped()) {
    state_->RunPosted();
    state_->RunTimers();
    if (!state_->Stopped()) state_->WaitAndDispatch();
  }
  state_->runner.store(std::thread::id());
}

void EventLoop::Stop() {
  {
    const MutexLock lock(state_->mu);
    state_->stopped = true;
  }
  state_->Wake();
}

bool EventLoop::InLoop() const {
  return state_->runner.load() == std::this_thread::get_id();
}

}  // namespace wb
