#include "client/wbctl/plan_command.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/wbctl/output.h"
#include "client/wbctl/plan/readable.h"
#include "tests/support/catch.h"
#include "tests/support/gqa_file.h"
#include "tests/support/temp_folder.h"

namespace wb {
namespace {

using nlohmann::json;

constexpr const char* kCompletePlan = R"({
  "moves": [
    {"src": "policy/0", "dst": "engine0/0", "tensor": "k", "box": {"lo": [0,0], "hi": [2,2]}, "bytes": 8},
    {"src": "policy/0", "dst": "engine0/0", "tensor": "k", "box": {"lo": [2,0], "hi": [4,2]}, "bytes": 8},
    {"src": "policy/0", "dst": "engine0/0", "tensor": "q", "box": {"lo": [0,0], "hi": [8,2]}, "bytes": 32},
    {"src": "policy/0", "dst": "engine0/0", "tensor": "q", "box": {"lo": [8,0], "hi": [16,2]}, "bytes": 32},
    {"src": "policy/0", "dst": "engine0/0", "tensor": "w", "box": {"lo": [0,0], "hi": [2,3]}, "bytes": 24}
  ],
  "summary": {
    "bytes": 104, "moves": 5, "max_egress_bytes": 104, "max_ingress_bytes": 104,
    "bound_bytes": 104, "intra_node_bytes": 0, "unused": [],
    "max_over_bound": 1.0, "bounds": {"direct": 104, "fan_out": 104, "node_sharing": 104}, "ties": []
  } })";

struct Printed {
  ExitCode exit = ExitCode::kDone;
  std::string out;
  std::string err;
};

Printed RunOn(const std::string& text, PlanOptions options = {}) {
  const test::TempFolder scratch;
  options.file.path = scratch.Write("layout.json", text);
  std::ostringstream out;
  std::ostringstream err;
  const ExitCode exit = RunPlan(options, out, err);
  return {exit, out.str(), err.str()};
}

TEST_CASE("the complete example of the design is planned as written out by hand", "[wbctl][plan]") {
  const Printed printed = RunOn(test::kGqaFile);
  REQUIRE(printed.exit == ExitCode::kDone);
  REQUIRE(printed.err.empty());
  const json plan = json::parse(printed.out);
  REQUIRE(plan["summary"]["fingerprint"].get<std::string>().size() == 16);
  const json want = json::parse(kCompletePlan);
  REQUIRE(plan["moves"] == want["moves"]);
  for (const auto& [key, value] : want["summary"].items()) {
    INFO(key);
    REQUIRE(plan["summary"][key] == value);
  }
}

// k is cut in two in the trainer's memory and whole in the rollout's; w is transposed in the
// former.
constexpr const char* kExplanation = R"({
  "tensors": 3, "refused": [], "max_over_bounds": {"direct": 1.0, "fan_out": 1.0, "node_sharing": 1.0},
  "binding": {"kind": "ingress", "workers": ["engine0/0"], "bytes": 104}, "wire": null,
  "nic_bytes": {"out": {"min": 104, "mean": 104.0, "max": 104},
                "in": {"min": 104, "mean": 104.0, "max": 104}},
  "full_nics": 2,
  "busiest_nics": [
    {"worker": "engine0/0", "node": "n1", "direction": "in", "bytes": 104, "peers": 1, "groups": 1,
     "causes": [{"tensors": "q", "holders": 1, "bytes": 64},
                {"tensors": "w", "holders": 1, "bytes": 24},
                {"tensors": "k", "holders": 1, "bytes": 16}],
     "other_causes": 0, "other_bytes": 0},
    {"worker": "policy/0", "node": "n0", "direction": "out", "bytes": 104, "peers": 1, "groups": 1,
     "causes": [{"tensors": "q", "holders": 1, "bytes": 64},
                {"tensors": "w", "holders": 1, "bytes": 24},
                {"tensors": "k", "holders": 1, "bytes": 16}],
     "other_causes": 0, "other_bytes": 0}],
  "replicas": [{"holders": 1, "bytes": 104, "least_senders": 1, "mean_senders": 1.0}],
  "source": {"contiguous_bytes": 80, "strided_bytes": 24},
  "destination": {"contiguous_bytes": 80, "strided_bytes": 24} })";

TEST_CASE("the summary says why the NICs carry what they do, as written out by hand",
          "[wbctl][plan]") {
  const json summary = json::parse(RunOn(test::kGqaFile, {.summary = true}).out)["summary"];
  const json want = json::parse(kExplanation);
  for (const auto& [key, value] : want.items()) {
    INFO(key);
    REQUIRE(summary[key] == value);
  }
}

TEST_CASE("a plan's keys come in the order of the design", "[wbctl][plan]") {
  const auto plan = nlohmann::ordered_json::parse(RunOn(test::kGqaFile).out);
  REQUIRE(plan.begin().key() == "moves");
  std::vector<std::string> keys;
  for (const auto& [key, value] : plan["moves"][0].items()) keys.push_back(key);
  REQUIRE(keys == std::vector<std::string>{"src", "dst", "tensor", "box", "bytes"});
  keys.clear();
  for (const auto& [key, value] : plan["summary"].items()) keys.push_back(key);
  keys.resize(7);
  REQUIRE(keys == std::vector<std::string>{"bytes", "moves", "max_egress_bytes",
                                           "max_ingress_bytes", "bound_bytes", "intra_node_bytes",
                                           "unused"});
}

TEST_CASE("the option --summary leaves the moves out", "[wbctl][plan]") {
  const Printed printed = RunOn(test::kGqaFile, {.summary = true});
  const json plan = json::parse(printed.out);
  REQUIRE_FALSE(plan.contains("moves"));
  REQUIRE(plan["summary"]["moves"] == 5);
  REQUIRE(plan["summary"]["bytes"] == 104);
}

TEST_CASE("moves inside a node count as bytes and load no NIC", "[wbctl][plan]") {
  json layout = json::parse(test::kGqaFile);
  layout["workers"][1]["node"] = "n0";
  const Printed printed = RunOn(layout.dump());
  const json summary = json::parse(printed.out)["summary"];
  REQUIRE(summary["bytes"] == 104);
  REQUIRE(summary["intra_node_bytes"] == 104);
  REQUIRE(summary["max_egress_bytes"] == 0);
  REQUIRE(summary["bound_bytes"] == 0);
  REQUIRE(summary["max_over_bound"] == 1.0);
}

TEST_CASE("a tensor that no rollout wants is noted in the summary and the table", "[wbctl][plan]") {
  json layout = json::parse(test::kGqaFile);
  layout["workers"][1]["params"].erase(1);
  const std::string file = layout.dump();
  const Printed as_json = RunOn(file);
  INFO(as_json.err);
  REQUIRE(as_json.exit == ExitCode::kDone);
  REQUIRE(json::parse(as_json.out)["summary"]["unused"] == json::array({"w"}));
  const Printed as_table = RunOn(file, {.output = OutputFormat::kTable});
  REQUIRE(as_table.out.find("1 tensor of trainers is wanted by no rollout:\n  w\n") !=
          std::string::npos);
}

TEST_CASE("a job without a plan is refused with every reason, on stderr and as JSON",
          "[wbctl][plan][refused]") {
  json layout = json::parse(test::kGqaFile);
  json& pieces = layout["workers"][0]["params"][0]["pieces"];
  pieces[0]["box"]["hi"] = {7, 2};
  pieces[3]["box"]["hi"] = {3, 2};
  const std::string text = layout.dump();
  const Printed printed = RunOn(text);
  REQUIRE(printed.exit == ExitCode::kRefused);
  REQUIRE(printed.err ==
          "tensor k: box [3,0]..[4,2] is held by no trainer, wanted by engine0/0\n"
          "tensor q: box [7,0]..[8,2] is held by no trainer, wanted by engine0/0\n");
  const json refusals = json::parse(printed.out)["refusals"];
  REQUIRE(refusals.size() == 2);
  REQUIRE(refusals[0] ==
          json{{"kind", "uncovered"},
               {"tensor", "k"},
               {"worker", "engine0/0"},
               {"text", "tensor k: box [3,0]..[4,2] is held by no trainer, wanted by engine0/0"}});
  const Printed as_table = RunOn(text, {.output = OutputFormat::kTable});
  REQUIRE(as_table.exit == ExitCode::kRefused);
  REQUIRE(as_table.out.empty());
  REQUIRE(as_table.err == printed.err);
  const Printed summary = RunOn(text, {.output = OutputFormat::kTable, .summary = true});
  REQUIRE(summary.exit == ExitCode::kRefused);
  REQUIRE(summary.out == "refused        2 tensors: k, q\n");
  REQUIRE(summary.err == printed.err);
}

TEST_CASE("a malformed file and a missing one are refused; both say why",
          "[wbctl][plan][refused]") {
  const Printed malformed = RunOn("{\"job\": ");
  REQUIRE(malformed.exit == ExitCode::kRefused);
  REQUIRE_FALSE(malformed.err.empty());
  REQUIRE(json::parse(malformed.out)["refusals"].size() == 1);
  REQUIRE(RunOn("").exit == ExitCode::kRefused);

  std::ostringstream out;
  std::ostringstream err;
  REQUIRE(RunPlan({.file = {.path = "/nowhere/layout.json"}}, out, err) == ExitCode::kRefused);
  REQUIRE(err.str().find("/nowhere/layout.json") != std::string::npos);
  REQUIRE(json::parse(out.str())["refusals"][0]["kind"] == "file");
}

constexpr const char* kConfig = R"({
  "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "attention_bias": false,
  "head_dim": 16, "hidden_size": 64, "intermediate_size": 64, "moe_intermediate_size": 16,
  "num_attention_heads": 4, "num_experts": 8, "num_hidden_layers": 3, "num_key_value_heads": 4,
  "tie_word_embeddings": false, "vocab_size": 256 })";

constexpr const char* kDeployment = R"(
job: small
model: {config: model/config.json, dtype: BF16}
trainer: {framework: megatron, ranks: 2, tp: 2, pp: 1, ep: 2, etp: 1}
rollouts: [{framework: sglang, engines: 1, tp: 4, ep: 4}]
cluster: {nodes: 2, gpus_per_node: 4, placement: disjoint, rail_gb_per_s: 50,
          nvlink_gb_per_s: 450, pcie_gb_per_s: 55}
)";

std::string With(std::string text, const std::string& what, const std::string& by) {
  text.replace(text.find(what), what.size(), by);
  return text;
}

// Plans a deployment file beside its model's config; another file may be there for --diff.
Printed RunDeployment(const std::string& name, PlanOptions options, const std::string& old = "") {
  const test::TempFolder scratch;
  std::filesystem::create_directory(scratch.File("model"));
  scratch.Write("model/config.json", kConfig);
  options.file.path = scratch.Write(name, kDeployment);
  if (!old.empty()) options.before = scratch.Write(old.front() == '{' ? "o.json" : "o.yaml", old);
  std::ostringstream out;
  std::ostringstream err;
  const ExitCode exit = RunPlan(options, out, err);
  return {exit, out.str(), err.str()};
}

TEST_CASE("a deployment file is planned with the config that it names", "[wbctl][plan]") {
  const Printed printed = RunDeployment("d.yaml", {.summary = true});
  REQUIRE(printed.exit == ExitCode::kDone);
  const json summary = json::parse(printed.out)["summary"];
  // A layer has q, k, v, o of 64 x 64, 8 experts of 3 x 16 x 64; all once.
  constexpr std::uint64_t kLayer = (4 * 64 * 64 + 8 * 3 * 16 * 64) * 2;
  constexpr std::uint64_t kRouterAndNorms = (8 * 64 + 2 * 64 + 2 * 16) * 2;  // on 4 ranks
  constexpr std::uint64_t kOutside = 2 * 256 * 64 * 2 + 4 * 64 * 2;
  REQUIRE(summary["bytes"] == 3 * (kLayer + 4 * kRouterAndNorms) + kOutside);
  REQUIRE(summary["unused"].empty());

  const Printed one = RunDeployment("d.yml", {.file = {.layers = 1}, .summary = true});
  REQUIRE(json::parse(one.out)["summary"]["bytes"] == kLayer + 4 * kRouterAndNorms + kOutside);
}

TEST_CASE("a deployment's summary predicts the time on its wires", "[wbctl][plan]") {
  const json summary = json::parse(RunDeployment("d.yaml", {.summary = true}).out)["summary"];
  const double most = summary["max_egress_bytes"].get<double>();
  REQUIRE(most > summary["max_ingress_bytes"].get<double>());
  REQUIRE(summary["wire"]["rail_seconds"] == Approx(most / 50e9));
  REQUIRE(summary["wire"]["nvlink_seconds"] == 0);
  REQUIRE(summary["wire"]["seconds"] == summary["wire"]["rail_seconds"]);
  REQUIRE(summary["wire"]["rail_gb_per_s"] == 50);
  REQUIRE(summary["binding"]["kind"] == "egress");
  REQUIRE(summary["binding"]["workers"] == json::array({"policy/0", "policy/1"}));

  const Printed table = RunDeployment("d.yaml", {.output = OutputFormat::kTable, .summary = true});
  REQUIRE(
      table.out.find("\nset by         egress: nobody but 2 trainers (policy/0, policy/1) can") !=
      std::string::npos);
  const std::string seconds = ReadableSeconds(most / 50e9);
  REQUIRE(seconds.ends_with(" us"));
  REQUIRE(table.out.find("\nwire time      " + seconds + ", at the bound " + seconds +
                         ": fullest NIC / 50 GB/s") != std::string::npos);
}

TEST_CASE("the option --diff says what an engine more changes", "[wbctl][plan]") {
  const std::string two =
      With(With(kDeployment, "engines: 1", "engines: 2"), "nodes: 2", "nodes: 3");
  const Printed printed = RunDeployment("d.yaml", {}, two);
  INFO(printed.err);
  REQUIRE(printed.exit == ExitCode::kDone);
  const json diff = json::parse(printed.out)["diff"];
  REQUIRE(diff["groups"]["removed"] == json::array({"engine1"}));
  REQUIRE(diff["groups"]["unchanged"] == json::array({"engine0"}));
  REQUIRE(diff["groups"]["changed"].empty());
  REQUIRE(diff["workers"]["removed"].size() == 4);
  REQUIRE(diff["tensors"]["changed"].empty());
  REQUIRE(diff["before"]["bytes"] == 2 * diff["after"]["bytes"].get<std::uint64_t>());
  REQUIRE(diff["before"]["bound_bytes"] == 2 * diff["after"]["bound_bytes"].get<std::uint64_t>());
  REQUIRE(diff["before"]["wire_seconds"].get<double>() > diff["after"]["wire_seconds"]);
  REQUIRE(diff["nics_changed"] == 6);
  REQUIRE(diff["nics"].size() == 5);

  const std::string table = RunDeployment("d.yaml", {.output = OutputFormat::kTable}, two).out;
  REQUIRE(table.starts_with(
      "job            small -> small\n"
      "groups         0 added, 1 removed (engine1), 0 changed, 1 unchanged\n"
      "workers        0 added, 4 removed (engine1/0, engine1/1, engine1/2, engine1/3)\n"
      "tensors        0 added, 0 removed, 0 changed\n"));
  REQUIRE(table.find("\nNICs           6 carry more or less one way; most of all:\n  policy/") !=
          std::string::npos);
}

TEST_CASE("a file that has no plan to differ from is refused by its name",
          "[wbctl][plan][refused]") {
  const auto refused = [](PlanOptions options, const std::string& old) {
    const Printed printed = RunDeployment("d.yaml", std::move(options), old);
    REQUIRE(printed.exit == ExitCode::kRefused);
    REQUIRE_FALSE(json::parse(printed.out)["refusals"].empty());
    return printed.err;
  };
  REQUIRE(refused({.before = "/nowhere/old.yaml"}, "").find("/nowhere/old.yaml") !=
          std::string::npos);
  REQUIRE(refused({}, With(kDeployment, "tp: 4", "tp: 3")).find("o.yaml: rollouts[0]: ") !=
          std::string::npos);
  REQUIRE(refused({}, test::kGqaFile).find("the plans are of two models: gqa has 3 tensors") !=
          std::string::npos);
  REQUIRE(refused({.file = {.layers = 1}}, test::kGqaFile).find("o.json is a layout file") !=
          std::string::npos);
}

TEST_CASE("a deployment that is wrong, or lacks its config, is refused with the reason",
          "[wbctl][plan][refused]") {
  const test::TempFolder scratch;
  const auto refused = [&](const std::string& name, const std::string& text) {
    std::ostringstream out;
    std::ostringstream err;
    REQUIRE(RunPlan({.file = {.path = scratch.Write(name, text)}}, out, err) == ExitCode::kRefused);
    return err.str();
  };
  REQUIRE(refused("d.yaml", kDeployment).find("model/config.json") != std::string::npos);
  REQUIRE(refused("e.yaml", "job: [").find("e.yaml") != std::string::npos);
  const Printed layers = RunOn(test::kGqaFile, {.file = {.layers = 1}});
  REQUIRE(layers.exit == ExitCode::kRefused);
  REQUIRE(layers.err.find("is a layout file, want a deployment file (*.yaml)") !=
          std::string::npos);
}

TEST_CASE("what names a file or comes from one is printed as one line", "[wbctl][plan][refused]") {
  std::ostringstream out;
  std::ostringstream err;
  REQUIRE(RunPlan({.file = {.path = "/nowhere/a\x1b[31m\nb.json"}}, out, err) ==
          ExitCode::kRefused);
  const std::string text = err.str();
  REQUIRE(text.find("/nowhere/a?[31m; b.json") != std::string::npos);
  REQUIRE(std::count(text.begin(), text.end(), '\n') == 1);
}

TEST_CASE("a deployment file is one by its name in any case", "[wbctl][plan]") {
  REQUIRE(RunDeployment("d.YAML", {.summary = true}).exit == ExitCode::kDone);
}

TEST_CASE("an empty file of a gigabyte is refused by its size, also as the one before",
          "[wbctl][plan][refused]") {
  const test::TempFolder scratch;
  const std::string large = scratch.Write("large.yaml", "");
  std::filesystem::resize_file(large, 1U << 30U);
  std::ostringstream out;
  std::ostringstream err;
  REQUIRE(RunPlan({.file = {.path = large}}, out, err) == ExitCode::kRefused);
  REQUIRE(RunPlan({.file = {.path = large}, .before = large}, out, err) == ExitCode::kRefused);
  const std::string line = large + ": has 1073741824 bytes, want at most 1048576\n";
  REQUIRE(err.str() == line + line);
}

TEST_CASE("flags of the plan take no value", "[wbctl][plan]") {
  const std::string flag = GENERATE("--fan-out", "--node-sharing", "--summary");
  CLI::App app;
  ExitCode exit = ExitCode::kDone;
  AddPlanCommand(app, exit);
  REQUIRE_THROWS_AS(app.parse("plan /nowhere/layout.json " + flag + "=2"), CLI::ParseError);
}

TEST_CASE("no memory is a failure that says so in one line", "[wbctl]") {
  std::ostringstream err;
  REQUIRE(PrintException(std::bad_alloc(), err) == ExitCode::kFailed);
  REQUIRE(err.str() == "wbctl: RESOURCE_EXHAUSTED: no memory left\n");
}

TEST_CASE("times are readable from microseconds on", "[wbctl][plan]") {
  REQUIRE(ReadableSeconds(0) == "0.000 s");
  REQUIRE(ReadableSeconds(0.000'004) == "4.0 us");
  REQUIRE(ReadableSeconds(0.012'34) == "12.3 ms");
  REQUIRE(ReadableSeconds(1.509) == "1.509 s");
}

TEST_CASE("output that cannot be written is a failure", "[wbctl][plan]") {
  const test::TempFolder scratch;
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  std::ostringstream err;
  REQUIRE(RunPlan({.file = {.path = scratch.Write("l.json", test::kGqaFile)}}, out, err) ==
          ExitCode::kFailed);
  REQUIRE(err.str().find("standard output") != std::string::npos);
}

TEST_CASE("the table says in readable sizes what moves and how close that is to the bound",
          "[wbctl][plan]") {
  const std::string table = RunOn(test::kGqaFile, {.output = OutputFormat::kTable}).out;
  REQUIRE(table ==
          "job            gqa: 1 trainer to 1 rollout worker in 1 group\n"
          "tensors        3, 0 refused, 0 unused\n"
          "moves          5, 104 B, of which 0 B inside nodes\n"
          "fullest NIC    104 B out, 104 B in\n"
          "bound          104 B (direct), fullest NIC at 1.000 of it\n"
          "               104 B (fan_out), 104 B (node_sharing)\n"
          "set by         ingress: 1 rollout worker (engine0/0) must get 104 B\n"
          "NICs out       min 104 B, mean 104 B, max 104 B\n"
          "NICs in        min 104 B, mean 104 B, max 104 B\n"
          "replicas       104 B held by 1 trainer, sent by 1.0 of them, at least 1\n"
          "in one run     76.9% of the bytes at their source, 76.9% at their destination\n"
          "fullest NICs   2 NICs at 99% or more of the fullest\n"
          "  engine0/0: 104 B in from 1 trainer of 1 group\n"
          "          64 B  q, held by 1 trainer\n"
          "          24 B  w, held by 1 trainer\n"
          "          16 B  k, held by 1 trainer\n"
          "  policy/0: 104 B out to 1 worker of 1 group, likewise\n"
          "\n"
          "from       to            moves        size\n"
          "policy/0   engine0/0         5       104 B\n");
}

TEST_CASE("sizes are readable from bytes to EiB", "[wbctl][plan]") {
  REQUIRE(ReadableBytes(0) == "0 B");
  REQUIRE(ReadableBytes(1023) == "1023 B");
  REQUIRE(ReadableBytes(1536) == "1.5 KiB");
  REQUIRE(ReadableBytes((std::uint64_t{1} << 20) - 1) == "1.0 MiB");
  REQUIRE(ReadableBytes(std::uint64_t{70} << 30) == "70.0 GiB");
  REQUIRE(ReadableBytes(UINT64_MAX) == "16.0 EiB");
}

}  // namespace
}  // namespace wb
