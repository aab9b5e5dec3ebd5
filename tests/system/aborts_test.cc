// Deliveries that are given up amid their bytes, again and again.

#include <chrono>
#include <future>
#include <random>
#include <string>

#include "client/wbctl/process/child.h"
#include "tests/support/catch.h"
#include "tests/support/seed.h"
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
using namespace std::chrono_literals;

TEST_CASE("Daemons live through a hundred deliveries that are given up amid their bytes",
          "[system]") {
  const TempFolder folder;
  DaemonProcess n0({folder.path(), "n0", kListen, ""});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  DaemonProcess n1({folder.path(), "n1", AddressOf(n0), ""});
  REQUIRE(n1.Start());
  REQUIRE(n1.Ready());
  TensorWorker source(n0.worker_socket(), "policy", 16 * 1024, 1024);  // 64 MiB
  TensorWorker target(n1.worker_socket(), "engine0", 16 * 1024, 1024);
  auto trainer = weightbridge::Trainer::Join(source.options, source.layout);
  auto rollout = weightbridge::Rollout::Join(target.options, target.layout);
  REQUIRE(TextOf(trainer) == "OK");
  REQUIRE(TextOf(rollout) == "OK");
  INFO("seed " << test::RunSeed());
  std::mt19937_64 rng = test::TestRng(0);
  std::uint64_t version = 1;
  for (; version <= 120; ++version) {
    CAPTURE(version);
    auto published = std::async(std::launch::async, [&] {
      return trainer->Publish(version, {"", Slack(20s)}).ok();
    });
    const std::string offered = TextOf(rollout->WaitForVersion(version, Slack(20s)));
    const std::chrono::milliseconds patience(2 + rng() % 60);
    const bool received = rollout->Receive(version, {patience}).ok();
    const bool reached = published.get();
    INFO(Tail(n0.log(), 40, "") << Tail(n1.log(), 40, ""));
    REQUIRE(n0.Ends(0ms) == "runs");
    REQUIRE(n1.Ends(0ms) == "runs");
    REQUIRE(offered == "OK");
    REQUIRE(reached == received);
  }
  Update(*trainer, source, *rollout, target, version);
}

}  // namespace
}  // namespace wb
