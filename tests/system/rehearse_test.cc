#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "planner/solve/planner.h"
#include "proto/convert.h"
#include "tests/support/catch.h"
#include "tests/support/gqa_file.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/support/whole_file.h"
#include "tests/system/wbctl_run.h"

namespace wb {
namespace {

using nlohmann::json;
using test::AllGone;
using test::Example;
using test::kGqaFile;
using test::ReadWholeFile;
using test::ReadWholeFolder;
using test::SafetensorsBytes;
using test::Slack;
using test::TempFolder;
using test::Wbctl;
using test::WbctlResult;
using test::WbctlRun;

constexpr std::chrono::seconds kFailureBound{5};  // from a death to the end of wbctl

struct Planned {
  Job job;
  Plan plan;
  std::uint64_t rollout_bytes = 0;  // of elements that rollouts hold
};

Planned PlanOf(const std::filesystem::path& file) {
  auto loaded = JobFromJson(ReadWholeFile(file));
  if (const auto* refusals = std::get_if<Refusals>(&loaded)) FAIL(refusals->front().text);
  Planned planned{std::get<LoadedJob>(loaded).job, {}, 0};
  auto solved = Solve(planned.job);
  if (const auto* refusals = std::get_if<Refusals>(&solved)) FAIL(refusals->front().text);
  planned.plan = std::get<Plan>(solved);
  for (const Layout& layout : planned.job.layouts) {
    if (layout.role != Role::kRollout) continue;
    for (const Piece& piece : layout.pieces) {
      planned.rollout_bytes += static_cast<std::uint64_t>(
          piece.box.elements() * DtypeBytes(planned.job.tensor(piece.tensor).dtype));
    }
  }
  return planned;
}

/// The elements of a dumped param.
template <typename T>
std::vector<T> Dumped(const std::filesystem::path& path) {
  const std::string bytes = ReadWholeFile(path);
  REQUIRE(bytes.size() > 128);
  std::vector<T> elements((bytes.size() - 128) / sizeof(T));
  std::memcpy(elements.data(), bytes.data() + 128, elements.size() * sizeof(T));
  return elements;
}

std::uint16_t Bf16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<std::uint16_t>(bits >> 16);
}

TEST_CASE("what lands is what the trainers hold, through every stride and axis", "[system]") {
  const TempFolder scratch;
  const auto file = scratch.Write("gqa.json", kGqaFile);
  const WbctlResult result =
      Wbctl({"rehearse", file.string(), "--fill", "index", "--dump", scratch.File("dump")});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  // Version 3: q holds 3..34, k holds 3..10, w holds 3..8.
  std::vector<std::uint16_t> qkv;
  for (int i = 0; i < 32; ++i) qkv.push_back(Bf16(static_cast<float>(i + 3)));
  for (int i = 0; i < 8; ++i) qkv.push_back(Bf16(static_cast<float>(i + 3)));
  REQUIRE(Dumped<std::uint16_t>(scratch.File("dump/engine0-0-qkv.npy")) == qkv);
  REQUIRE(Dumped<float>(scratch.File("dump/engine0-0-w.npy")) ==
          std::vector<float>{3, 4, 5, 6, 7, 8});
}

TEST_CASE("a model of more params than a shell's limit of descriptors is rehearsed", "[system]") {
  std::string tensors;
  std::string params;
  for (int i = 0; i < 300; ++i) {
    const std::string name = "w" + std::to_string(i);
    tensors += (i > 0 ? R"(,")" : R"(")") + name + R"(":{"dtype":"FP32","shape":[2]})";
    params += (i > 0 ? R"(,{"name":")" : R"({"name":")") + name +
              R"(","shape":[2],"pieces":[{"tensor":")" + name +
              R"(","box":{"lo":[0],"hi":[2]},"at":[0]}]})";
  }
  const auto worker = [&params](const std::string& role, const std::string& node) {
    return R"({"role":")" + role + R"(","group":"g)" + node + R"(","rank":0,"node":")" + node +
           R"(","params":[)" + params + "]}";
  };
  const TempFolder scratch;
  const auto file = scratch.Write("many.json", R"({"job":"many","tensors":{)" + tensors +
                                                   R"(},"workers":[)" + worker("TRAINER", "n0") +
                                                   "," + worker("ROLLOUT", "n1") + "]}");
  rlimit ours{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &ours) == 0);
  const rlimit shells{256, ours.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &shells) == 0);
  const WbctlResult result = Wbctl({"rehearse", file.string(), "--versions", "1"});
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &ours) == 0);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
}

TEST_CASE("versions are numbered from where they are told to", "[system]") {
  const TempFolder scratch;
  const auto file = scratch.Write("gqa.json", kGqaFile);
  const WbctlResult result = Wbctl({"rehearse", file.string(), "-o", "json", "--versions", "2",
                                    "--first-version", "501", "--fill", "row"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const json versions = json::parse(result.out)["versions"];
  REQUIRE(versions[0]["version"] == 501);
  REQUIRE(versions[1]["version"] == 502);
}

TEST_CASE("a table is printed where no JSON is asked for", "[system]") {
  const TempFolder scratch;
  const WbctlResult result = Wbctl({"rehearse", scratch.Write("gqa.json", kGqaFile).string()});
  REQUIRE(result.exit_code == 0);
  REQUIRE_THAT(result.out, Catch::Contains("GB/s") && Catch::Contains("every byte verified"));
}

TEST_CASE("a bit spoilt at either end is found where it lands", "[system]") {
  const TempFolder scratch;
  const auto file = scratch.Write("gqa.json", kGqaFile);
  const std::string spoilt = GENERATE("policy/0", "engine0/0");
  const WbctlResult result =
      Wbctl({"rehearse", file.string(), "--fill", "index", "--flip", spoilt, "-o", "json"});
  INFO(result.err);
  REQUIRE(result.exit_code == 4);
  // k is the first tensor by name; its first element holds version 1 + index 0, or the bit beside.
  REQUIRE_THAT(result.err, Catch::Contains("version 1, worker engine0/0: 1 elements") &&
                               Catch::Contains("param qkv, tensor k, index [0,0]: got 0x3f81, "
                                               "wanted 0x3f80"));
  const json out = json::parse(result.out);
  REQUIRE(out["versions"].size() == 1);
  REQUIRE(out["mismatches"].back()["worker"] == spoilt);
}

TEST_CASE("refused files are refused before anything starts, with every reason", "[system]") {
  struct Bad {
    std::string text;
    std::string reason;
  };
  std::string uncovered = kGqaFile;
  uncovered.replace(uncovered.find(R"("hi": [8,2])"), 11, R"("hi": [7,2])");
  const Bad bad = GENERATE_COPY(values<Bad>({{"", ""},
                                             {"{ \"job\": ", ""},
                                             {std::string(kGqaFile).substr(0, 900), ""},
                                             {uncovered, "q"}}));
  const TempFolder scratch;
  const auto file = scratch.Write("bad.json", bad.text);
  const WbctlResult result = Wbctl({"rehearse", file.string(), "-v", "-o", "json"});
  INFO(result.err);
  REQUIRE(result.exit_code == 2);
  REQUIRE_THAT(result.err, !Catch::Contains("pid"));
  const json refusals = json::parse(result.out)["refusals"];
  REQUIRE_FALSE(refusals.empty());
  REQUIRE(refusals[0]["tensor"] == bad.reason);
  REQUIRE_THAT(result.err, Catch::Contains(refusals[0]["text"].get<std::string>()));
}

TEST_CASE("a layout file that is not there is refused by plan and rehearse in the same words",
          "[system]") {
  const WbctlResult plan = Wbctl({"plan", "/nowhere/layout.json"});
  const WbctlResult rehearse = Wbctl({"rehearse", "/nowhere/layout.json", "-o", "json"});
  REQUIRE(plan.exit_code == 2);
  REQUIRE(rehearse.exit_code == 2);
  REQUIRE_THAT(plan.err, Catch::Contains("cannot open /nowhere/layout.json"));
  REQUIRE(rehearse.err == plan.err);
  REQUIRE(rehearse.out == plan.out);
}

TEST_CASE("wrong options are usage errors", "[system]") {
  const std::string file = Example("tiny-qwen3-moe.json").string();
  const auto arguments = GENERATE_COPY(
      values<std::vector<std::string>>({{"rehearse"},
                                        {"rehearse", file, "--fill", "zero"},
                                        {"rehearse", file, "--dump", ""},
                                        {"rehearse", file, "--versions", "0"},
                                        {"rehearse", file, "--export", "/tmp/x"},
                                        {"rehearse", file, "--transport", "carrier-pigeon"},
                                        {"rehearse", file, "--flip", "engine9/0"}}));
  REQUIRE(Wbctl(arguments).exit_code == 3);
}

TEST_CASE("a usage error names what was given and what was wanted", "[system]") {
  REQUIRE_THAT(Wbctl({"plan", "f.json", "-o", "yaml"}).err,
               Catch::Contains("--output: 'yaml', want json|table"));
  REQUIRE_THAT(Wbctl({"rehearse", "f.json", "--fill", "zero"}).err,
               Catch::Contains("--fill: 'zero', want hash|index|row"));
  REQUIRE_THAT(Wbctl({"paln", "f.json"}).err, Catch::Contains("paln is no command"));
  REQUIRE_THAT(Wbctl({"rehearse", "f.json", "--dump", ""}).err,
               Catch::Contains("--dump: is empty, want a name"));
}

TEST_CASE("a killed worker ends the rehearsal with its name and nothing left", "[system]") {
  WbctlRun run({"rehearse", Example("tiny-qwen3-moe.json").string(), "-v", "--versions", "100000"});
  run.AwaitErr("version 1 checked");
  const std::string name = GENERATE("worker engine0/1", "worker policy/3");
  const pid_t pid = run.PidOf(name);
  const std::vector<pid_t> pids = run.Pids();
  REQUIRE(pids.size() == 20);
  REQUIRE(::kill(pid, SIGKILL) == 0);
  const WbctlResult result = run.Finish(kFailureBound);
  REQUIRE(result.exit_code == 1);
  REQUIRE_THAT(result.err, Catch::Contains("wbctl: " + name + " (pid " + std::to_string(pid) +
                                           ") was killed by signal 9 (Killed)") &&
                               Catch::Contains("its log"));
  REQUIRE(run.LeftBehind().empty());
  REQUIRE(AllGone(pids));
}

TEST_CASE("a killed daemon ends the rehearsal with its name, log and nothing left", "[system]") {
  WbctlRun run({"rehearse", Example("tiny-qwen3-moe.json").string(), "-v", "--versions", "100000"});
  run.AwaitErr("version 1 checked");
  const std::string node = GENERATE("rollout0", "trainer1");
  const pid_t pid = run.PidOf("daemon of node " + node);
  const std::vector<pid_t> pids = run.Pids();
  REQUIRE(::kill(pid, SIGKILL) == 0);
  const WbctlResult result = run.Finish(kFailureBound);
  REQUIRE(result.exit_code == 1);
  REQUIRE_THAT(result.err, Catch::Contains("wbctl: daemon of node " + node + " (pid " +
                                           std::to_string(pid) + ") was killed by signal 9") &&
                               Catch::Contains("its log ends with:"));
  REQUIRE(run.LeftBehind().empty());
  REQUIRE(AllGone(pids));
}

TEST_CASE("a worker that stands still is named when its time is over", "[system]") {
  const TempFolder scratch;
  WbctlRun run({"rehearse", scratch.Write("gqa.json", kGqaFile).string(), "-v", "--versions",
                "100000", "--timeout", "2"});
  run.AwaitErr("version 1 checked");
  REQUIRE(::kill(run.PidOf("worker engine0/0"), SIGSTOP) == 0);
  const WbctlResult result = run.Finish(std::chrono::seconds(2 + 5 + 5));
  REQUIRE(result.exit_code == 1);
  REQUIRE_THAT(result.err, Catch::Contains("engine0/0"));
  REQUIRE(run.LeftBehind().empty());
  REQUIRE(AllGone(run.Pids()));
}

TEST_CASE("a signal to wbctl ends everything it has started", "[system]") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  const TempFolder scratch;
  WbctlRun run(
      {"rehearse", scratch.Write("gqa.json", kGqaFile).string(), "-v", "--versions", "100000"});
  run.AwaitErr("version 1 checked");
  REQUIRE(::kill(run.pid(), signal) == 0);
  const WbctlResult result = run.Finish(kFailureBound);
  REQUIRE(result.exit_code == 1);
  REQUIRE_THAT(result.err, Catch::Contains("stopped by"));
  REQUIRE(run.LeftBehind().empty());
  REQUIRE(AllGone(run.Pids()));
}

TEST_CASE("a killed wbctl takes its processes with it", "[system]") {
  const TempFolder scratch;
  WbctlRun run(
      {"rehearse", scratch.Write("gqa.json", kGqaFile).string(), "-v", "--versions", "100000"});
  run.AwaitErr("version 1 checked");
  REQUIRE(::kill(run.pid(), SIGKILL) == 0);
  REQUIRE(run.Finish(kFailureBound).exit_code == -1);
  REQUIRE(AllGone(run.Pids()));
}

TEST_CASE("the folder of a rehearsal is kept on request", "[system]") {
  const TempFolder scratch;
  WbctlRun run({"rehearse", scratch.Write("gqa.json", kGqaFile).string(), "--keep", "-v"});
  const WbctlResult result = run.Finish(std::chrono::seconds(60));
  REQUIRE(result.exit_code == 0);
  REQUIRE(run.LeftBehind().size() == 1);
  REQUIRE_THAT(result.err, Catch::Contains("kept: ") && Catch::Contains(run.LeftBehind().front()));
}

/// Three tensors: a matrix, a vector and a scalar, each of another dtype.
std::string SmallModel(char first) {
  std::string data;
  for (int i = 0; i < 7 * 5 * 4 + 6 + 1; ++i) data.push_back(static_cast<char>(first + i % 91));
  return SafetensorsBytes(
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[7,5],"data_offsets":[0,140]},)"
      R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[140,146]},)"
      R"("s":{"dtype":"U8","shape":[],"data_offsets":[146,147]}}  )",
      data);
}

std::filesystem::path LayoutOf(const TempFolder& scratch, const std::filesystem::path& checkpoint) {
  const WbctlResult layout = Wbctl({"layout", checkpoint.string(), "--trainer", "rows:2",
                                    "--rollout", "columns:4", "--rollout", "replicated:2"});
  REQUIRE(layout.exit_code == 0);
  return scratch.Write("layout.json", layout.out);
}

TEST_CASE("no layout file is written that would be refused", "[system]") {
  const TempFolder scratch;
  const auto checkpoint = scratch.Write(
      "c.safetensors",
      SafetensorsBytes(R"({"a\nb":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", "x"));
  const WbctlResult control =
      Wbctl({"layout", checkpoint.string(), "--trainer", "rows:1", "--rollout", "rows:1"});
  REQUIRE(control.exit_code == 2);
  REQUIRE(control.out.empty());
  REQUIRE_THAT(control.err, Catch::Contains("has a control character at byte 1"));
  const auto good = scratch.Write(
      "d.safetensors",
      SafetensorsBytes(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", "x"));
  const WbctlResult job = Wbctl({"layout", good.string(), "--trainer", "rows:1", "--rollout",
                                 "rows:1", "--job", "two\nlines"});
  REQUIRE(job.exit_code == 2);
  REQUIRE_THAT(job.err, Catch::Contains("job"));
}

/// Qwen3-30B-A3B in small: its heads and experts, not their sizes.
constexpr const char* kSmallQwen = R"({
  "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "attention_bias": false,
  "head_dim": 8, "hidden_size": 64, "intermediate_size": 96, "moe_intermediate_size": 24,
  "num_attention_heads": 32, "num_experts": 128, "num_hidden_layers": 48,
  "num_key_value_heads": 4, "tie_word_embeddings": false, "vocab_size": 1000 })";

TEST_CASE("the first layers of a deployment are rehearsed, every element of every expert",
          "[rehearse][deployment]") {
  const TempFolder scratch;
  scratch.Write("config.json", kSmallQwen);
  const auto file = scratch.Write("d.yaml", R"(
job: small
model: {config: config.json, dtype: BF16}
trainer: {framework: megatron, ranks: 2, tp: 2, pp: 1, ep: 2, etp: 1}
rollouts: [{framework: sglang, engines: 1, tp: 4, ep: 4}]
cluster: {nodes: 2, gpus_per_node: 2, placement: colocated, rail_gb_per_s: 50,
          nvlink_gb_per_s: 450, pcie_gb_per_s: 55}
)");
  const WbctlResult result =
      Wbctl({"rehearse", file.string(), "--layers", "2", "--versions", "2", "-o", "json"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json versions = json::parse(result.out)["versions"];
  REQUIRE(versions.size() == 2);
  // Each rank of four has norms, router and its own; key heads are on a rank each.
  constexpr std::uint64_t kAttention = (2 * 32 + 2 * 4) * 8 * 64;
  constexpr std::uint64_t kExperts = 128 * 3 * 24 * 64;
  constexpr std::uint64_t kOnEach = 128 * 64 + 2 * 64 + 2 * 8;
  constexpr std::uint64_t kElements =
      2 * (kAttention + kExperts + 4 * kOnEach) + 2 * 1000 * 64 + 4 * 64;
  for (const json& version : versions) {
    REQUIRE(version["verified_bytes"] == 2 * kElements);
    REQUIRE(version["bytes_moved"] == version["bytes_planned"]);
  }
}

/// A layout file of the given name: one of the examples, the design's, or a checkpoint's.
std::filesystem::path NamedFile(const TempFolder& scratch, const std::string& name) {
  if (name == "gqa") return scratch.Write("gqa.json", kGqaFile);
  if (name == "checkpoint") {
    return LayoutOf(scratch, scratch.Write("m.safetensors", SmallModel('a')));
  }
  return Example(name);
}

/// The same file with all its workers on one node.
std::filesystem::path OnOneNode(const TempFolder& scratch, const std::filesystem::path& file) {
  json layout = json::parse(ReadWholeFile(file));
  for (json& worker : layout["workers"]) worker["node"] = "n0";
  return scratch.Write("one_node.json", layout.dump());
}

/// A rehearsal that must pass, with all bytes between nodes brought by `path`; its dumps.
std::map<std::string, std::string> RehearseBy(const std::string& path,
                                              const std::string& transport,
                                              const std::filesystem::path& file,
                                              const std::string& source = "in_place") {
  const Planned planned = PlanOf(file);
  const Plan& plan = planned.plan;
  const TempFolder scratch;
  const WbctlResult result =
      Wbctl({"rehearse", file.string(), "-o", "json", "--transport", transport, "--dump",
             scratch.File("dump").string(), "--source", source});
  CAPTURE(path, transport, source, result.err);
  REQUIRE(result.exit_code == 0);
  const json out = json::parse(result.out);
  REQUIRE(out["source"] == source);
  REQUIRE(out["versions"].size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const json& version = out["versions"][i];
    CAPTURE(version.dump(2));
    REQUIRE(version["version"] == i + 1);
    REQUIRE(version["bytes_planned"] == plan.bytes);
    REQUIRE(version["bytes_moved"] == plan.bytes);
    std::map<std::string, std::uint64_t> by_path = {{"tcp", 0}, {"shm", 0}, {"local", 0}};
    by_path[path] += plan.bytes - plan.intra_node_bytes;
    by_path["local"] += plan.intra_node_bytes;
    REQUIRE(version["bytes_by_path"] == json(by_path));
    REQUIRE(version["bound_bytes"] == plan.bound_bytes());
    REQUIRE(version["verified_bytes"] == planned.rollout_bytes);
    REQUIRE(version["average_stall_ms"] > 0.0);
    REQUIRE(version["end_to_end_ms"] > 0.0);
    REQUIRE(version["gb_per_s"] > 0.0);
  }
  std::set<std::string> nodes;
  for (const Layout& layout : planned.job.layouts) nodes.insert(layout.node);
  std::set<pid_t> pids;
  for (const char* kind : {"daemons", "workers"}) {
    for (const json& pid : out["processes"][kind]) pids.insert(pid.get<pid_t>());
  }
  REQUIRE(pids.size() == nodes.size() + planned.job.layouts.size());
  REQUIRE(AllGone({pids.begin(), pids.end()}));
  return ReadWholeFolder(scratch.File("dump"));
}

TEST_CASE("layout files land in equal bytes by every path, all verified and counted",
          "[system][field][case-17]") {
  const auto [name, shm] =
      GENERATE(table<std::string, std::string>({{"tiny-qwen3-moe.json", "shm"},
                                                {"tiny-deepseek-moe.json", "auto"},
                                                {"gqa", "shm"},
                                                {"checkpoint", "auto"}}));
  CAPTURE(name);
  const TempFolder scratch;
  const auto file = NamedFile(scratch, name);
  const Plan plan = PlanOf(file).plan;
  REQUIRE(static_cast<double>(std::max(plan.max_egress_bytes, plan.max_ingress_bytes)) <=
          1.02 * static_cast<double>(plan.bound_bytes()));
  const auto dumps = RehearseBy("tcp", "tcp", file);
  REQUIRE_FALSE(dumps.empty());
  REQUIRE((RehearseBy("shm", shm, file) == dumps));  // auto: all daemons are on this host
  REQUIRE((RehearseBy("local", "tcp", OnOneNode(scratch, file)) == dumps));
  REQUIRE((RehearseBy("tcp", "tcp", file, "snapshot") == dumps));
}

TEST_CASE("a checkpoint comes out of the rollouts byte for byte", "[system]") {
  const TempFolder scratch;
  const auto checkpoint = scratch.Write("m.safetensors", SmallModel('a'));
  const auto layout = LayoutOf(scratch, checkpoint);
  const auto out = scratch.File("out.safetensors");
  const auto [versions, source] = GENERATE(
      table<std::string, std::string>({{"1", "in_place"}, {"3", "in_place"}, {"3", "snapshot"}}));
  const WbctlResult result =
      Wbctl({"rehearse", layout.string(), "--checkpoint", checkpoint.string(), "--export",
             out.string(), "--versions", versions, "--source", source});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  REQUIRE_THAT(result.out, Catch::Contains("exported"));
  REQUIRE(ReadWholeFile(out) == SmallModel('a'));
}

TEST_CASE("an export that differs from its checkpoint is kept and told", "[system]") {
  const TempFolder scratch;
  const auto checkpoint = scratch.Write("m.safetensors", SmallModel('a'));
  const auto layout = LayoutOf(scratch, checkpoint);
  const auto out = scratch.File("out.safetensors");
  const WbctlResult result =
      Wbctl({"rehearse", layout.string(), "--checkpoint", checkpoint.string(), "--export",
             out.string(), "--flip", "engine0/3"});
  REQUIRE(result.exit_code == 4);
  REQUIRE_THAT(result.err, Catch::Contains("worker engine0/3: 1 elements"));
  REQUIRE(ReadWholeFile(out).size() == SmallModel('a').size());
}

TEST_CASE("an export that would replace what is no copy is refused before anything starts",
          "[system]") {
  const TempFolder scratch;
  const auto checkpoint = scratch.Write("m.safetensors", SmallModel('a'));
  const auto layout = LayoutOf(scratch, checkpoint);
  const auto link = scratch.File("link");
  std::filesystem::create_symlink(scratch.File("elsewhere"), link);
  const auto hard = scratch.File("hard");
  std::filesystem::create_hard_link(checkpoint, hard);
  for (const auto& [out, why] :
       {std::pair{std::filesystem::path(checkpoint), "is the checkpoint itself"},
        std::pair{std::filesystem::path(hard), "is the checkpoint itself"},
        std::pair{std::filesystem::path(link), "is no regular file"},
        std::pair{std::filesystem::path("/dev/null"), "is no regular file"}}) {
    CAPTURE(out, why);
    const WbctlResult result = Wbctl({"rehearse", layout.string(), "--checkpoint",
                                      checkpoint.string(), "--export", out.string(), "-v"});
    REQUIRE(result.exit_code == 1);
    REQUIRE_THAT(result.err, Catch::Contains(out.string() + " " + why));
    REQUIRE_THAT(result.err, !Catch::Contains("daemon "));
  }
  REQUIRE(ReadWholeFile(checkpoint) == SmallModel('a'));
  REQUIRE(std::filesystem::is_symlink(link));
  REQUIRE(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("params that would have one dump file are refused before anything starts", "[system]") {
  const auto params = [](const std::string& name) {
    return R"("params":[{"name":")" + name +
           R"(","shape":[2],"pieces":[{"tensor":"w","box":{"lo":[0],"hi":[2]},"at":[0]}]}]})";
  };
  const auto worker = [&](const std::string& group, int rank, const std::string& name) {
    return R"({"role":"ROLLOUT","group":")" + group + R"(","rank":)" + std::to_string(rank) +
           R"(,"node":"n1",)" + params(name);
  };
  const TempFolder scratch;
  const auto file = scratch.Write(
      "f.json", R"({"job":"j","tensors":{"w":{"dtype":"FP32","shape":[2]}},"workers":[)"
                R"({"role":"TRAINER","group":"policy","rank":0,"node":"n0",)" +
                    params("w") + "," + worker("a-1", 0, "p") + "," + worker("a", 0, "p") + "," +
                    worker("a", 1, "0-p") + "]}");
  const WbctlResult result =
      Wbctl({"rehearse", file.string(), "--dump", scratch.File("dump").string()});
  REQUIRE(result.exit_code == 1);
  REQUIRE_THAT(result.err,
               Catch::Contains("param 0-p of a/1 and param p of a-1/0 would both be a-1-0-p.npy"));
}

TEST_CASE("a sharded checkpoint is exported as its shards", "[system]") {
  const TempFolder scratch;
  std::filesystem::create_directory(scratch.File("m"));
  scratch.Write("m/a.safetensors", SmallModel('a'));
  const std::string other =
      SafetensorsBytes(R"({"u":{"dtype":"I16","shape":[2,2],"data_offsets":[0,8]}})", "abcdefgh");
  scratch.Write("m/b.safetensors", other);
  const auto layout = LayoutOf(scratch, scratch.File("m"));
  const WbctlResult result = Wbctl({"rehearse", layout.string(), "--checkpoint", scratch.File("m"),
                                    "--export", scratch.File("out")});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  REQUIRE(ReadWholeFile(scratch.File("out/a.safetensors")) == SmallModel('a'));
  REQUIRE(ReadWholeFile(scratch.File("out/b.safetensors")) == other);
}

TEST_CASE("a checkpoint that is damaged or another's is refused by name", "[system]") {
  const TempFolder scratch;
  const auto checkpoint = scratch.Write("m.safetensors", SmallModel('a'));
  const auto layout = LayoutOf(scratch, checkpoint);
  const auto refused = [&](const std::string& bytes) {
    const auto bad = scratch.Write("bad.safetensors", bytes);
    const WbctlResult result = Wbctl({"rehearse", layout.string(), "--checkpoint", bad.string()});
    REQUIRE(result.exit_code == 2);
    return result.err;
  };
  REQUIRE_THAT(refused(SmallModel('a').substr(0, 200)), Catch::Contains("truncated"));
  std::string other = SmallModel('a');
  other.replace(other.find("[7,5]"), 5, "[5,7]");
  REQUIRE_THAT(refused(other), Catch::Contains("tensor w is FP32 [7,5] in the layout file and "
                                               "FP32 [5,7] in the checkpoint"));
}

}  // namespace
}  // namespace wb
