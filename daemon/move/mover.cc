#include "daemon/move/mover.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/epoll.h>

#include <pthread.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "daemon/move/execute/executor.h"
#include "planner/base/mutex.h"
#include "planner/base/status_macros.h"
#include "transport/copy/copy_pool.h"
#include "transport/loop/event_loop.h"
#include "transport/ucx/ucx_fabric.h"

namespace wb {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kStartTime{60};  // UCX opens devices
constexpr std::chrono::seconds kEndTime{2};     // for operations to end when the mover goes
constexpr std::chrono::seconds kCountersTime{1};
constexpr int kStepsPerTurn = 16;  // of progress, between two looks at what was posted

/// A value that one thread waits for and another gives.
template <typename T>
class Handover {
 public:
  void Give(T value) {
    const MutexLock lock(mu_);
    value_ = std::move(value);
    given_.NotifyAll();
  }
  std::optional<T> Await(Clock::time_point deadline) {
    const MutexLock lock(mu_);
    while (!value_.has_value()) {
      if (!given_.WaitUntil(mu_, deadline)) break;
    }
    return std::exchange(value_, std::nullopt);
  }

 private:
  Mutex mu_;
  CondVar given_;
  std::optional<T> value_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

struct Mover::State {
  State(MoverOptions mover_options, MoverEvents& mover_events)
      : options(std::move(mover_options)), events(mover_events) {}

  absl::Status Build();
  void Main(Handover<absl::Status>& started);
  /// Progress; then whether the loop may sleep on the descriptors.
  bool BeforeSleep();
  bool MaySleep();
  /// Lanes that nobody wants are closed in time, though the loop sleeps.
  void ArmLaneTimer();
  void EndAll() const;
  void TearDown();

  const MoverOptions options;
  MoverEvents& events;
  std::unique_ptr<EventLoop> loop;
  std::string address;  // from Build on constant, as the next
  std::string fabric_name;

  // The loop's thread only; made and destroyed there.
  RegionTable regions;
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<CopyPool> copies;
  std::unique_ptr<Executor> executor;
  bool broken = false;      // the fabric cannot be waited for any more
  bool lane_timer = false;  // armed

  std::thread thread;
};

absl::Status Mover::State::Build() {
  WB_ASSIGN_OR_RETURN(fabric, UcxFabric::Create({options.interface, options.transports}, regions));
  if (options.between) fabric = options.between(std::move(fabric), regions);
  WB_ASSIGN_OR_RETURN(copies, CopyPool::Create(options.copy_threads));
  ExecutorOptions execute;
  execute.node = options.node;
  execute.incarnation = options.incarnation;
  execute.arena_bytes = options.arena_bytes;
  execute.chunk_bytes = options.chunk_bytes;
  execute.chunks_in_flight = options.chunks_in_flight;
  execute.local_copies_at_once = std::max(1, 2 * options.copy_threads);
  execute.verify = options.verify;
  WB_ASSIGN_OR_RETURN(executor,
                      Executor::Create({*fabric, regions, Copiers(*copies), events}, execute));
  address = fabric->address();
  fabric_name = fabric->traits().name;
  // The descriptors only end the sleep: the work is done before the next one.
  WB_RETURN_IF_ERROR(loop->Watch(fabric->wakeup_fd(), EPOLLIN, [](std::uint32_t /*events*/) {}));
  WB_RETURN_IF_ERROR(
      loop->Watch(copies->completion_fd(), EPOLLIN, [](std::uint32_t /*events*/) {}));
  loop->SetBeforeSleep([this] { return BeforeSleep(); });
  return absl::OkStatus();
}

void Mover::State::Main(Handover<absl::Status>& started) {
  ::pthread_setname_np(::pthread_self(), "wb-mover");
  const absl::Status built = Build();
  started.Give(built);
  if (built.ok()) {
    loop->Run();
    EndAll();
  }
  TearDown();
}

bool Mover::State::BeforeSleep() {
  for (int step = 0; step < kStepsPerTurn; ++step) {
    if (executor->Progress()) continue;
    ArmLaneTimer();
    return MaySleep();
  }
  return false;
}

void Mover::State::ArmLaneTimer() {
  if (lane_timer) return;
  const std::optional<Clock::time_point> due = executor->lanes_idle_until();
  if (!due.has_value()) return;
  lane_timer = true;
  loop->At(*due, [this] {
    lane_timer = false;
    executor->CloseIdleLanes();
  });
}

bool Mover::State::MaySleep() {
  if (broken) return true;
  const absl::StatusOr<bool> armed = fabric->Arm();
  if (!armed.ok()) {
    broken = true;
    spdlog::critical("mover: the fabric is broken: {}", armed.status().ToString());
    executor->FailAll(armed.status());
    return true;
  }
  // Busy, yet nothing to do: others need the core more. To spin or to sleep briefly instead
  // measured ten times slower where the two ends of a shared memory lane share a core.
  if (!*armed) std::this_thread::yield();
  return *armed;
}

void Mover::State::EndAll() const {
  executor->AbortAll();
  const Clock::time_point deadline = Clock::now() + kEndTime;
  while (!executor->idle() && Clock::now() < deadline) {
    if (executor->Progress()) continue;
    if (absl::StatusOr<bool> armed = fabric->Arm(); !armed.ok() || !*armed) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd watched[2] = {{fabric->wakeup_fd(), POLLIN, 0}, {copies->completion_fd(), POLLIN, 0}};
    poll(watched, 2, static_cast<int>(left.count()));
  }
  if (!executor->idle()) {
    spdlog::error("mover: attempts and snapshots did not end in {} s", kEndTime.count());
  }
}

/// First what can touch memory, then the memory.
void Mover::State::TearDown() {
  executor.reset();
  copies.reset();
  fabric.reset();
  regions = RegionTable();
}

absl::StatusOr<std::unique_ptr<Mover>> Mover::Start(const MoverOptions& options,
                                                    MoverEvents& events) {
  std::unique_ptr<Mover> mover(new Mover());
  mover->state_ = std::make_unique<State>(options, events);
  State& state = *mover->state_;
  WB_ASSIGN_OR_RETURN(state.loop, EventLoop::Create());
  const auto started = std::make_shared<Handover<absl::Status>>();
  state.thread = std::thread([&state, started] { state.Main(*started); });
  const std::optional<absl::Status> built = started->Await(Clock::now() + kStartTime);
  if (!built.has_value()) {
    return absl::DeadlineExceededError(absl::StrCat("mover: the fabric on ", options.interface,
                                                    " has not started within ", kStartTime.count(),
                                                    " s"));
  }
  WB_RETURN_IF_ERROR(*built);
  return mover;
}

Mover::~Mover() {
  if (!state_->thread.joinable()) return;
  state_->loop->Stop();
  state_->thread.join();
}

void Mover::Post(std::function<void()> task) const {
  state_->loop->Post(std::move(task));
}

const std::string& Mover::address() const {
  return state_->address;
}

const std::string& Mover::fabric() const {
  return state_->fabric_name;
}

// std::function wants copyable tasks: what only moves is passed through a shared pointer.

void Mover::AddRegion(RegionId id, Region region) {
  state_->loop->Post(
      [state = state_.get(), id, moved = std::make_shared<Region>(std::move(region))] {
        state->executor->AddRegion(id, std::move(*moved));
      });
}

void Mover::RemoveRegion(RegionId id, std::function<void()> removed) {
  state_->loop->Post([state = state_.get(), id, removed = std::move(removed)] {
    state->executor->RemoveRegion(id, removed);
  });
}

void Mover::Prepare(AttemptWork work) {
  state_->loop->Post(
      [state = state_.get(), moved = std::make_shared<AttemptWork>(std::move(work))] {
        state->executor->Prepare(std::move(*moved));
      });
}

void Mover::Go(AttemptId attempt) {
  state_->loop->Post([state = state_.get(), attempt] { state->executor->Go(attempt); });
}

void Mover::Abort(AttemptId attempt) {
  state_->loop->Post([state = state_.get(), attempt] { state->executor->Abort(attempt); });
}

void Mover::Finish(AttemptId attempt) {
  state_->loop->Post([state = state_.get(), attempt] { state->executor->Finish(attempt); });
}

void Mover::TakeSnapshot(SnapshotWork work) {
  state_->loop->Post(
      [state = state_.get(), work = std::move(work)] { state->executor->TakeSnapshot(work); });
}

void Mover::DropSnapshot(SnapshotId snapshot) {
  state_->loop->Post([state = state_.get(), snapshot] { state->executor->DropSnapshot(snapshot); });
}

absl::StatusOr<MoverCounters> Mover::Counters() const {
  if (state_->loop->InLoop()) return state_->executor->Counters();
  const auto counters = std::make_shared<Handover<MoverCounters>>();
  state_->loop->Post(
      [state = state_.get(), counters] { counters->Give(state->executor->Counters()); });
  std::optional<MoverCounters> given = counters->Await(Clock::now() + kCountersTime);
  if (!given.has_value()) {
    return absl::UnavailableError(
        absl::StrCat("mover: no answer within ", kCountersTime.count(), " s"));
  }
  return *std::move(given);
}

}  // namespace wb
