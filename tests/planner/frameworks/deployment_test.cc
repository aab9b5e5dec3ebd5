#include "planner/frameworks/deployment.h"

#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_replace.h"

#include "planner/solve/planner.h"
#include "proto/convert.h"
#include "tests/planner/frameworks/models.h"
#include "tests/support/catch.h"
#include "tests/support/whole_file.h"

namespace wb::test {
namespace {

using Texts = std::vector<std::string>;
using Replacements = std::vector<std::pair<absl::string_view, absl::string_view>>;

constexpr const char* kSmall = R"(job: small
model:
  config: small.json
  dtype: BF16
trainer:
  framework: megatron
  ranks: 4
  tp: 2
  pp: 1
  ep: 2
  etp: 1
rollouts:
  - framework: sglang
    engines: 2
    tp: 2
    ep: 2
  - framework: vllm
    engines: 1
    tp: 2
    expert_parallel: true
cluster:
  nodes: 4
  gpus_per_node: 4
  placement: disjoint
  rail_gb_per_s: 50
  nvlink_gb_per_s: 450
  pcie_gb_per_s: 55.5
)";

std::string SmallWith(const Replacements& replacements) {
  return absl::StrReplaceAll(kSmall, replacements);
}

Deployment MustParse(const std::string& yaml) {
  std::variant<Deployment, Refusals> parsed = ParseDeployment(yaml, "d.yaml");
  if (const auto* refusals = std::get_if<Refusals>(&parsed)) FAIL(refusals->front().text);
  return std::get<Deployment>(std::move(parsed));
}

HfConfig MustConfig(const nlohmann::json& config) {
  return MustModel(config, 1).config();
}

Job MustJob(const std::string& yaml, const nlohmann::json& config, std::int64_t layers) {
  std::variant<Job, Refusals> job = LayOut(MustParse(yaml), MustConfig(config), layers);
  if (const auto* refusals = std::get_if<Refusals>(&job)) FAIL(refusals->front().text);
  return std::get<Job>(std::move(job));
}

Texts RefusedFile(const std::string& yaml) {
  const std::variant<Deployment, Refusals> parsed = ParseDeployment(yaml, "d.yaml");
  if (!std::holds_alternative<Refusals>(parsed)) return {};
  for (const Refusal& refusal : std::get<Refusals>(parsed)) CHECK(refusal.kind == "deployment");
  return TextsOf(std::get<Refusals>(parsed));
}

Texts RefusedJob(const std::string& yaml, const nlohmann::json& config) {
  const std::variant<Job, Refusals> job = LayOut(MustParse(yaml), MustConfig(config), 64);
  if (!std::holds_alternative<Refusals>(job)) return {};
  return TextsOf(std::get<Refusals>(job));
}

std::map<std::string, std::string> NodesOf(const Job& job) {
  std::map<std::string, std::string> nodes;
  for (const Layout& layout : job.layouts) nodes[layout.name.ToString()] = layout.node;
  return nodes;
}

TEST_CASE("engines take the nodes after the trainer's, or begin on its first", "[frameworks]") {
  const std::map<std::string, std::string> apart = NodesOf(MustJob(kSmall, SmallMoe(), 1));
  CHECK(apart.size() == 10);
  CHECK(apart.at("policy/3") == "node0");
  CHECK(apart.at("engine0/0") == "node1");
  CHECK(apart.at("engine1/1") == "node1");
  CHECK(apart.at("engine2/0") == "node2");
  const std::string colocated = SmallWith({{"disjoint", "colocated"}, {"nodes: 4", "nodes: 2"}});
  const std::map<std::string, std::string> together = NodesOf(MustJob(colocated, SmallMoe(), 1));
  CHECK(together.at("policy/0") == "node0");
  CHECK(together.at("engine0/0") == "node0");
  CHECK(together.at("engine2/1") == "node1");
}

TEST_CASE("a deployment's job is in the order that the door gives, and is planned",
          "[frameworks]") {
  const std::string eleven = SmallWith({{"engines: 2", "engines: 11"}, {"nodes: 4", "nodes: 40"}});
  const Job job = MustJob(eleven, SmallMoe(), 2);
  CHECK(job.layouts[2].name.ToString() == "engine1/0");
  CHECK(job.layouts[4].name.ToString() == "engine10/0");
  RequireArrives(job);
}

TEST_CASE("what a deployment's workers register is accepted by the door as it is", "[frameworks]") {
  const Job job = MustJob(kSmall, SmallDeepseek(), 2);
  for (const Layout& layout : job.layouts) {
    const Registration made = RegistrationOf(job, layout);
    const std::variant<Registration, Refusals> passed = RegistrationFromProto(ToProto(made));
    REQUIRE(std::holds_alternative<Registration>(passed));
    CHECK(std::get<Registration>(passed) == made);
  }
}

TEST_CASE("alike engines share one description, and a big cluster's job is small", "[frameworks]") {
  const std::string folder = std::string(WB_EXAMPLES) + "/";
  const std::string yaml =
      absl::StrReplaceAll(ReadWholeFile(folder + "kimi-k2.yaml"), {{"ranks: 256", "ranks: 4096"},
                                                                   {"engines: 8", "engines: 128"},
                                                                   {"nodes: 64", "nodes: 1024"}});
  const Job job = MustJob(yaml, ExampleConfig("kimi-k2"), 64);
  CHECK(job.layouts.size() == 8192);
  std::set<const Piece*> lists;
  std::size_t pieces = 0;
  for (const Layout& layout : job.layouts) {
    if (lists.insert(layout.pieces.data()).second) pieces += layout.pieces.size();
  }
  CHECK(lists.size() == 256 + 32);
  CHECK(pieces < 250'000);
}

TEST_CASE("the examples are deployments of their configs", "[frameworks]") {
  const std::string name = GENERATE("moonlight", "qwen3-30b", "qwen3-235b", "kimi-k2",
                                    "qwen3-0.6b-fsdp", "qwen3-30b-colocated");
  INFO(name);
  const std::string folder = std::string(WB_EXAMPLES) + "/";
  const Deployment deployment = MustParse(ReadWholeFile(folder + name + ".yaml"));
  CHECK(deployment.job == name);
  const std::variant<HfConfig, Refusals> config =
      ParseHfConfig(ReadWholeFile(folder + deployment.config), deployment.config);
  REQUIRE(std::holds_alternative<HfConfig>(config));
  const std::variant<Job, Refusals> job = LayOut(deployment, std::get<HfConfig>(config), 2);
  REQUIRE(std::holds_alternative<Job>(job));
  const std::variant<Plan, Refusals> plan = Solve(std::get<Job>(job));
  REQUIRE(std::holds_alternative<Plan>(plan));
  CHECK(std::get<Plan>(plan).unused.empty());
}

TEST_CASE("every key is read", "[frameworks]") {
  const Deployment deployment = MustParse(R"(
job: all
model: {config: c.json, dtype: FP32}
trainer: {framework: megatron, ranks: 64, tp: 2, pp: 2, cp: 4, ep: 8, etp: 2, virtual_stages: 3,
          first_stage_layers: 5, last_stage_layers: 6, vocab_divisor: 256, experts: sequential,
          pipeline_layout: "Et|tL"}
rollouts:
  - {framework: sglang, engines: 3, tp: 8, ep: 4, dp: 2, dp_lm_head: true, moe_dense_tp: 1,
     shared_experts: whole, redundant_experts: 8, physical_to_logical: [[0, 1], [1, 0]]}
  - {framework: sglang, engines: 1, tp: 1, physical_to_logical: [0, 1]}
  - {framework: vllm, engines: 2, tp: 4, pp: 2, dp: 3, expert_parallel: true, pp_layers: [1, 2]}
cluster: {nodes: 7, gpus_per_node: 8, placement: colocated, rail_gb_per_s: 12.5,
          nvlink_gb_per_s: 450, pcie_gb_per_s: 55})");
  CHECK(deployment.dtype == Dtype::kFp32);
  const auto& megatron = std::get<MegatronLayout>(deployment.trainer);
  CHECK(megatron.ranks == 64);
  CHECK(megatron.tp == 2);
  CHECK(megatron.cp == 4);
  CHECK(megatron.ep == 8);
  CHECK(megatron.etp == 2);
  CHECK(megatron.vocab_divisor == 256);
  CHECK(megatron.experts == MegatronExperts::kSequential);
  CHECK(megatron.pipeline.pp == 2);
  CHECK(megatron.pipeline.virtual_stages == 3);
  CHECK(megatron.pipeline.first_stage_layers == 5);
  CHECK(megatron.pipeline.last_stage_layers == 6);
  CHECK(megatron.pipeline.layout == "Et|tL");
  const auto& sglang = std::get<SglangLayout>(deployment.rollouts[0].layout);
  CHECK(deployment.rollouts[0].engines == 3);
  CHECK(sglang.tp == 8);
  CHECK(sglang.ep == 4);
  CHECK(sglang.dp == 2);
  CHECK(sglang.dp_lm_head);
  CHECK(sglang.dense_tp_one);
  CHECK(sglang.shared_experts_whole);
  CHECK(sglang.redundant_experts == 8);
  CHECK(sglang.physical_to_logical == std::vector<std::vector<std::int64_t>>{{0, 1}, {1, 0}});
  CHECK(std::get<SglangLayout>(deployment.rollouts[1].layout).physical_to_logical ==
        std::vector<std::vector<std::int64_t>>{{0, 1}});
  const auto& vllm = std::get<VllmLayout>(deployment.rollouts[2].layout);
  CHECK(vllm.tp == 4);
  CHECK(vllm.pp == 2);
  CHECK(vllm.dp == 3);
  CHECK(vllm.ep);
  CHECK(vllm.pp_layers == std::vector<std::int64_t>{1, 2});
  CHECK(deployment.cluster.nodes == 7);
  CHECK(deployment.cluster.gpus_per_node == 8);
  CHECK(deployment.cluster.colocated);
  CHECK(deployment.cluster.rail_gb_per_s == 12.5);
  CHECK(deployment.cluster.nvlink_gb_per_s == 450);
  CHECK(deployment.cluster.pcie_gb_per_s == 55);
}

TEST_CASE("keys that are unknown, missing or of another framework are refused by line and path",
          "[frameworks]") {
  CHECK(RefusedFile(SmallWith({{"  tp: 2\n  pp", "  tensor_parallel: 2\n  pp"}})) ==
        Texts{"d.yaml:8: trainer.tensor_parallel: is no key of megatron",
              "d.yaml:6: trainer.tp: is missing"});
  CHECK(RefusedFile(SmallWith({{"  ranks: 4", "  shard: 4"}})).front() ==
        "d.yaml:7: trainer.shard: is no key of megatron");
  CHECK(RefusedFile(SmallWith({{"framework: vllm", "framework: sglang"}})) ==
        Texts{"d.yaml:20: rollouts[1].expert_parallel: is no key of sglang"});
  CHECK(RefusedFile(SmallWith({{"framework: vllm", "framework: trt"}})) ==
        Texts{"d.yaml:17: rollouts[1].framework: 'trt', want sglang, vllm"});
  CHECK(RefusedFile(SmallWith({{"  framework: megatron\n", ""}})) ==
        Texts{"d.yaml:6: trainer.framework: is missing, want megatron, fsdp"});
  CHECK(RefusedFile(SmallWith({{"job: small\n", ""}, {"  nodes: 4\n", ""}})) ==
        Texts{"d.yaml:1: job: is missing", "d.yaml:1: cluster.nodes: is missing"});
  CHECK(RefusedFile(SmallWith({{"  dtype: BF16", "  dtype: BF16\n  dtype: FP32"}})) ==
        Texts{"d.yaml:5: model.dtype: is there twice"});
}

TEST_CASE("values that are none are refused with what was wanted", "[frameworks]") {
  CHECK(RefusedFile(SmallWith({{"ranks: 4", "ranks: 0"}})) ==
        Texts{"d.yaml:7: trainer.ranks: '0', want an integer from 1 to 65536"});
  CHECK(RefusedFile(SmallWith({{"ranks: 4", "ranks: 65537"}})).size() == 1);
  CHECK(RefusedFile(SmallWith({{"ranks: 4", "ranks: '4'"}})).size() == 1);
  CHECK(RefusedFile(SmallWith({{"rail_gb_per_s: 50", "rail_gb_per_s: -1"}})) ==
        Texts{"d.yaml:25: cluster.rail_gb_per_s: '-1', want a number from 0.001 to "
              "1000000, as 50 or 12.5"});
  CHECK(RefusedFile(SmallWith({{"rail_gb_per_s: 50", "rail_gb_per_s: 50 GB/s"}})).size() == 1);
  CHECK(RefusedFile(SmallWith({{"dtype: BF16", "dtype: FP8_E4M3"}})) ==
        Texts{"d.yaml:4: model.dtype: 'FP8_E4M3', want BF16, FP16, FP32"});
  CHECK(RefusedFile(SmallWith({{"job: small", "job: my job"}})).size() == 1);
  CHECK(RefusedFile(SmallWith({{"disjoint", "apart"}})) ==
        Texts{"d.yaml:24: cluster.placement: 'apart', want disjoint, colocated"});
  for (const std::string& rate : {"0." + std::string(320, '0') + "1", std::string("1000001")}) {
    CHECK(RefusedFile(SmallWith({{"gb_per_s: 50", "gb_per_s: " + rate}})).size() == 1);
  }
  CHECK(RefusedFile("job: [").size() == 1);
  CHECK(RefusedFile("- 1").front() == "d.yaml:1: the file: is no map of keys to values");
  CHECK(RefusedFile(std::string(kSmall) + "---\n").size() == 1);
}

TEST_CASE("a number is decimal and plain: without quotes, tag or zeros before it", "[frameworks]") {
  CHECK(RefusedFile(SmallWith({{"ranks: 4", "ranks: \"4\""}})) ==
        Texts{"d.yaml:7: trainer.ranks: '4', want an integer from 1 to 65536, without quotes"});
  CHECK(RefusedFile(SmallWith({{"ranks: 4", "ranks: !!str 4"}})) ==
        Texts{"d.yaml:7: trainer.ranks: '4', want an integer from 1 to 65536, without a tag"});
  CHECK(RefusedFile(SmallWith({{"ranks: 4", "ranks: !foo 4"}})).size() == 1);
  CHECK(RefusedFile(SmallWith({{"ranks: 4", "ranks: 04"}})) ==
        Texts{"d.yaml:7: trainer.ranks: '04', want an integer from 1 to 65536"});
  CHECK(
      RefusedFile(SmallWith({{"expert_parallel: true", "expert_parallel: 'true'"}})) ==
      Texts{"d.yaml:20: rollouts[1].expert_parallel: 'true', want true or false, without quotes"});
}

TEST_CASE("a key with a dot is no key, not another way to write a section", "[frameworks]") {
  CHECK(RefusedFile("model.config: other.json\n" + std::string(kSmall)) ==
        Texts{"d.yaml:1: model.config: is no key of this file"});
}

TEST_CASE("what a file says is shown as one short line", "[frameworks]") {
  CHECK(RefusedFile(SmallWith({{"job: small", "job: small\n\"a\\e[31m\\nb\": 1"}})) ==
        Texts{"d.yaml:2: a?[31m; b: is no key of this file"});
  const Texts longer = RefusedFile(SmallWith({{"job: small", std::string(1000, 'j') + ": 1"}}));
  CHECK(longer.front() == "d.yaml:1: " + std::string(80, 'j') + "...: is no key of this file");
  CHECK(RefusedFile(SmallWith({{"small.json", "\"small.json\\0x\""}})) ==
        Texts{"d.yaml:3: model.config: 'small.json?x', want printable characters"});
  CHECK(RefusedFile(SmallWith({{"small.json", std::string(10'000, 'c')}})) ==
        Texts{"d.yaml:3: model.config: has 10000 bytes, want a path of at most 4095"});
  CHECK(RefusedFile(std::string("job: j\n\x1b")) ==
        Texts{"d.yaml:2: is no YAML: a control character"});
}

TEST_CASE("a file that would take much memory is refused before it does", "[frameworks]") {
  CHECK(RefusedFile(std::string(1 << 20, '#') + "\n") ==
        Texts{"d.yaml: has 1048577 bytes, want at most 1048576"});
  const auto with_map = [](const std::string& map) {
    return SmallWith({{"    ep: 2\n  - framework: vllm",
                       "    ep: 2\n    physical_to_logical: " + map + "\n  - framework: vllm"}});
  };
  const auto repeated = [](const std::string& first, const char* again, int times) {
    std::string list = "[" + first;
    for (int i = 1; i < times; ++i) list += again;
    return list + "]";
  };
  // 4000 lists of 1000 integers.
  const std::string thousand = repeated("0", ", 0", 1000);
  CHECK(RefusedFile(with_map(repeated("&a " + thousand, ", *a", 4000))) ==
        Texts{"d.yaml:17: rollouts[0].physical_to_logical: has a list of 1000 integers, want at "
              "most 1048576 in all lists of the file"});
  CHECK(RefusedFile(with_map(repeated("&a [0]", ", *a", 5000))) ==
        Texts{"d.yaml:17: rollouts[0].physical_to_logical: has 5000 lists, want one, or one a "
              "layer, of at most 4096"});
  const std::string engines = repeated("&a {framework: vllm, engines: 1, tp: 1}", ",*a", 70'000);
  const std::string kept = std::string(kSmall).substr(0, std::string(kSmall).find("rollouts:"));
  CHECK(RefusedFile(kept + "rollouts: " + engines + "\n").front() ==
        "d.yaml:12: rollouts: has 70000 sets of engines, want at most 65536");
}

TEST_CASE("of very many reasons the first are told", "[frameworks]") {
  std::string keys;
  for (int i = 0; i < 1000; ++i) keys += "x" + std::to_string(i) + ": 1\n";
  const Texts texts = RefusedFile(keys + kSmall);
  REQUIRE(texts.size() == 100);
  CHECK(texts[98] == "d.yaml:99: x98: is no key of this file");
  CHECK(texts[99] == "d.yaml: has more reasons to be refused than these");
}

TEST_CASE("an empty list of rollouts, or a trainer that is no map, is refused", "[frameworks]") {
  const std::string head = "job: j\nmodel: {config: c, dtype: BF16}\n";
  const std::string tail =
      "cluster: {nodes: 1, gpus_per_node: 1, placement: disjoint, rail_gb_per_s: 1,"
      " nvlink_gb_per_s: 1, pcie_gb_per_s: 1}\n";
  CHECK(RefusedFile(head + "trainer: megatron\nrollouts: []\n" + tail) ==
        Texts{"d.yaml:3: trainer: is no map of keys to values",
              "d.yaml:4: rollouts: is no list of engines, want at least one"});
}

TEST_CASE("sizes that do not fit are refused with whose they are", "[frameworks]") {
  CHECK(RefusedJob(SmallWith({{"ep: 2\n  etp: 1", "ep: 4"}}), SmallMoe()) ==
        Texts{"trainer: etp is missing, want it said: Megatron's own default is tp"});
  CHECK(RefusedJob(SmallWith({{"tp: 2\n    ep", "tp: 16\n    ep"}}), SmallMoe()).front() ==
        "rollouts[0]: tp is 16, which gives 4 rows per rank where a head has 8; want one that "
        "divides num_attention_heads (8)");
  CHECK(RefusedJob(SmallWith({{"nodes: 4", "nodes: 2"}}), SmallMoe()) ==
        Texts{"cluster: nodes is 2, want at least 3: the trainer takes 1, and engines follow"});
  CHECK(RefusedJob(SmallWith({{"engines: 1", "engines: 40000"}}), SmallMoe()) ==
        Texts{"the deployment has 80008 workers, want at most 65536"});
}

TEST_CASE("keys that say something about what the model lacks are refused", "[frameworks]") {
  const auto refused = [](const std::string& key, const nlohmann::json& config) {
    return RefusedJob(SmallWith({{"  ep: 2\n  etp: 1\n", ""},
                                 {"    tp: 2\n    ep: 2\n", "    tp: 2\n    " + key + "\n"},
                                 {"    expert_parallel: true\n", ""}}),
                      config);
  };
  CHECK(refused("physical_to_logical: [0]", SmallQwen3()) ==
        Texts{"rollouts[0]: the number of lists of physical_to_logical is 1, want 0: the model has "
              "no experts"});
  CHECK(refused("shared_experts: cut", SmallQwen3()) ==
        Texts{"rollouts[0]: shared_experts is cut, want it left out: the model has none"});
  CHECK(refused("moe_dense_tp: 1", SmallQwen3()) ==
        Texts{"rollouts[0]: moe_dense_tp is 1, want it left out: the model has no experts"});
  CHECK(RefusedFile(SmallWith({{"  pp: 1\n", "  pp: 1\n  first_stage_layers: 0\n"}})) ==
        Texts{"d.yaml:10: trainer.first_stage_layers: '0', want an integer from 1 to 4096"});
}

TEST_CASE("ranks with too many pieces are refused with what to change", "[frameworks]") {
  const std::vector<Piece> thousand(1000, MustJob(kSmall, SmallMoe(), 1).layouts[0].pieces[0]);
  Layout layout;
  layout.pieces = thousand;
  int made = 0;
  std::vector<int> keys(10'000);
  std::iota(keys.begin(), keys.end(), 0);
  const std::variant<RankLayouts, Refusals> ranks = MakeRanks(keys, [&](int /*key*/) {
    ++made;
    return layout;
  });
  CHECK(made == 4001);
  CHECK(TextsOf(std::get<Refusals>(ranks)) ==
        Texts{"ranks that differ have more than 4000000 pieces in all, want at most so many: fewer "
              "ranks that each hold a part of every tensor (with FSDP a smaller shard, or ep above "
              "1, which stacks experts), or --layers"});
}

TEST_CASE("too few nodes are refused before anything is laid out", "[frameworks]") {
  nlohmann::json config = SmallMoe();
  config.update({{"num_experts", 16384}, {"num_hidden_layers", 64}});
  const std::string yaml =
      SmallWith({{"engines: 1\n    tp: 2", "engines: 1\n    tp: 1\n    dp: 65000"},
                 {"nodes: 4", "nodes: 1"}});
  CHECK(RefusedJob(yaml, config) ==
        Texts{"cluster: nodes is 1, want at least 16252: the trainer takes 1, and engines follow"});
}

TEST_CASE("groups of more ranks than there may be workers are refused before they are made",
          "[frameworks]") {
  CHECK(RefusedJob(SmallWith({{"engines: 1\n    tp: 2",
                               "engines: 1\n    tp: 1\n    dp: 65536\n"
                               "    pp: 2"}}),
                   SmallMoe()) == Texts{"rollouts[1]: dp x pp x tp is 131072, want at most 65536"});
  CHECK(Reasons(MustModel(SmallQwen3()), FsdpLayout{.shard = 65'536, .replicate = 65'536}) ==
        Texts{"shard x replicate is 4294967296, want at most 65536"});
}

}  // namespace
}  // namespace wb::test
