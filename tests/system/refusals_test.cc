// Layouts that do not fit each other in more tensors than a status can name.

#include <chrono>
#include <future>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "planner/model/refusal.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/system/daemon_process.h"
#include "tests/system/daemon_talk.h"
#include "tests/system/tensor_worker.h"

namespace wb {
namespace {

using test::AskDaemon;
using test::BinaryOf;
using test::DaemonProcess;
using test::kListen;
using test::Slack;
using test::TempFolder;
using test::TextOf;
using namespace std::chrono_literals;

constexpr int kTensors = 2'000;

/// The first `held` of eight elements of kTensors tensors each, in one buffer.
struct ManyTensors {
  weightbridge::SharedBuffer memory{*weightbridge::SharedBuffer::Create(kTensors * 32)};
  weightbridge::Layout layout;
  weightbridge::JoinOptions options;

  ManyTensors(const DaemonProcess& daemon, const std::string& group, std::int64_t held) {
    for (int i = 0; i < kTensors; ++i) {
      const std::string name = absl::StrCat("model.layers.", i, ".weight");
      weightbridge::Param param(name, {held});
      param.AddPiece({name, {0}, {held}, {0}, {}});
      param.buffer = "all";
      param.offset_bytes = static_cast<std::uint64_t>(i) * 32;
      REQUIRE(layout.AddTensor(name, weightbridge::Dtype::kFp32, {8}).ok());
      REQUIRE(layout.AddParam(param).ok());
    }
    REQUIRE(layout.SetBuffer("all", memory).ok());
    options.socket = daemon.worker_socket();
    options.job = "job";
    options.group = group;
    options.rank = 0;
    options.world_size = 1;
    options.timeout = Slack(10s);
  }
};

/// The code is the first one's, and the text tells as much as a status may.
void CheckRefusal(const weightbridge::Error& error) {
  CAPTURE(error.message);
  CHECK(error.code == WB_INVALID_ARGUMENT);
  CHECK(error.message.size() <= kMaxStatusBytes);
  CHECK(absl::StrContains(error.message, "model.layers.0.weight"));
  CHECK(absl::StrContains(error.message, "and 1980 more"));
}

TEST_CASE("Of 2,000 tensors that do not fit a call names the first, and the leader lists all",
          "[system][field][case-106]") {
  const TempFolder folder;
  DaemonProcess n0({folder.path(), "n0", kListen, ""});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  const ManyTensors source(n0, "policy", 4);
  const ManyTensors target(n0, "engine0", 8);
  auto trainer = weightbridge::Trainer::Join(source.options, source.layout);
  auto rollout = weightbridge::Rollout::Join(target.options, target.layout);
  REQUIRE(TextOf(trainer) == "OK");
  REQUIRE(TextOf(rollout) == "OK");
  auto received = std::async(std::launch::async, [&] { return rollout->Receive(1, {Slack(10s)}); });
  const auto published = trainer->Publish(1, {"", Slack(10s)});
  REQUIRE_FALSE(published.ok());
  CheckRefusal(published.error());
  const auto refused = received.get();
  REQUIRE_FALSE(refused.ok());
  CheckRefusal(refused.error());

  // Who ends by it does not take the reasons along.
  REQUIRE(TextOf(trainer->Leave("refused")) == "OK");
  REQUIRE(TextOf(rollout->Leave("refused")) == "OK");
  REQUIRE(StatusBecomes(folder, n0, "sessions", 0, 5s));
  const nlohmann::json all = AskDaemon(folder, "refusals", n0);
  REQUIRE(all.at("total") == kTensors);
  REQUIRE(all.at("refusals").size() == kTensors);
  REQUIRE(all.at("refusals").at(0).at("kind") == "uncovered");
  REQUIRE(all.at("refusals").at(kTensors - 1).at("group") == "");
  const test::Finished table = test::RunProgram(
      folder.path(), {BinaryOf("wbctl"), "refusals", "--limit", "5", "--daemon", n0.control()});
  REQUIRE(table.code == 0);
  REQUIRE(absl::EndsWith(table.output, "and 1995 more\n"));
}

}  // namespace
}  // namespace wb
