// Versions that are published from a snapshot, by real daemons: the trainer writes its memory as
// soon as Publish has returned.

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <future>
#include <string>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "tests/support/catch.h"
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
using test::Slack;
using test::TempFolder;
using test::TensorWorker;
using test::TextOf;
using weightbridge::PublishOptions;
using weightbridge::PublishReport;
using weightbridge::Result;
using weightbridge::Rollout;
using weightbridge::Source;
using weightbridge::Trainer;
using namespace std::chrono_literals;

constexpr std::int64_t kRows = 512;
constexpr std::int64_t kColumns = 1024;

/// A daemon of its own for the trainer, which leads, and one for the rollout where it is asked for.
struct Nodes {
  TempFolder folder;
  DaemonProcess n0{{folder.path(), "n0", kListen, ""}};
  std::optional<DaemonProcess> n1;

  explicit Nodes(bool one_node) {
    REQUIRE(n0.Start());
    REQUIRE(n0.Ready());
    if (one_node) return;
    n1.emplace(DaemonProcess::Options{folder.path(), "n1", AddressOf(n0), ""});
    REQUIRE(n1->Start());
    REQUIRE(n1->Ready());
  }
  std::string engine_socket() const {
    return n1.has_value() ? n1->worker_socket() : n0.worker_socket();
  }
};

TensorWorker SnapshotTrainer(const std::string& socket) {
  TensorWorker worker(socket, "policy", kRows, kColumns);
  worker.options.source = Source::kSnapshot;
  return worker;
}

PublishOptions FromSnapshot() {
  PublishOptions options;
  options.timeout = Slack(10s);
  options.source = Source::kSnapshot;
  return options;
}

/// Receives versions 1 to `last`, each whole: "OK", or what went wrong.
std::string ReceiveAll(const std::string& socket, std::uint64_t last) {
  const TensorWorker worker(socket, "engine0", kRows, kColumns);
  auto rollout = Rollout::Join(worker.options, worker.layout);
  if (!rollout.ok()) return TextOf(rollout);
  for (std::uint64_t version = 1; version <= last; ++version) {
    const auto offered = rollout->WaitForVersion(version, Slack(10s));
    if (!offered.ok()) return TextOf(offered);
    const auto received = rollout->Receive(version, {Slack(10s)});
    if (!received.ok()) return TextOf(received);
    if (!worker.Holds(static_cast<float>(version))) return absl::StrCat("torn: ", version);
  }
  return "OK";
}

TEST_CASE("Fifty versions arrive whole from a trainer that overwrites each as Publish returns",
          "[system][snapshot]") {
  const Nodes nodes(GENERATE(true, false));
  constexpr std::uint64_t kLast = 50;
  const TensorWorker source = SnapshotTrainer(nodes.n0.worker_socket());
  auto trainer = Trainer::Join(source.options, source.layout);
  REQUIRE(TextOf(trainer) == "OK");
  auto received =
      std::async(std::launch::async, [&nodes] { return ReceiveAll(nodes.engine_socket(), kLast); });
  for (std::uint64_t version = 1; version <= kLast; ++version) {
    CAPTURE(version);
    source.Fill(static_cast<float>(version));
    const Result<PublishReport> published = trainer->Publish(version, FromSnapshot());
    source.Fill(-1);
    REQUIRE(TextOf(published) == "OK");
    CHECK(published->snapshot_seconds > 0);
    CHECK(published->snapshot_seconds <= published->total_seconds);
    CHECK(published->previous.version == version - 1);
    CHECK(published->previous.code == WB_OK);
  }
  const Result<PublishReport> end = trainer->WaitPublished(kLast, Slack(10s));
  REQUIRE(TextOf(end) == "OK");
  CHECK(end->bytes_sent == kRows * kColumns * 4);
  REQUIRE(end->outcomes.size() == 1);
  CHECK(end->outcomes[0].group == "engine0");
  CHECK(received.get() == "OK");
}

/// The end of a trainer that says when its snapshot is taken, and then does nothing.
[[noreturn]] void PublishAndWait(const std::string& socket, int said) {
  const TensorWorker source = SnapshotTrainer(socket);
  auto trainer = Trainer::Join(source.options, source.layout);
  const bool published = trainer.ok() && trainer->Publish(1, FromSnapshot()).ok();
  if (published && ::write(said, "p", 1) == 1) ::pause();
  ::_exit(1);
}

TEST_CASE("A trainer that is killed after its snapshot fails the version; its successor goes on",
          "[system][snapshot]") {
  const Nodes nodes(false);
  const TensorWorker target(nodes.engine_socket(), "engine0", kRows, kColumns);
  auto rollout = Rollout::Join(target.options, target.layout);
  REQUIRE(TextOf(rollout) == "OK");
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const pid_t killed = ::fork();
  if (killed == 0) PublishAndWait(nodes.n0.worker_socket(), ends[1]);
  ::close(ends[1]);
  char said = 0;
  const bool published = ::read(ends[0], &said, 1) == 1;
  ::close(ends[0]);
  const auto offered = rollout->WaitForVersion(1, Slack(5s));
  ::kill(killed, SIGKILL);
  REQUIRE(::waitpid(killed, nullptr, 0) == killed);
  REQUIRE(published);
  REQUIRE(TextOf(offered) == "OK");
  REQUIRE(StatusBecomes(nodes.folder, nodes.n0, "sessions", 0, 5s));
  const auto received = rollout->Receive(1, {Slack(5s)});
  REQUIRE_FALSE(received.ok());
  CHECK(received.error().code == WB_UNAVAILABLE);
  CHECK_THAT(received.error().message, Catch::Contains("policy/0"));
  // The memory for the snapshot has gone with it.
  REQUIRE(StatusBecomes(nodes.folder, nodes.n0, "region_bytes", 0, 5s));

  const TensorWorker source = SnapshotTrainer(nodes.n0.worker_socket());
  auto trainer = Trainer::Join(source.options, source.layout);
  REQUIRE(TextOf(trainer) == "OK");
  source.Fill(2);
  REQUIRE(TextOf(trainer->Publish(2, FromSnapshot())) == "OK");
  source.Fill(-1);
  REQUIRE(TextOf(rollout->WaitForVersion(2, Slack(5s))) == "OK");
  REQUIRE(TextOf(rollout->Receive(2, {Slack(5s)})) == "OK");
  CHECK(target.Holds(2));
  CHECK(TextOf(trainer->WaitPublished(2, Slack(5s))) == "OK");
}

TEST_CASE("Snapshots beyond a daemon's limit are refused at Join, by the limit's name",
          "[system][snapshot]") {
  const TempFolder folder;
  const std::uint64_t bytes = kRows * kColumns * 4;
  DaemonProcess n0(
      {folder.path(), "n0", kListen, absl::StrCat("limits: {memory_bytes: ", bytes, "}\n")});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  TensorWorker source = SnapshotTrainer(n0.worker_socket());
  const auto refused = Trainer::Join(source.options, source.layout);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == WB_RESOURCE_EXHAUSTED);
  CHECK_THAT(refused.error().message, Catch::Contains("limits.memory_bytes"));
  source.options.source = Source::kInPlace;
  auto trainer = Trainer::Join(source.options, source.layout);
  REQUIRE(TextOf(trainer) == "OK");
  CHECK(trainer->Publish(1, FromSnapshot()).error().code == WB_FAILED_PRECONDITION);
}

}  // namespace
}  // namespace wb
