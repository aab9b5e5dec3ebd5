// Cases 88 and 91: versions and markers, through two daemons and the client library.
#include <algorithm>
#include <cstring>
#include <functional>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "client/include/weightbridge/client.h"
#include "tests/support/catch.h"
#include "tests/support/seed.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/system/daemon_process.h"

namespace wb::test {
namespace {

using namespace std::chrono_literals;
using weightbridge::Error;
using weightbridge::Result;

// More than the least that goes by rendezvous.
constexpr std::int64_t kBytes = 300'001;

/// A worker that holds all of one UINT8 tensor.
struct ByteWorker {
  ByteWorker(const std::string& socket, const std::string& group) {
    weightbridge::Param param("w", {kBytes});
    param.AddPiece({"w", {0}, {kBytes}, {0}, {}});
    REQUIRE(layout.AddTensor("w", weightbridge::Dtype::kUint8, {kBytes}).ok());
    REQUIRE(layout.AddParam(param).ok());
    REQUIRE(layout.SetBuffer("w", memory).ok());
    options.socket = socket;
    options.job = "job";
    options.group = group;
    options.rank = 0;
    options.world_size = 1;
    options.timeout = Slack(10s);
  }
  std::string contents() const {
    return {static_cast<const char*>(memory.data()), static_cast<std::size_t>(kBytes)};
  }
  void Fill(const std::string& bytes) const {
    std::memcpy(memory.data(), bytes.data(), bytes.size());
  }

  weightbridge::SharedBuffer memory = *weightbridge::SharedBuffer::Create(kBytes);
  weightbridge::Layout layout;
  weightbridge::JoinOptions options;
};

/// A trainer and a rollout, each at a daemon of its own.
class Pair {
 public:
  Pair()
      : n0_({folder_.path(), "n0", "listen: '127.0.0.1:0'", ""}),
        n1_({folder_.path(), "n1", "address: '" + Started(n0_).Said("X_WB_LEADER") + "'", ""}),
        source_(n0_.worker_socket(), "policy"),
        target_(Started(n1_).worker_socket(), "engine0"),
        trainer_(weightbridge::Trainer::Join(source_.options, source_.layout)),
        rollout_(weightbridge::Rollout::Join(target_.options, target_.layout)) {
    REQUIRE(trainer_.ok());
    REQUIRE(rollout_.ok());
  }

  const ByteWorker& source() const { return source_; }
  const ByteWorker& target() const { return target_; }
  weightbridge::Trainer& trainer() { return *trainer_; }
  weightbridge::Rollout& rollout() { return *rollout_; }

  /// Publishes `version`, while the rollout takes the first version from `at_least` on: what it
  /// has received, or nothing.
  Result<weightbridge::ReceiveReport> Move(std::uint64_t version, std::uint64_t at_least) {
    auto received = std::async(std::launch::async, [&]() -> Result<weightbridge::ReceiveReport> {
      const Result<std::uint64_t> offered = rollout_->WaitForVersion(at_least, Slack(10s));
      if (!offered.ok()) return offered.error();
      return rollout_->Receive(*offered, {Slack(10s)});
    });
    const auto published = trainer_->Publish(version, {"", Slack(10s)});
    Result<weightbridge::ReceiveReport> report = received.get();
    if (!published.ok()) return published.error();
    return report;
  }

 private:
  static DaemonProcess& Started(DaemonProcess& daemon) {
    REQUIRE(daemon.Start());
    REQUIRE(daemon.Ready());
    return daemon;
  }

  // Sessions end before their daemons, daemons before their folder.
  TempFolder folder_;
  DaemonProcess n0_;
  DaemonProcess n1_;
  ByteWorker source_;
  ByteWorker target_;
  Result<weightbridge::Trainer> trainer_;
  Result<weightbridge::Rollout> rollout_;
};

TEST_CASE("weights that begin like a marker, or with zeros, arrive whole 100 times",
          "[field][case-88]") {
  Pair pair;
  const std::string marker("\xAB\xDC\xEF\x88", 4);
  const std::string zeros(4, '\0');
  INFO("WB_TEST_SEED=" << RunSeed());
  std::mt19937_64 rng = TestRng(0);
  for (std::uint64_t version = 1; version <= 100; ++version) {
    std::vector<std::uint64_t> words(static_cast<std::size_t>(kBytes) / sizeof(std::uint64_t) + 1);
    std::generate(words.begin(), words.end(), std::ref(rng));
    std::string bytes(static_cast<std::size_t>(kBytes), '\0');
    std::memcpy(bytes.data(), words.data(), bytes.size());
    bytes.replace(0, 4, version % 2 == 1 ? marker : zeros);
    pair.source().Fill(bytes);
    pair.target().Fill(std::string(static_cast<std::size_t>(kBytes), '\xA5'));
    const Result<weightbridge::ReceiveReport> report = pair.Move(version, version);
    INFO("version " << version << ": " << (report.ok() ? "OK" : report.error().ToString()));
    REQUIRE(report.ok());
    REQUIRE(pair.target().contents() == bytes);
  }
}

TEST_CASE("a job may begin at version 501, go on, and never go back", "[field][case-91]") {
  Pair pair;
  for (const std::uint64_t version : {501U, 502U}) {
    const std::string bytes(static_cast<std::size_t>(kBytes), static_cast<char>(version));
    pair.source().Fill(bytes);
    // At first the rollout, which holds nothing, asks for any version.
    const Result<weightbridge::ReceiveReport> report =
        pair.Move(version, pair.rollout().held_version() + 1);
    INFO("version " << version << ": " << (report.ok() ? "OK" : report.error().ToString()));
    REQUIRE(report.ok());
    CHECK(report->version == version);
    CHECK(report->bytes_received == static_cast<std::uint64_t>(kBytes));
    CHECK(report->wire_seconds > 0);
    CHECK(report->scatter_seconds > 0);  // it is contiguous: summed for its checksum
    CHECK(report->wire_seconds < report->move_seconds + 1);
    CHECK(report->copy_seconds == 0);  // two daemons
    CHECK(pair.rollout().held_version() == version);
    CHECK(pair.target().contents() == bytes);
  }
  const std::string before = pair.target().contents();
  pair.source().Fill(std::string(static_cast<std::size_t>(kBytes), 'x'));
  for (const std::uint64_t version : {502U, 501U, 400U}) {
    const auto published = pair.trainer().Publish(version, {"", Slack(10s)});
    REQUIRE_FALSE(published.ok());
    INFO(published.error().ToString());
    CHECK(published.error().code != WB_DEADLINE_EXCEEDED);
    CHECK(published.error().message.find(std::to_string(version)) != std::string::npos);
    CHECK(published.error().message.find("502") != std::string::npos);
  }
  CHECK(pair.rollout().held_version() == 502);
  CHECK(pair.target().contents() == before);
}

}  // namespace
}  // namespace wb::test
