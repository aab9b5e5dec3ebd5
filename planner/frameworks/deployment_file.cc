#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "planner/base/status_macros.h"
#include "planner/frameworks/deployment.h"
#include "planner/yaml/yaml_file.h"

namespace wb {
namespace {

using YAML::Node;

constexpr std::int64_t kMaxVocabDivisor = 1 << 20;
constexpr std::size_t kMaxPathBytes = 4095;  // of Linux
constexpr std::size_t kMaxListed = 1 << 20;  // integers in lists, of a file

// ---- readers of one value ----

absl::Status ReadCount(const Node& value,
                       std::int64_t least,
                       std::int64_t most,
                       std::int64_t& field) {
  return Assign(field, ReadInteger(value, static_cast<std::uint64_t>(least),
                                   static_cast<std::uint64_t>(most)));
}

/// A number of ranks, of parts, of nodes.
std::function<absl::Status(const Node&)> Size(std::int64_t& field) {
  return [&field](const Node& value) {
    return ReadCount(value, 1, static_cast<std::int64_t>(kMaxWorkers), field);
  };
}
std::function<absl::Status(const Node&)> Count(std::int64_t& field, std::int64_t most) {
  return [&field, most](const Node& value) { return ReadCount(value, 0, most, field); };
}
std::function<absl::Status(const Node&)> Flag(bool& field) {
  return [&field](const Node& value) { return Assign(field, ReadBool(value)); };
}
std::function<absl::Status(const Node&)> Rate(double& field) {
  return [&field](const Node& value) { return Assign(field, ReadDecimal(value)); };
}

absl::StatusOr<std::string> ReadPath(const Node& value) {
  WB_ASSIGN_OR_RETURN(std::string path, ReadText(value));
  if (path.size() <= kMaxPathBytes) return path;
  return absl::InvalidArgumentError(
      absl::StrCat("has ", path.size(), " bytes, want a path of at most ", kMaxPathBytes));
}

/// One word of several, each for a value of the field.
template <typename T, std::size_t kCount>
std::function<absl::Status(const Node&)> Choice(
    T& field, const std::array<std::pair<const char*, T>, kCount>& choices) {
  return [&field, choices](const Node& value) -> absl::Status {
    std::vector<std::string> names;
    names.reserve(kCount);
    for (const auto& choice : choices) names.emplace_back(choice.first);
    WB_ASSIGN_OR_RETURN(const std::string name, ReadOneOf(value, names));
    for (const auto& [known, of_field] : choices) {
      if (name == known) field = of_field;
    }
    return absl::OkStatus();
  };
}

/// Reads the lists of integers of a file. With aliases a short file can have very many of them:
/// they are counted before they are copied.
class ListReader {
 public:
  absl::Status ReadIntegers(const Node& value,
                            std::int64_t most,
                            std::vector<std::int64_t>& field) {
    if (!value.IsSequence()) return absl::InvalidArgumentError("is no list of integers");
    if (value.size() > left_) {
      return absl::InvalidArgumentError(absl::StrCat("has a list of ", value.size(),
                                                     " integers, want at most ", kMaxListed,
                                                     " in all lists of the file"));
    }
    left_ -= value.size();
    for (const Node& one : value) {
      std::int64_t number = 0;
      WB_RETURN_IF_ERROR(ReadCount(one, 0, most, number));
      field.push_back(number);
    }
    return absl::OkStatus();
  }

  /// One list for all layers, or a list of one for each.
  absl::Status ReadMap(const Node& value, std::vector<std::vector<std::int64_t>>& field) {
    if (!value.IsSequence() || value.size() == 0 || !value[0].IsSequence()) {
      return ReadIntegers(value, HfConfig::kMaxExperts, field.emplace_back());
    }
    if (value.size() > static_cast<std::size_t>(HfConfig::kMaxLayers)) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", value.size(), " lists, want one, or one a layer, of at most ",
                       HfConfig::kMaxLayers));
    }
    for (const Node& list : value) {
      WB_RETURN_IF_ERROR(ReadIntegers(list, HfConfig::kMaxExperts, field.emplace_back()));
    }
    return absl::OkStatus();
  }

 private:
  std::size_t left_ = kMaxListed;
};

absl::Status Ignore(const Node& /*value*/) {
  return absl::OkStatus();
}

// ---- keys of each framework ----

YamlReaders ReadersInto(MegatronLayout& o, ListReader& /*lists*/) {
  static constexpr std::array<std::pair<const char*, MegatronExperts>, 3> kExperts{
      {{"grouped", MegatronExperts::kGrouped},
       {"sequential", MegatronExperts::kSequential},
       {"legacy_grouped", MegatronExperts::kLegacyGrouped}}};
  PipelineSplit& split = o.pipeline;
  return {
      {"framework", Ignore},
      {"ranks", Size(o.ranks)},
      {"tp", Size(o.tp)},
      {"pp", Size(split.pp)},
      {"cp", Size(o.cp)},
      {"ep", Size(o.ep)},
      {"etp", Size(o.etp)},
      {"virtual_stages", Size(split.virtual_stages)},
      {"first_stage_layers",
       [&split](const Node& v) {
         return ReadCount(v, 1, HfConfig::kMaxLayers, split.first_stage_layers);
       }},
      {"last_stage_layers",
       [&split](const Node& v) {
         return ReadCount(v, 1, HfConfig::kMaxLayers, split.last_stage_layers);
       }},
      {"pipeline_layout", [&](const Node& v) { return Assign(split.layout, ReadText(v)); }},
      {"vocab_divisor",
       [&o](const Node& v) { return ReadCount(v, 1, kMaxVocabDivisor, o.vocab_divisor); }},
      {"experts", Choice(o.experts, kExperts)},
  };
}

YamlReaders ReadersInto(FsdpLayout& o, ListReader& /*lists*/) {
  return {{"framework", Ignore},
          {"shard", Size(o.shard)},
          {"replicate", Size(o.replicate)},
          {"ep", Size(o.ep)}};
}

YamlReaders ReadersInto(SglangLayout& o, ListReader& lists) {
  static constexpr std::array<std::pair<const char*, std::optional<bool>>, 2> kShared{
      {{"cut", false}, {"whole", true}}};
  return {
      {"framework", Ignore},
      {"tp", Size(o.tp)},
      {"ep", Size(o.ep)},
      {"dp", Size(o.dp)},
      {"dp_lm_head", Flag(o.dp_lm_head)},
      {"moe_dense_tp",
       [&o](const Node& v) {
         const absl::StatusOr<std::uint64_t> read = ReadInteger(v, 1, 1);
         o.dense_tp_one = read.ok();
         return read.status();
       }},
      {"shared_experts", Choice(o.shared_experts_whole, kShared)},
      {"redundant_experts", Count(o.redundant_experts, HfConfig::kMaxExperts)},
      {"physical_to_logical",
       [&](const Node& v) { return lists.ReadMap(v, o.physical_to_logical); }},
  };
}

YamlReaders ReadersInto(VllmLayout& o, ListReader& lists) {
  return {{"framework", Ignore},
          {"tp", Size(o.tp)},
          {"pp", Size(o.pp)},
          {"dp", Size(o.dp)},
          {"expert_parallel", Flag(o.ep)},
          {"pp_layers", [&](const Node& v) {
             return lists.ReadIntegers(v, HfConfig::kMaxLayers, o.pp_layers);
           }}};
}

// ---- the file ----

class DeploymentReader {
 public:
  explicit DeploymentReader(const std::string& file) : file_(file) {}

  std::variant<Deployment, Refusals> Read(std::string_view yaml) {
    file_.Read(yaml, [&](const Node& root) { ReadRoot(root); });
    if (file_.reasons().empty()) return std::move(deployment_);
    Refusals refusals;
    for (const std::string& reason : file_.reasons()) {
      refusals.push_back({"deployment", "", "", reason});
    }
    return refusals;
  }

 private:
  using Found = std::set<std::string>;

  void Require(const Node& map,
               const std::string& path,
               const Found& found,
               const std::vector<std::string>& keys) {
    if (!map.IsMap()) return;  // refused already
    for (const std::string& key : keys) {
      if (found.count(key) > 0) continue;
      file_.Refuse(map, path.empty() ? key : absl::StrCat(path, ".", key), "is missing");
    }
  }

  void ReadRoot(const Node& root) {
    static constexpr std::array<std::pair<const char*, Dtype>, 3> kDtypes{
        {{"BF16", Dtype::kBf16}, {"FP16", Dtype::kFp16}, {"FP32", Dtype::kFp32}}};
    static constexpr std::array<std::pair<const char*, bool>, 2> kPlacements{
        {{"disjoint", false}, {"colocated", true}}};
    Deployment& o = deployment_;
    const Found found =
        file_.Walk(root, "",
                   {{"job", [&](const Node& v) { return Assign(o.job, ReadName(v)); }},
                    {"model.config", [&](const Node& v) { return Assign(o.config, ReadPath(v)); }},
                    {"model.dtype", Choice(o.dtype, kDtypes)},
                    {"trainer", [&](const Node& v) { return ReadTrainer(v); }},
                    {"rollouts", [&](const Node& v) { return ReadRollouts(v); }},
                    {"cluster.nodes", Size(o.cluster.nodes)},
                    {"cluster.gpus_per_node", Size(o.cluster.gpus_per_node)},
                    {"cluster.placement", Choice(o.cluster.colocated, kPlacements)},
                    {"cluster.rail_gb_per_s", Rate(o.cluster.rail_gb_per_s)},
                    {"cluster.nvlink_gb_per_s", Rate(o.cluster.nvlink_gb_per_s)},
                    {"cluster.pcie_gb_per_s", Rate(o.cluster.pcie_gb_per_s)}},
                   "this file");
    Require(root, "", found,
            {"job", "model.config", "model.dtype", "trainer", "rollouts", "cluster.nodes",
             "cluster.gpus_per_node", "cluster.placement", "cluster.rail_gb_per_s",
             "cluster.nvlink_gb_per_s", "cluster.pcie_gb_per_s"});
  }

  // Which keys the map has depends on its framework; "" where that is refused.
  std::string FrameworkOf(const Node& map,
                          const std::string& path,
                          const std::vector<std::string>& choices) {
    const std::string key = absl::StrCat(path, ".framework");
    if (!map.IsMap()) {
      file_.Refuse(map, path, "is no map of keys to values");
      return "";
    }
    const Node name = map["framework"];
    if (!name.IsDefined()) {
      file_.Refuse(map, key, absl::StrCat("is missing, want ", absl::StrJoin(choices, ", ")));
      return "";
    }
    const absl::StatusOr<std::string> read = ReadOneOf(name, choices);
    if (!read.ok()) file_.Refuse(name, key, std::string(read.status().message()));
    return read.value_or("");
  }

  // `readers` are of keys that all frameworks have there.
  template <typename Framework>
  Found ReadFramework(const Node& map,
                      const std::string& path,
                      YamlReaders readers,
                      Framework& framework) {
    readers.merge(ReadersInto(framework, lists_));
    return file_.Walk(map, path, readers, map["framework"].Scalar());
  }

  absl::Status ReadTrainer(const Node& map) {
    const std::string framework = FrameworkOf(map, "trainer", {"megatron", "fsdp"});
    if (framework == "megatron") {
      MegatronLayout megatron;
      const Found found = ReadFramework(map, "trainer", {}, megatron);
      Require(map, "trainer", found, {"ranks", "tp", "pp"});
      deployment_.says_etp = found.count("etp") > 0;
      deployment_.trainer = std::move(megatron);
    } else if (framework == "fsdp") {
      FsdpLayout fsdp;
      Require(map, "trainer", ReadFramework(map, "trainer", {}, fsdp), {"shard"});
      deployment_.trainer = fsdp;
    }
    return absl::OkStatus();  // reasons are told with their own paths
  }

  absl::Status ReadRollouts(const Node& list) {
    if (!list.IsSequence() || list.size() == 0) {
      return absl::InvalidArgumentError("is no list of engines, want at least one");
    }
    if (list.size() > kMaxWorkers) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", list.size(), " sets of engines, want at most ", kMaxWorkers));
    }
    for (std::size_t i = 0; i < list.size() && !file_.full(); ++i) {
      ReadEngines(list[i], absl::StrCat("rollouts[", i, "]"));
    }
    return absl::OkStatus();
  }

  void ReadEngines(const Node& map, const std::string& path) {
    EngineSet set;
    const std::string framework = FrameworkOf(map, path, {"sglang", "vllm"});
    const YamlReaders readers{{"engines", Size(set.engines)}};
    if (framework == "sglang") {
      SglangLayout sglang;
      Require(map, path, ReadFramework(map, path, readers, sglang), {"engines", "tp"});
      set.layout = std::move(sglang);
    } else if (framework == "vllm") {
      VllmLayout vllm;
      Require(map, path, ReadFramework(map, path, readers, vllm), {"engines", "tp"});
      set.layout = std::move(vllm);
    }
    deployment_.rollouts.push_back(std::move(set));
  }

  YamlFile file_;
  ListReader lists_;
  Deployment deployment_;
};

}  // namespace

std::variant<Deployment, Refusals> ParseDeployment(std::string_view yaml, const std::string& file) {
  return DeploymentReader(file).Read(yaml);
}

}  // namespace wb
