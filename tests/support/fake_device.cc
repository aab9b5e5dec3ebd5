#include "tests/support/fake_device.h"

#include <deque>
#include <thread>
#include <utility>

#include <sys/mman.h>

#include "tests/support/catch.h"
#include "transport/copy/done_jobs.h"

namespace wb::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::hours kIdleWait{1};

std::uintptr_t Address(const std::byte* byte) {
  return reinterpret_cast<std::uintptr_t>(byte);
}

}  // namespace

/// Addresses that nobody may touch, known to the device while they are open.
class FakeDevice::Memory final : public DeviceMemory {
 public:
  Memory(FakeDevice& device, std::span<std::byte> memory) : device_(device), memory_(memory) {
    if (memory.empty()) return;
    void* const start =
        mmap(nullptr, memory.size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(start != MAP_FAILED);
    start_ = static_cast<std::byte*>(start);
    const MutexLock lock(device_.mu_);
    device_.opened_.push_back({start_, memory_});
  }
  ~Memory() override {
    if (start_ == nullptr) return;
    {
      const MutexLock lock(device_.mu_);
      std::erase_if(device_.opened_, [this](const Opened& o) { return o.addresses == start_; });
    }
    munmap(start_, memory_.size());
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  DeviceId device() const override { return device_.id(); }
  std::span<std::byte> addresses() const override { return {start_, memory_.size()}; }

 private:
  FakeDevice& device_;
  const std::span<std::byte> memory_;
  std::byte* start_ = nullptr;
};

/// Does its jobs in order, as a stream of a GPU does.
class FakeDevice::StreamCopier final : public Copier {
 public:
  explicit StreamCopier(FakeDevice& device) : device_(device) {
    REQUIRE(done_.Open().ok());
    thread_ = std::thread([this] { Work(); });
  }
  ~StreamCopier() override {
    {
      const MutexLock lock(mu_);
      stopping_ = true;
    }
    work_.NotifyAll();
    thread_.join();
  }
  StreamCopier(const StreamCopier&) = delete;
  StreamCopier& operator=(const StreamCopier&) = delete;

  void Submit(CopyJob job) override {
    ++pending_;
    const Clock::time_point due = Clock::now() + device_.delay();
    {
      const MutexLock lock(mu_);
      queue_.push_back({std::move(job), due});
    }
    work_.NotifyAll();
  }
  void TakeDone(std::vector<CopyJob>& done) override { pending_ -= done_.TakeAll(done); }
  int completion_fd() const override { return done_.fd(); }
  std::size_t pending() const override { return pending_; }

 private:
  struct Queued {
    CopyJob job;
    Clock::time_point due;
  };

  void Work() {
    CopyJob job;
    while (Next(job)) {
      for (CopyStep& step : job.steps) {
        step.from = device_.Behind(step.from);
        step.to = device_.Behind(step.to);
      }
      job.summed = device_.Behind(job.summed);
      RunOnHost(job);
      done_.Add(std::move(job));
    }
  }
  /// Waits until one is due; false when the copier ends.
  bool Next(CopyJob& job) {
    const MutexLock lock(mu_);
    for (;;) {
      if (stopping_) return false;
      const Clock::time_point now = Clock::now();
      if (!queue_.empty() && queue_.front().due <= now) break;
      work_.WaitUntil(mu_, queue_.empty() ? now + kIdleWait : queue_.front().due);
    }
    job = std::move(queue_.front().job);
    queue_.pop_front();
    return true;
  }

  FakeDevice& device_;
  std::size_t pending_ = 0;  // the owner's thread only
  DoneJobs done_;
  Mutex mu_;
  CondVar work_;
  std::deque<Queued> queue_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // uses all of the above
};

std::span<std::byte> FakeDevice::Allocate(std::uint64_t bytes) {
  const MutexLock lock(mu_);
  return {allocations_.emplace_back(std::make_unique<std::byte[]>(bytes)).get(), bytes};
}

Region FakeDevice::Open(std::span<std::byte> memory, RegionAccess access) {
  return Region::OfDevice(std::make_unique<Memory>(*this, memory), access);
}

std::unique_ptr<Copier> FakeDevice::MakeCopier() {
  return std::make_unique<StreamCopier>(*this);
}

void FakeDevice::SetDelay(std::chrono::milliseconds delay) {
  const MutexLock lock(mu_);
  delay_ = delay;
}

std::chrono::milliseconds FakeDevice::delay() {
  const MutexLock lock(mu_);
  return delay_;
}

template <typename Byte>
std::span<Byte> FakeDevice::Behind(std::span<Byte> memory) {
  const MutexLock lock(mu_);
  for (const Opened& opened : opened_) {
    const std::uintptr_t at = Address(memory.data()) - Address(opened.addresses);
    if (at < opened.memory.size()) return opened.memory.subspan(at, memory.size());
  }
  return memory;  // of the host, or closed: then its addresses are gone and fault
}

}  // namespace wb::test
