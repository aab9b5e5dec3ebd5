// Cases from the field about workers: those that fail, say why, or are killed, and those that read
// their memory while versions come.

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <future>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/support/catch.h"
#include "tests/support/file_mappings.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/system/daemon_process.h"
#include "tests/system/daemon_talk.h"
#include "tests/system/tensor_worker.h"

namespace wb {
namespace {

using test::AddressOf;
using test::DaemonProcess;
using test::kListen;
using test::LogShows;
using test::MappingsOf;
using test::Slack;
using test::TempFolder;
using test::TensorWorker;
using test::TextOf;
using test::Update;
using test::WaitsShow;
using weightbridge::Error;
using weightbridge::Result;
using weightbridge::Rollout;
using weightbridge::Trainer;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// n0, which leads, with one trainer, and n1 for rollouts.
struct Field {
  TempFolder folder;
  // No engine that is killed again and again is retired here.
  DaemonProcess n0{{folder.path(), "n0", absl::StrCat(kListen, ", retire_after: 0"), ""}};
  std::optional<DaemonProcess> n1;
  std::optional<TensorWorker> source;
  std::optional<Result<Trainer>> joined;

  Field() {
    REQUIRE(n0.Start());
    REQUIRE(n0.Ready());
    n1.emplace(DaemonProcess::Options{folder.path(), "n1", AddressOf(n0), ""});
    REQUIRE(n1->Start());
    REQUIRE(n1->Ready());
    source.emplace(n0.worker_socket(), "policy");
    joined.emplace(Trainer::Join(source->options, source->layout));
    REQUIRE(TextOf(*joined) == "OK");
  }
  Trainer& trainer() { return **joined; }
  std::future<Result<weightbridge::PublishReport>> Publish(std::uint64_t version) {
    source->Fill(static_cast<float>(version));
    return std::async(std::launch::async, [this, version] {
      return trainer().Publish(version, {"", Slack(20s)});
    });
  }
};

/// A rank of engine0 on n1.
struct Rank {
  TensorWorker target;
  Result<Rollout> joined;

  Rank(Field& field, int rank, int ranks)
      : target(field.n1->worker_socket(), "engine0"), joined(Join(rank, ranks)) {
    REQUIRE(TextOf(joined) == "OK");
  }
  Rollout& rollout() { return *joined; }

 private:
  Result<Rollout> Join(int rank, int ranks) {
    target.options.rank = rank;
    target.options.world_size = ranks;
    return Rollout::Join(target.options, target.layout);
  }
};

TEST_CASE("What a worker says when it leaves reaches the trainer and both logs, once each",
          "[system][field][case-119]") {
  Field field;
  Rank rank(field, 0, 1);
  auto published = field.Publish(1);
  REQUIRE(TextOf(rank.rollout().WaitForVersion(1, Slack(10s))) == "OK");
  REQUIRE(TextOf(rank.rollout().Leave("cannot apply: E-7f3a")) == "OK");
  const auto report = published.get();
  REQUIRE_FALSE(report.ok());
  CAPTURE(report.error().ToString());
  REQUIRE(CountOf(report.error().ToString(), "E-7f3a") == 1);
  REQUIRE(absl::StrContains(report.error().message, "engine0/0 (node n1) left"));
  REQUIRE(LogShows(field.n0, "left"));
  REQUIRE(LogShows(*field.n1, "E-7f3a"));
  CAPTURE(field.n0.Log(), field.n1->Log());
  REQUIRE(CountOf(field.n0.Log(), "E-7f3a") == 1);
  REQUIRE(CountOf(field.n1->Log(), "E-7f3a") == 1);
}

TEST_CASE("One of four ranks that fails ends the trainer's call within a second, named with host",
          "[system][field][case-90]") {
  Field field;
  std::list<Rank> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.emplace_back(field, rank, 4);
  auto published = field.Publish(1);
  std::vector<std::future<bool>> received;
  for (auto rank = ranks.begin(); rank != std::prev(ranks.end()); ++rank) {
    REQUIRE(TextOf(rank->rollout().WaitForVersion(1, Slack(10s))) == "OK");
    received.push_back(std::async(
        std::launch::async, [rank] { return rank->rollout().Receive(1, {Slack(20s)}).ok(); }));
  }
  REQUIRE(WaitsShow(field.folder, field.n0, "for engine0/3 (node n1) to accept"));
  const auto failed = Clock::now();
  REQUIRE(TextOf(ranks.back().rollout().Leave("cannot apply")) == "OK");
  const auto report = published.get();
  CHECK(Clock::now() - failed < Slack(1s));
  for (std::future<bool>& each : received) CHECK_FALSE(each.get());
  REQUIRE_FALSE(report.ok());
  std::array<char, 256> host{};
  REQUIRE(::gethostname(host.data(), host.size() - 1) == 0);
  CAPTURE(report.error().ToString());
  CHECK(absl::StrContains(report.error().message, "engine0/3 (node n1) left"));
  REQUIRE_FALSE(report.error().details.empty());
  CHECK(report.error().details[0] ==
        absl::StrCat("reason=GONE domain=weightbridge group=engine0 host=", host.data(),
                     " node=n1 since_seconds=0.0 worker=engine0/3"));
}

/// In a child: joins and makes one good transfer, and says each through `pipe`; then nothing more.
[[noreturn]] void ReadOnce(const std::string& socket, std::uint64_t version, int pipe) {
  TensorWorker target(socket, "engine0");
  Result<Rollout> rollout = Rollout::Join(target.options, target.layout);
  if (rollout.ok() && ::write(pipe, "j", 1) == 1) {
    const bool good =
        rollout->Receive(version, {Slack(10s)}).ok() && target.Holds(static_cast<float>(version));
    if (good && ::write(pipe, "g", 1) == 1) ::pause();
  }
  ::_exit(1);
}

TEST_CASE("Readers that are killed right after a good transfer hold up none of those that follow",
          "[system][field][case-112]") {
  Field field;
  for (std::uint64_t version = 1; version <= 20; ++version) {
    CAPTURE(version);
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    const auto start = Clock::now();
    const pid_t reader = ::fork();
    if (reader == 0) ReadOnce(field.n1->worker_socket(), version, ends[1]);
    ::close(ends[1]);
    field.source->Fill(static_cast<float>(version));
    char said = 0;
    const bool joined = ::read(ends[0], &said, 1) == 1;
    const std::string published = TextOf(field.trainer().Publish(version, {"", Slack(10s)}));
    const bool received = ::read(ends[0], &said, 1) == 1;
    const auto took = Clock::now() - start;
    ::close(ends[0]);
    ::kill(reader, SIGKILL);
    REQUIRE(::waitpid(reader, nullptr, 0) == reader);
    REQUIRE(joined);
    REQUIRE(published == "OK");
    REQUIRE(received);
    REQUIRE(took < Slack(2s));
  }
  REQUIRE(StatusBecomes(field.folder, *field.n1, "sessions", 0, 5s));
}

TEST_CASE("Two trainers of one memory are one mapping of the daemon, gone with the last of them",
          "[system][field][case-63]") {
  Field field;
  const auto mappings = [&] {
    return MappingsOf(field.source->memory.fd(), absl::StrCat(field.n0.pid()));
  };
  REQUIRE(mappings() == 1);
  weightbridge::JoinOptions draft = field.source->options;
  draft.job = "draft";
  for (int i = 0; i < 20; ++i) {
    auto second = Trainer::Join(draft, field.source->layout);
    REQUIRE(TextOf(second) == "OK");
    REQUIRE(mappings() == 1);
    REQUIRE(TextOf(second->Leave("done")) == "OK");
    REQUIRE(mappings() == 1);
  }
  Rank rank(field, 0, 1);
  Update(field.trainer(), *field.source, rank.rollout(), rank.target, 1);
  REQUIRE(TextOf(field.trainer().Leave("done")) == "OK");
  const auto bound = Clock::now() + Slack(5s);
  while (mappings() != 0) REQUIRE(Clock::now() < bound);
}

TEST_CASE("Ranks may call Receive before and after the trainer publishes, in any order",
          "[system][field][case-84]") {
  Field field;
  Rank early(field, 0, 2);
  Rank late(field, 1, 2);
  for (std::uint64_t version = 1; version <= 3; ++version) {
    CAPTURE(version);
    auto first = std::async(std::launch::async,
                            [&] { return TextOf(early.rollout().Receive(version, {Slack(10s)})); });
    REQUIRE(
        WaitsShow(field.folder, field.n0, "engine0/0 (node n1) is waiting for it to be published"));
    auto published = field.Publish(version);
    REQUIRE(WaitsShow(field.folder, field.n0, "for engine0/1 (node n1) to accept"));
    REQUIRE(TextOf(late.rollout().Receive(version, {Slack(10s)})) == "OK");
    REQUIRE(first.get() == "OK");
    REQUIRE(TextOf(published.get()) == "OK");
    REQUIRE(early.target.Holds(static_cast<float>(version)));
  }
}

TEST_CASE("A reader that asks for the version before and after never sees two of them mixed",
          "[system][field][case-82][case-83][case-85]") {
  Field field;
  Rank rank(field, 0, 1);
  std::atomic<bool> stop{false};
  std::uint64_t requests = 0;
  std::uint64_t mixed = 0;
  std::uint64_t backwards = 0;
  std::thread reader([&] {
    std::uint64_t newest = 0;
    while (!stop.load()) {
      const std::uint64_t before = rank.rollout().held_version();
      const bool whole = rank.target.Holds(static_cast<float>(before));
      const std::uint64_t after = rank.rollout().held_version();
      if (before == 0 || before != after) continue;
      ++requests;
      if (!whole) ++mixed;
      if (before < newest) ++backwards;
      newest = before;
    }
  });
  const auto until = Clock::now() + 2s;
  std::uint64_t version = 0;
  while (Clock::now() < until) {
    Update(field.trainer(), *field.source, rank.rollout(), rank.target, ++version);
  }
  stop.store(true);
  reader.join();
  INFO(version << " versions, " << requests << " requests");
  REQUIRE(version > 1);
  REQUIRE(requests > 0);
  REQUIRE(mixed == 0);
  REQUIRE(backwards == 0);
}

}  // namespace
}  // namespace wb
