#include "transport/copy/copy_pool.h"

#include <chrono>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include <poll.h>

#include "tests/support/catch.h"
#include "tests/support/seed.h"
#include "tests/support/time_slack.h"
#include "transport/copy/byte_runs.h"
#include "transport/copy/checksum.h"

namespace wb {
namespace {

using Bytes = std::vector<std::byte>;

bool Readable(int fd, std::chrono::milliseconds within) {
  pollfd watched{fd, POLLIN, 0};
  return poll(&watched, 1, static_cast<int>(within.count())) == 1;
}

/// Waits on the descriptor until `count` jobs are done.
std::vector<CopyJob> Await(CopyPool& pool, std::size_t count) {
  std::vector<CopyJob> done;
  while (done.size() < count) {
    REQUIRE(Readable(pool.completion_fd(), test::Slack(std::chrono::seconds(10))));
    pool.TakeDone(done);
  }
  return done;
}

ByteBlock Run(std::uint64_t bytes) {
  return ByteBlock{0, bytes, {}};
}

TEST_CASE("a copy pool runs every job once and says so on its descriptor", "[transport][copy]") {
  const int threads = GENERATE(0, 1, 3);
  const int round = GENERATE(range(0, 5));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round << " threads " << threads);
  std::mt19937_64 rng = test::TestRng(round);
  auto pool = CopyPool::Create(threads).value();
  REQUIRE_FALSE(Readable(pool->completion_fd(), std::chrono::milliseconds(0)));

  constexpr std::size_t kJobs = 40;
  constexpr std::size_t kRuns = 100;
  const ByteBlock strided{4, 6, {{kRuns, 9}}};
  std::vector<Bytes> sources(kJobs, Bytes(EndOffset(strided)));
  std::vector<Bytes> targets(kJobs, Bytes(strided.bytes()));
  const ByteBlock packed = Run(strided.bytes());
  for (std::size_t j = 0; j < kJobs; ++j) {
    for (std::byte& byte : sources[j]) byte = std::byte(rng() & 0xFF);
    CopyJob job;
    job.token = j;
    // Two steps: a job may have many.
    const std::uint64_t half = strided.bytes() / 2;
    job.steps.push_back({sources[j], &strided, 0, targets[j], &packed, 0, half});
    job.steps.push_back({sources[j], &strided, half, targets[j], &packed, half, half});
    job.summed = targets[j];
    pool->Submit(std::move(job));
  }
  REQUIRE(pool->pending() == kJobs);
  const std::vector<CopyJob> done = Await(*pool, kJobs);
  REQUIRE(pool->pending() == 0);

  std::set<std::uint64_t> tokens;
  for (const CopyJob& job : done) {
    tokens.insert(job.token);
    const auto j = static_cast<std::size_t>(job.token);
    for (std::size_t r = 0; r < kRuns; ++r) {
      REQUIRE(std::memcmp(&sources[j][4 + r * 9], &targets[j][r * 6], 6) == 0);
    }
    REQUIRE(job.checksum == Checksum(targets[j]));
  }
  REQUIRE(tokens.size() == kJobs);
}

TEST_CASE("a copy pool can go with jobs still queued", "[transport][copy]") {
  Bytes source(1 << 20);
  Bytes target(1 << 20);
  const ByteBlock run = Run(source.size());
  auto pool = CopyPool::Create(1).value();
  for (int i = 0; i < 100; ++i) {
    CopyJob job;
    job.steps.push_back({source, &run, 0, target, &run, 0, source.size()});
    pool->Submit(std::move(job));
  }
  pool.reset();  // no thread touches the memory after this: ASan and TSan would see it
  Bytes().swap(target);
}

TEST_CASE("a job without steps only sums", "[transport][copy]") {
  const Bytes bytes(1000, std::byte{7});
  auto pool = CopyPool::Create(1).value();
  CopyJob job;
  job.summed = bytes;
  pool->Submit(std::move(job));
  REQUIRE(Await(*pool, 1).front().checksum == Checksum(bytes));
}

TEST_CASE("a copy pool of a senseless size is refused", "[transport][copy]") {
  REQUIRE(CopyPool::Create(-1).status().code() == absl::StatusCode::kInvalidArgument);
  REQUIRE(CopyPool::Create(257).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wb
