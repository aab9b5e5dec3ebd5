#include "daemon/rpc/local/memory_claims.h"

#include <algorithm>
#include <memory>

#include <fcntl.h>

#include "absl/strings/match.h"

#include "tests/daemon/rpc/local_door_fixture.h"
#include "tests/support/file_mappings.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::DoorClient;
using test::DoorFixture;
using test::JoiningWorker;
using test::MappingsOf;

/// A worker of rank 0 whose buffers "a" (16 bytes) and "b" (8 bytes) lie in `memory`.
JoiningWorker WorkerIn(const FdHandle& memory,
                       v1::Role role,
                       std::uint64_t a_at,
                       std::uint64_t b_at) {
  JoiningWorker worker = JoiningWorker::Make(role, role == v1::TRAINER ? "policy" : "engine0");
  for (JoiningWorker::Buffer& buffer : worker.buffers) {
    buffer.memory = FdHandle(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0));
    buffer.attach.set_offset_bytes(buffer.attach.buffer() == "a" ? a_at : b_at);
  }
  return worker;
}

void SetJob(JoiningWorker& worker, const std::string& job) {
  worker.layout.set_job(job);
  worker.join.set_job(job);
  worker.join.set_layout_bytes(worker.layout.ByteSizeLong());
}

absl::Status Refusal(DoorFixture& fixture, const JoiningWorker& worker) {
  DoorClient client(fixture.path());
  worker.Send(client);
  return test::RefusalOf(client);
}

void Join(DoorClient& client, const JoiningWorker& worker) {
  const auto reply = worker.Join(client);
  REQUIRE(reply.has_value());
  CAPTURE(reply->ShortDebugString());
  REQUIRE(reply->status().code() == 0);
}

TEST_CASE("Two buffers of a rollout in the same bytes are refused by name", "[rpc][local]") {
  DoorFixture fixture;
  const FdHandle memory = test::MakeMemory(64);
  for (const std::uint64_t b_at : {0U, 8U, 15U}) {
    const absl::Status refusal = Refusal(fixture, WorkerIn(memory, v1::ROLLOUT, 0, b_at));
    CAPTURE(refusal.ToString());
    CHECK(refusal.code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(
        refusal.message(),
        absl::StrFormat(
            "buffer 'b' of engine0/0: bytes [%d, %d) of its memfd meet bytes [0, 16) of "
            "buffer 'a' of engine0/0, job job",
            b_at, b_at + 8)));
    REQUIRE(fixture.Empties());
  }
  DoorClient client(fixture.path());
  Join(client, WorkerIn(memory, v1::ROLLOUT, 8, 0));  // side by side
}

TEST_CASE("A destination shares no byte with another session's memory, whatever the job",
          "[rpc][local]") {
  DoorFixture fixture;
  const FdHandle memory = test::MakeMemory(64);
  const auto [held, asked] = GENERATE(table<v1::Role, v1::Role>(
      {{v1::ROLLOUT, v1::ROLLOUT}, {v1::TRAINER, v1::ROLLOUT}, {v1::ROLLOUT, v1::TRAINER}}));
  DoorClient holder(fixture.path());
  JoiningWorker first = WorkerIn(memory, held, 16, 32);
  SetJob(first, "other");
  Join(holder, first);
  const JoiningWorker second = WorkerIn(memory, asked, 0, 39);
  const absl::Status refusal = Refusal(fixture, second);
  CAPTURE(refusal.ToString());
  REQUIRE(refusal.code() == absl::StatusCode::kAlreadyExists);
  REQUIRE(absl::StrContains(refusal.message(),
                            "bytes [39, 47) of its memfd meet bytes [32, 40) of "
                            "buffer 'b' of "));
  REQUIRE(absl::StrContains(refusal.message(), first.join.group() + "/0, job other"));
  // It stays the holder's, until the holder goes; then it may be given again at once.
  DoorClient beside(fixture.path());
  Join(beside, WorkerIn(memory, asked, 0, 40));
  beside.HangUp();
  holder.HangUp();
  DoorClient again(fixture.path());
  Join(again, second);
}

TEST_CASE("Trainers may share memory, within a worker and between workers", "[rpc][local]") {
  DoorFixture fixture;
  const FdHandle memory = test::MakeMemory(64);
  JoiningWorker trainer = WorkerIn(memory, v1::TRAINER, 0, 8);
  DoorClient first(fixture.path());
  Join(first, trainer);
  SetJob(trainer, "other");
  DoorClient second(fixture.path());
  Join(second, trainer);
  first.HangUp();
  REQUIRE(fixture.thread().Becomes([&] { return fixture.calls().openings.size() == 1; }));
  REQUIRE(Refusal(fixture, WorkerIn(memory, v1::ROLLOUT, 0, 32)).code() ==
          absl::StatusCode::kAlreadyExists);
}

TEST_CASE("Sessions that read the same memory have it mapped once, until the last has ended",
          "[rpc][local][field][case-63]") {
  DoorFixture fixture;
  const FdHandle memory = test::MakeMemory(64);
  JoiningWorker target = WorkerIn(memory, v1::TRAINER, 0, 0);
  DoorClient first(fixture.path());
  Join(first, target);
  SetJob(target, "draft");
  for (int i = 0; i < 20; ++i) {
    DoorClient second(fixture.path());
    Join(second, target);
    REQUIRE(MappingsOf(memory.get()) == 1);
    second.HangUp();
    REQUIRE(fixture.thread().Becomes([&] { return fixture.calls().openings.size() == 1; }));
    REQUIRE(MappingsOf(memory.get()) == 1);
  }
  first.HangUp();
  REQUIRE(fixture.Empties());
  REQUIRE(MappingsOf(memory.get()) == 0);
}

TEST_CASE("A refused join holds no memory, even while its client stays", "[rpc][local]") {
  DoorFixture fixture;
  const FdHandle memory = test::MakeMemory(64);
  JoiningWorker worker = WorkerIn(memory, v1::ROLLOUT, 0, 16);
  DoorClient refused(fixture.path());
  worker.buffers[1].attach.set_bytes(1);
  REQUIRE_FALSE(worker.Join(refused)->status().code() == 0);
  worker.buffers[1].attach.set_bytes(8);
  DoorClient again(fixture.path());
  Join(again, worker);
}

TEST_CASE("A join over memory that an ended session still has mapped waits until it is unmapped",
          "[rpc][local]") {
  DoorFixture fixture;
  fixture.thread().Ask([&] { return fixture.calls().hold_memory = true; });
  const FdHandle memory = test::MakeMemory(64);
  const bool same_worker = GENERATE(true, false);
  CAPTURE(same_worker);
  DoorClient holder(fixture.path());
  Join(holder, WorkerIn(memory, v1::ROLLOUT, 0, 16));
  holder.HangUp();
  JoiningWorker next = WorkerIn(memory, v1::ROLLOUT, 16, 0);
  if (!same_worker) SetJob(next, "other");
  DoorClient client(fixture.path());
  next.Send(client);
  REQUIRE(fixture.thread().Becomes([&] { return fixture.door().connections() == 1; }));
  REQUIRE_FALSE(client.Next(std::chrono::milliseconds(50)).has_value());
  fixture.thread().Ask([&] {
    fixture.calls().Unmap(absl::StrFormat("%032x", 1));
    return true;
  });
  const auto reply = client.Next();
  REQUIRE(reply.has_value());
  CAPTURE(reply->ShortDebugString());
  REQUIRE(reply->has_join());
}

TEST_CASE("At its deadline a join says whose ended session still has its memory", "[rpc][local]") {
  DoorFixture fixture;
  fixture.thread().Ask([&] { return fixture.calls().hold_memory = true; });
  const FdHandle memory = test::MakeMemory(64);
  DoorClient holder(fixture.path());
  Join(holder, WorkerIn(memory, v1::ROLLOUT, 0, 16));
  holder.HangUp();
  JoiningWorker next = WorkerIn(memory, v1::ROLLOUT, 8, 40);
  next.timeout_ms = 200;
  const absl::Status late = Refusal(fixture, next);
  CAPTURE(late.ToString());
  REQUIRE(late.code() == absl::StatusCode::kDeadlineExceeded);
  REQUIRE(absl::StrContains(late.message(),
                            "the memory of engine0/0 is not free in time: buffer 'a' of "
                            "engine0/0: bytes [8, 24) of its memfd meet bytes [16, 24) of buffer "
                            "'b' of engine0/0, job job, whose session has ended"));
  fixture.thread().Ask([&] {
    fixture.calls().Unmap(absl::StrFormat("%032x", 1));
    return true;
  });
  DoorClient again(fixture.path());
  Join(again, next);
}

TEST_CASE("Claims are refused exactly where a byte is both written and another's",
          "[rpc][local][property]") {
  constexpr std::uint64_t kBytes = 40;
  const FdHandle file = test::MakeMemory(kBytes);
  const int round = GENERATE(range(0, 40));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  MemoryClaims claims;
  struct Owner {
    RegionAccess access;
    std::unique_ptr<SessionClaims> held;
    std::vector<MemoryClaim> granted;
  };
  std::vector<Owner> owners;
  for (int i = 0; i < 4; ++i) {
    owners.push_back({i < 2 ? RegionAccess::kReadOnly : RegionAccess::kReadWrite,
                      std::make_unique<SessionClaims>(claims),
                      {}});
  }
  for (int step = 0; step < 60; ++step) {
    Owner& owner = owners[rng() % owners.size()];
    if (rng() % 12 == 0) {
      owner.held->Release();
      owner.granted.clear();
    }
    const std::uint64_t offset = rng() % kBytes;
    const MemoryClaim claim{"w/0", "j", "b", owner.access, offset, rng() % 6};
    bool allowed = true;
    for (const Owner& other : owners) {
      for (const MemoryClaim& has : other.granted) {
        const bool meet = std::max(has.offset, offset) < std::min(has.end(), claim.end());
        const bool read =
            has.access == RegionAccess::kReadOnly && claim.access == RegionAccess::kReadOnly;
        if (meet && !read) allowed = false;
      }
    }
    REQUIRE(owner.held->Claim(file.get(), claim).ok() == allowed);
    if (allowed) owner.granted.push_back(claim);
  }
}

}  // namespace
}  // namespace wb
