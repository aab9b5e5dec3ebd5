// Sizes: layouts of 20,000 tensors and more than 20 MB, gigabytes of regions, hundreds of versions,
// through real programs.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "client/include/weightbridge/client.h"
#include "client/wbctl/process/footprint.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/system/daemon_process.h"

namespace wb {
namespace {

using nlohmann::json;
using test::AddressOf;
using test::BinaryOf;
using test::DaemonProcess;
using test::kListen;
using test::Slack;
using test::TempFolder;
using namespace std::chrono_literals;

constexpr int kTensors = 20'000;
constexpr std::uint64_t kMegabyte = 1'000'000;
/// Unoptimised daemons on a busy machine take their time to lower a large plan.
constexpr const char* kPatient = "timeouts: {start: 60s}";

/// Unoptimised code takes some times as long.
#ifdef __OPTIMIZE__
constexpr int kBuildSlack = 1;
#else
constexpr int kBuildSlack = 5;
#endif

/// The programs of the build and this one are built alike; sanitizers keep memory of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnMemory = false;
#elif defined(__has_feature)
constexpr bool kOwnMemory = !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer));
#else
constexpr bool kOwnMemory = true;
#endif

/// As long as `wanted` bytes: names of a deep model, and then some.
std::string NameOf(int tensor, std::size_t wanted) {
  std::string name = absl::StrCat("model.layers.", tensor / 256, ".mlp.experts.", tensor % 256,
                                  ".gate_proj.weight.");
  name.resize(std::max(wanted, name.size()), 'x');
  return name;
}

json AskDaemon(const TempFolder& folder, const std::string& command, const DaemonProcess& daemon) {
  const test::Finished answer = test::RunProgram(
      folder.path(), {BinaryOf("wbctl"), command, "-o", "json", "--daemon", daemon.control()});
  CAPTURE(answer.output);
  REQUIRE(answer.code == 0);
  return json::parse(answer.output);
}

// ---- planning ----

struct Measured {
  int status = -1;
  double cpu_seconds = 0;
  std::uint64_t peak_bytes = 0;
};

/// A program run to its end, with what it took. It has a processor of its own time, so that others
/// on the machine do not show.
Measured Measure(const std::vector<std::string>& argv, const std::string& out) {
  std::vector<char*> raw;
  for (const std::string& argument : argv) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen(out.c_str(), "w", stdout) == nullptr) ::_exit(126);
    ::execv(raw[0], raw.data());
    ::_exit(127);
  }
  Measured measured;
  rusage used{};
  REQUIRE(::wait4(child, &measured.status, 0, &used) == child);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  measured.cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  measured.peak_bytes = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
  return measured;
}

/// Two trainers by rows and two engines of one, each tensor 4 x 64 BF16.
void WriteLayoutFile(const std::string& path) {
  std::ofstream file(path);
  file << R"({"job":"big","tensors":{)";
  for (int i = 0; i < kTensors; ++i) {
    file << (i == 0 ? "" : ",") << '"' << NameOf(i, 90) << R"(":{"dtype":"BF16","shape":[4,64]})";
  }
  file << R"(},"workers":[)";
  struct Rank {
    const char* head;
    int lo;
    int hi;
  };
  const std::vector<Rank> ranks{
      {R"({"role":"TRAINER","group":"policy","rank":0,"node":"n0")", 0, 2},
      {R"({"role":"TRAINER","group":"policy","rank":1,"node":"n1")", 2, 4},
      {R"({"role":"ROLLOUT","group":"engine0","rank":0,"node":"n2")", 0, 4},
      {R"({"role":"ROLLOUT","group":"engine1","rank":0,"node":"n3")", 0, 4}};
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    file << (r == 0 ? "" : ",") << ranks[r].head << R"(,"params":[)";
    for (int i = 0; i < kTensors; ++i) {
      const std::string name = NameOf(i, 90);
      file << (i == 0 ? "" : ",") << R"({"name":")" << name << R"(","shape":[)"
           << ranks[r].hi - ranks[r].lo << R"(,64],"pieces":[{"tensor":")" << name
           << R"(","box":{"lo":[)" << ranks[r].lo << R"(,0],"hi":[)" << ranks[r].hi
           << R"(,64]},"at":[0,0]}]})";
    }
    file << "]}";
  }
  file << "]}";
}

TEST_CASE("A file of 20,000 tensors and 20 MB is planned within 3 s and 600 MB",
          "[system][scale]") {
  const TempFolder folder;
  const std::string file = folder.path() + "/big.json";
  WriteLayoutFile(file);
  const Measured measured =
      Measure({BinaryOf("wbctl"), "plan", file, "--summary"}, folder.path() + "/plan.json");
  REQUIRE(measured.status == 0);
  std::ifstream out(folder.path() + "/plan.json");
  const json summary = json::parse(out).at("summary");
  REQUIRE(summary.at("moves") == 4 * kTensors);
  std::ifstream size(file, std::ios::ate);
  const auto file_bytes = static_cast<std::uint64_t>(size.tellg());
  CAPTURE(file_bytes, measured.cpu_seconds, measured.peak_bytes);
  CHECK(file_bytes >= 20 * kMegabyte);
  const std::chrono::duration<double> bound = kBuildSlack * Slack(3s);
  CHECK(measured.cpu_seconds < bound.count());
  if (kOwnMemory) CHECK(measured.peak_bytes < 600 * kMegabyte);
}

// ---- registration ----

/// A worker that holds every one of the tensors whole, in a buffer of its own.
struct BigWorker {
  /// Tensors of `floats` elements, with names of `name_bytes`.
  BigWorker(const DaemonProcess& daemon, const std::string& job, const std::string& group)
      : job_(job) {
    options.socket = daemon.worker_socket();
    options.job = job;
    options.group = group;
    options.rank = 0;
    options.world_size = 1;
    options.timeout = Slack(30s);
  }
  void Holds(int tensors, std::int64_t floats, std::size_t name_bytes) {
    memory = std::make_unique<weightbridge::SharedBuffer>(*weightbridge::SharedBuffer::Create(
        static_cast<std::uint64_t>(tensors * floats) * sizeof(float)));
    bool added = true;
    for (int i = 0; i < tensors; ++i) {
      const std::string name = NameOf(i, name_bytes);
      weightbridge::Param param(name, {floats});
      param.buffer = "weights";
      param.offset_bytes = static_cast<std::uint64_t>(i * floats) * sizeof(float);
      param.AddPiece({name, {0}, {floats}, {}, {}});
      added = added && layout.AddTensor(name, weightbridge::Dtype::kFp32, {floats}).ok() &&
              layout.AddParam(param).ok();
    }
    REQUIRE(added);
    REQUIRE(layout.SetBuffer("weights", *memory).ok());
  }
  std::span<float> values() const {
    return {static_cast<float*>(memory->data()), memory->size() / sizeof(float)};
  }
  void Fill(std::uint64_t version) const {
    // Every page, and every tensor.
    for (std::size_t i = 0; i<values().size(); i += values().size()> 100'000 ? 509 : 1) {
      values()[i] = static_cast<float>(i % 100'003 + version);
    }
  }
  bool Same(const BigWorker& other) const {
    return std::memcmp(memory->data(), other.memory->data(), memory->size()) == 0;
  }

  std::string job_;
  std::unique_ptr<weightbridge::SharedBuffer> memory;
  weightbridge::Layout layout;
  weightbridge::JoinOptions options;
};

template <typename T>
std::string TextOf(const weightbridge::Result<T>& result) {
  return result.ok() ? "OK" : result.error().ToString();
}

/// Seconds from the publication to the last rollout's report.
double Update(weightbridge::Trainer& trainer,
              const std::vector<weightbridge::Rollout*>& rollouts,
              std::uint64_t version) {
  const std::chrono::milliseconds timeout = Slack(20s);
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::future<std::string>> received;
  for (weightbridge::Rollout* rollout : rollouts) {
    received.push_back(std::async(std::launch::async, [rollout, version, timeout] {
      const auto offered = rollout->WaitForVersion(version, timeout);
      if (!offered.ok()) return TextOf(offered);
      return TextOf(rollout->Receive(*offered, {timeout}));
    }));
  }
  const auto published = trainer.Publish(version, {"", timeout});
  REQUIRE(TextOf(published) == "OK");
  for (std::future<std::string>& result : received) REQUIRE(result.get() == "OK");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_CASE("A layout of 20 MB registers, moves, and is sent to the leader once for equal replicas",
          "[system][scale]") {
  const TempFolder folder;
  DaemonProcess n0({folder.path(), "n0", kListen, kPatient});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  DaemonProcess n1({folder.path(), "n1", AddressOf(n0), ""});
  REQUIRE(n1.Start());
  REQUIRE(n1.Ready());
  BigWorker policy(n0, "job", "policy");
  BigWorker first(n1, "job", "engine0");
  BigWorker second(n1, "job", "engine1");
  for (BigWorker* worker : {&policy, &first, &second}) worker->Holds(kTensors, 2, 340);
  const auto sent = [&] {
    return AskDaemon(folder, "status", n1).at("leader_sent_bytes").get<std::uint64_t>();
  };
  auto trainer = weightbridge::Trainer::Join(policy.options, policy.layout);
  REQUIRE(TextOf(trainer) == "OK");
  const std::uint64_t before = sent();
  auto engine0 = weightbridge::Rollout::Join(first.options, first.layout);
  REQUIRE(TextOf(engine0) == "OK");
  const std::uint64_t after_first = sent();
  CHECK(after_first - before > 20 * kMegabyte);
  auto engine1 = weightbridge::Rollout::Join(second.options, second.layout);
  REQUIRE(TextOf(engine1) == "OK");
  CHECK(sent() - after_first < 65'536);

  policy.Fill(1);
  Update(*trainer, {&*engine0, &*engine1}, 1);
  CHECK(first.Same(policy));
  CHECK(second.Same(policy));
}

TEST_CASE("Many small tensors on one host are one update: few messages, nothing over the network",
          "[system][scale][field][case-136]") {
  const TempFolder folder;
  DaemonProcess n0({folder.path(), "n0", kListen, kPatient});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  const auto messages = [&] {
    const json status = AskDaemon(folder, "status", n0);
    return status.at("leader_sent_messages").get<std::uint64_t>() +
           status.at("leader_received_messages").get<std::uint64_t>();
  };
  const std::uint64_t before = messages();
  std::vector<double> seconds;
  for (const int tensors : {18'432, 1}) {
    const std::string job = absl::StrCat("job", tensors);
    BigWorker policy(n0, job, "policy");
    BigWorker engine(n0, job, "engine0");
    const std::int64_t floats = std::int64_t{18'432} * 1'024 / tensors;
    policy.Holds(tensors, floats, 40);
    engine.Holds(tensors, floats, 40);
    auto trainer = weightbridge::Trainer::Join(policy.options, policy.layout);
    REQUIRE(TextOf(trainer) == "OK");
    auto rollout = weightbridge::Rollout::Join(engine.options, engine.layout);
    REQUIRE(TextOf(rollout) == "OK");
    policy.Fill(1);
    Update(*trainer, {&*rollout}, 1);  // planned, and lowered
    REQUIRE(engine.Same(policy));
    policy.Fill(2);
    const std::uint64_t before_second = messages();
    double best = Update(*trainer, {&*rollout}, 2);
    CHECK(messages() - before_second <= 20);
    REQUIRE(engine.Same(policy));
    for (std::uint64_t version = 3; version <= 4; ++version) {
      best = std::min(best, Update(*trainer, {&*rollout}, version));
    }
    seconds.push_back(best);
    // Registrations and plans of all and the second update.
    if (tensors > 1) CHECK(messages() - before <= 100);
  }
  CAPTURE(seconds[0], seconds[1]);
  CHECK(seconds[0] <= seconds[1] * 5 * static_cast<double>(Slack(1s) / 1s));
  const json versions = AskDaemon(folder, "versions", n0);
  for (const json& version : versions.at("versions")) {
    for (const json& delivery : version.at("deliveries")) {
      CHECK(delivery.at("bytes_by_path").at("local") == 18'432 * 4'096);
      CHECK(delivery.at("bytes_by_path").value("tcp", 0) == 0);
    }
  }
}

// ---- memory ----

TEST_CASE("A daemon that serves 8 GB of regions takes little memory of its own",
          "[system][scale]") {
  const TempFolder folder;
  DaemonProcess daemon({folder.path(), "n0", kListen, ""});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  // 32 stretches of one file, of 256 MiB each: 8 GiB of mappings, made present, for little memory.
  constexpr std::int64_t kBytes = std::int64_t{256} << 20;
  constexpr int kBuffers = 32;
  constexpr std::uint64_t kPage = 4'096;
  const auto big = weightbridge::SharedBuffer::Create(kBytes + kBuffers * kPage);
  REQUIRE(big.ok());
  BigWorker policy(daemon, "job", "policy");
  BigWorker engine(daemon, "job", "engine0");
  policy.Holds(1, 1'024, 40);
  engine.Holds(1, 1'024, 40);
  for (int i = 0; i < kBuffers; ++i) {
    weightbridge::Param param(absl::StrCat("state", i), {kBytes});
    param.local = true;
    param.dtype = weightbridge::Dtype::kUint8;
    REQUIRE(policy.layout.AddParam(param).ok());
    weightbridge::Memory stretch;
    stretch.handle = big->fd();
    stretch.offset = static_cast<std::uint64_t>(i) * kPage;
    stretch.bytes = kBytes;
    REQUIRE(policy.layout.SetBuffer(param.name, stretch).ok());
  }
  auto trainer = weightbridge::Trainer::Join(policy.options, policy.layout);
  REQUIRE(TextOf(trainer) == "OK");
  auto rollout = weightbridge::Rollout::Join(engine.options, engine.layout);
  REQUIRE(TextOf(rollout) == "OK");
  // Mapped once a stretch, and counted.
  const json status = AskDaemon(folder, "status", daemon);
  CHECK(status.at("regions") == kBuffers + 2);
  CHECK(status.at("region_bytes") == kBuffers * kBytes + 2 * 4'096);
  policy.Fill(1);
  Update(*trainer, {&*rollout}, 1);
  REQUIRE(engine.Same(policy));
  const absl::StatusOr<Footprint> footprint = FootprintOf(daemon.pid());
  REQUIRE(footprint.ok());
  CAPTURE(footprint->rss_anon_bytes);
  if (kOwnMemory) CHECK(footprint->rss_anon_bytes < 300 * kMegabyte);

  // Nor can the owner take the memory away from under the daemon.
  CHECK(::ftruncate(big->fd(), 0) != 0);
  CHECK(::ftruncate(policy.memory->fd(), 0) != 0);
  policy.Fill(2);
  Update(*trainer, {&*rollout}, 2);
  REQUIRE(engine.Same(policy));
}

TEST_CASE("From version to version a daemon grows by nothing", "[system][scale][field][case-62]") {
  const TempFolder folder;
  const test::Finished run =
      test::RunProgram(folder.path(),
                       {BinaryOf("wbctl"), "rehearse", WB_EXAMPLES "/tiny-qwen3-moe.json",
                        "--versions", "200", "-o", "json"},
                       60s);
  CAPTURE(run.output.substr(run.output.size() < 500 ? 0 : run.output.size() - 500));
  REQUIRE(run.code == 0);
  const json versions = json::parse(run.output.substr(run.output.find("\n{") + 1)).at("versions");
  REQUIRE(versions.size() == 200);
  const json& early = versions.at(99).at("daemons");
  const json& late = versions.at(199).at("daemons");
  REQUIRE(early.size() == 4);
  for (std::size_t i = 0; i < early.size(); ++i) {
    CAPTURE(i, early[i].dump(), late[i].dump());
    CHECK(late[i].at("descriptors") == early[i].at("descriptors"));
    CHECK(late[i].at("mappings") == early[i].at("mappings"));
    if (!kOwnMemory) continue;
    CHECK(late[i].at("rss_anon_bytes").get<std::uint64_t>() <
          early[i].at("rss_anon_bytes").get<std::uint64_t>() + (2U << 20));
  }
}

}  // namespace
}  // namespace wb
