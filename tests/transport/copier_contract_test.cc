#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <vector>

#include <poll.h>

#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/seed.h"
#include "tests/support/time_slack.h"
#include "transport/copy/byte_runs.h"
#include "transport/copy/checksum.h"
#include "transport/copy/copier.h"
#include "transport/copy/copy_pool.h"

namespace wb::test {
namespace {

using std::chrono::milliseconds;
using Bytes = std::vector<std::byte>;

/// Memory as the copier is told it, and as the test sees it.
struct Place {
  std::span<std::byte> addresses;
  std::span<std::byte> contents;
};

/// Host memory of a test.
class HostMemory {
 public:
  Place Host(std::uint64_t bytes) {
    Bytes& memory = memories_.emplace_back(bytes);
    return {memory, memory};
  }

 private:
  std::vector<Bytes> memories_;
};

// Each kind makes copiers, and memory of the sort that they are for.

template <int kThreads>
struct PoolKind : HostMemory {
  std::unique_ptr<Copier> Make() { return CopyPool::Create(kThreads).value(); }
  Place Own(std::uint64_t bytes) { return Host(bytes); }
};

struct FakeDeviceKind : HostMemory {
  FakeDeviceKind() { device.SetDelay(milliseconds(10)); }
  std::unique_ptr<Copier> Make() { return device.MakeCopier(); }
  Place Own(std::uint64_t bytes) {
    const std::span<std::byte> contents = device.Allocate(bytes);
    return {regions.emplace_back(device.Open(contents)).addresses(), contents};
  }

  FakeDevice device;
  std::vector<Region> regions;
};

#define WB_COPIERS PoolKind<0>, PoolKind<2>, FakeDeviceKind

/// Memory on one side of a copy: the kind's own, or the host's.
template <typename Kind>
Place PlaceAt(Kind& kind, bool own, std::uint64_t bytes) {
  return own ? kind.Own(bytes) : kind.Host(bytes);
}

bool Readable(const Copier& copier, milliseconds within) {
  pollfd watched{copier.completion_fd(), POLLIN, 0};
  return poll(&watched, 1, static_cast<int>(within.count())) == 1;
}

/// Waits on the descriptor until `count` jobs are done.
std::vector<CopyJob> Await(Copier& copier, std::size_t count) {
  std::vector<CopyJob> done;
  while (done.size() < count) {
    REQUIRE(Readable(copier, Slack(std::chrono::seconds(10))));
    copier.TakeDone(done);
  }
  return done;
}

void FillRandom(std::span<std::byte> memory, std::mt19937_64& rng) {
  for (std::byte& byte : memory) byte = std::byte(rng() & 0xFF);
}

CopyJob JobOf(std::vector<CopyStep> steps) {
  CopyJob job;
  job.steps = std::move(steps);
  return job;
}

TEMPLATE_TEST_CASE("a copier does every job once, and says so on its descriptor",
                   "[transport][copy][contract]",
                   WB_COPIERS) {
  TestType kind;
  const auto copier = kind.Make();
  REQUIRE_FALSE(Readable(*copier, milliseconds(0)));
  REQUIRE(copier->pending() == 0);
  constexpr std::size_t kJobs = 40;
  const ByteBlock run{0, 8, {}};
  const Place from = kind.Own(8 * kJobs);
  const Place to = kind.Host(8 * kJobs);
  std::fill(from.contents.begin(), from.contents.end(), std::byte{7});
  for (std::size_t j = 0; j < kJobs; ++j) {
    CopyJob job = JobOf(
        {{from.addresses.subspan(8 * j, 8), &run, 0, to.addresses.subspan(8 * j, 8), &run, 0, 8}});
    job.token = j;
    copier->Submit(std::move(job));
  }
  REQUIRE(copier->pending() == kJobs);
  std::set<std::uint64_t> tokens;
  for (const CopyJob& job : Await(*copier, kJobs)) tokens.insert(job.token);
  REQUIRE(tokens.size() == kJobs);
  REQUIRE(copier->pending() == 0);
  REQUIRE(std::ranges::equal(to.contents, from.contents));
  std::vector<CopyJob> more;
  copier->TakeDone(more);
  REQUIRE(more.empty());
  REQUIRE_FALSE(Readable(*copier, milliseconds(0)));
}

TEMPLATE_TEST_CASE("a copier walks both sides of a step, whatever their strides",
                   "[transport][copy][contract]",
                   WB_COPIERS) {
  const int round = GENERATE(range(0, 5));
  const bool from_own = GENERATE(false, true);
  const bool to_own = GENERATE(false, true);
  INFO("WB_TEST_SEED=" << RunSeed() << " round " << round);
  std::mt19937_64 rng = TestRng(round);
  TestType kind;
  const ByteBlock rows{4, 6, {{100, 9}}};
  const ByteBlock columns{3, 2, {{30, 40}, {10, 3}}};
  const Place from = PlaceAt(kind, from_own, EndOffset(rows) + 5);
  const Place to = PlaceAt(kind, to_own, EndOffset(columns) + 5);
  FillRandom(from.contents, rng);
  FillRandom(to.contents, rng);
  const std::uint64_t begin = rng() % 300;
  const std::uint64_t bytes = rng() % 300;
  Bytes image(to.contents.begin(), to.contents.end());
  CopyRuns({from.contents, rows, begin}, {image, columns, begin}, bytes);

  const auto copier = kind.Make();
  copier->Submit(JobOf({{from.addresses, &rows, begin, to.addresses, &columns, begin, bytes}}));
  Await(*copier, 1);
  REQUIRE(std::ranges::equal(to.contents, image));
}

TEMPLATE_TEST_CASE("a copier takes a job's steps in order, and then the checksum",
                   "[transport][copy][contract]",
                   WB_COPIERS) {
  std::mt19937_64 rng = TestRng(0);
  TestType kind;
  const std::uint64_t bytes = 10'000;
  const ByteBlock run{0, bytes, {}};
  const Place first = kind.Own(bytes);
  const Place second = kind.Host(bytes);
  const Place third = kind.Own(bytes);
  FillRandom(first.contents, rng);
  CopyJob job = JobOf({{first.addresses, &run, 0, second.addresses, &run, 0, bytes},
                       {second.addresses, &run, 0, third.addresses, &run, 0, bytes}});
  job.summed = GENERATE(false, true) ? third.addresses : second.addresses;
  const auto copier = kind.Make();
  copier->Submit(std::move(job));
  const std::vector<CopyJob> done = Await(*copier, 1);
  REQUIRE(std::ranges::equal(third.contents, first.contents));
  REQUIRE(done.front().checksum == Checksum(first.contents));
  REQUIRE(done.front().steps.capacity() >= 2);  // its memory comes back
}

TEMPLATE_TEST_CASE("a job without steps only sums, or is just done",
                   "[transport][copy][contract]",
                   WB_COPIERS) {
  TestType kind;
  const Place summed = kind.Own(GENERATE(std::uint64_t{0}, 1000));
  std::fill(summed.contents.begin(), summed.contents.end(), std::byte{7});
  CopyJob job;
  job.summed = summed.addresses;
  const auto copier = kind.Make();
  copier->Submit(std::move(job));
  REQUIRE(Await(*copier, 1).front().checksum == Checksum(summed.contents));
}

TEMPLATE_TEST_CASE("a job that a copier calls done has all of its bytes in place",
                   "[transport][copy][contract]",
                   WB_COPIERS) {
  TestType kind;
  const std::uint64_t bytes = 1 << 16;
  const ByteBlock run{0, bytes, {}};
  const Place from = kind.Own(bytes);
  std::fill(from.contents.begin(), from.contents.end(), std::byte{7});
  std::vector<Place> targets;
  const auto copier = kind.Make();
  for (std::uint64_t j = 0; j < 16; ++j) {
    targets.push_back(PlaceAt(kind, j % 2 == 0, bytes));
    CopyJob job = JobOf({{from.addresses, &run, 0, targets[j].addresses, &run, 0, bytes}});
    job.token = j;
    copier->Submit(std::move(job));
  }
  // Asked at any moment, not only when the descriptor says so.
  const auto deadline = std::chrono::steady_clock::now() + Slack(std::chrono::seconds(10));
  std::vector<CopyJob> done;
  for (std::size_t seen = 0; seen < targets.size();) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    copier->TakeDone(done);
    REQUIRE(copier->pending() == targets.size() - done.size());
    for (; seen < done.size(); ++seen) {
      REQUIRE(std::ranges::equal(targets[done[seen].token].contents, from.contents));
    }
  }
}

TEMPLATE_TEST_CASE("a copier that goes with jobs pending touches their memory no more",
                   "[transport][copy][contract]",
                   WB_COPIERS) {
  TestType kind;
  const std::uint64_t bytes = 1 << 20;
  const ByteBlock run{0, bytes, {}};
  const Place from = kind.Own(bytes);
  const Place to = kind.Own(bytes);
  auto copier = kind.Make();
  for (int i = 0; i < 50; ++i) {
    copier->Submit(JobOf({{from.addresses, &run, 0, to.addresses, &run, 0, bytes}}));
  }
  copier.reset();
  // Sanitizers would see a thread that still copies; so would this.
  std::fill(from.contents.begin(), from.contents.end(), std::byte{7});
  REQUIRE(std::ranges::all_of(to.contents, [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST_CASE("a fake device's copier leaves all as it is until its delay has passed",
          "[transport][copy]") {
  FakeDeviceKind kind;
  const ByteBlock run{0, 8, {}};
  const Place from = kind.Own(8);
  const Place to = kind.Host(8);
  from.contents[0] = std::byte{7};
  constexpr milliseconds kDelay{100};
  kind.device.SetDelay(kDelay);
  const auto copier = kind.Make();
  const auto start = std::chrono::steady_clock::now();
  copier->Submit(JobOf({{from.addresses, &run, 0, to.addresses, &run, 0, 8}}));
  std::vector<CopyJob> done;
  copier->TakeDone(done);
  if (std::chrono::steady_clock::now() < start + kDelay) {
    REQUIRE(done.empty());
    REQUIRE(copier->pending() == 1);
  }
  REQUIRE(Await(*copier, 1).size() == 1);
  REQUIRE(std::chrono::steady_clock::now() >= start + kDelay);
  REQUIRE(to.contents[0] == std::byte{7});
}

TEST_CASE("a copy pool of a senseless size is refused", "[transport][copy]") {
  REQUIRE(CopyPool::Create(-1).status().code() == absl::StatusCode::kInvalidArgument);
  REQUIRE(CopyPool::Create(257).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wb::test
