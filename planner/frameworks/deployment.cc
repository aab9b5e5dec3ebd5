#include "planner/frameworks/deployment.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/base/divide_up.h"
#include "planner/frameworks/model_tensors.h"

namespace wb {
namespace {

/// Gives a deployment's layouts their groups and nodes. Used once.
class DeploymentJob {
 public:
  DeploymentJob(const Deployment& deployment, const ModelTensors& model)
      : deployment_(deployment), model_(model) {}

  std::variant<Job, Refusals> Make() && {
    CheckGroups();
    if (refusals_.empty()) CheckWorkers();  // all cheap: nothing is laid out yet
    if (refusals_.empty()) LayOutAll();
    if (!refusals_.empty()) return std::move(refusals_);
    std::sort(job_.layouts.begin(), job_.layouts.end(),
              [](const Layout& a, const Layout& b) { return a.name < b.name; });
    job_.name = deployment_.job;
    job_.tensors = model_.tensors();
    return std::move(job_);
  }

 private:
  void Refuse(const std::string& kind, const std::string& text) {
    refusals_.push_back({kind, "", "", text});
  }

  // Reasons of a group's framework.
  void Refuse(const std::string& who, const Refusals& refusals) {
    for (const Refusal& refusal : refusals) {
      Refuse(refusal.kind, absl::StrCat(who, ": ", refusal.text));
    }
  }

  static std::string NameOf(std::size_t set) { return absl::StrCat("rollouts[", set, "]"); }

  void CheckGroups() {
    const auto check = [&](const auto& framework) {
      return CheckSizes(model_.config(), framework);
    };
    if (!deployment_.says_etp && model_.config().experts > 0) {
      Refuse("size", "trainer: etp is missing, want it said: Megatron's own default is tp");
    }
    Refuse("trainer", std::visit(check, deployment_.trainer));
    for (std::size_t i = 0; i < deployment_.rollouts.size(); ++i) {
      Refuse(NameOf(i), std::visit(check, deployment_.rollouts[i].layout));
    }
  }

  // Every group has at most kMaxWorkers ranks, and there are as many sets of engines, and engines
  // in each.
  void CheckWorkers() {
    const auto ranks = [](const auto& framework) { return RanksOf(framework); };
    const std::int64_t trainers = std::visit(ranks, deployment_.trainer);
    std::int64_t rollouts = 0;
    for (const EngineSet& set : deployment_.rollouts) {
      rollouts += std::visit(ranks, set.layout) * set.engines;
    }
    if (trainers + rollouts > static_cast<std::int64_t>(kMaxWorkers)) {
      Refuse("limit", absl::StrCat("the deployment has ", trainers + rollouts,
                                   " workers, want at most ", kMaxWorkers));
      return;
    }
    const Cluster& cluster = deployment_.cluster;
    const std::int64_t trainer_nodes = DivideUp(trainers, cluster.gpus_per_node);
    const std::int64_t rollout_nodes = DivideUp(rollouts, cluster.gpus_per_node);
    const std::int64_t nodes =
        cluster.colocated ? std::max(trainer_nodes, rollout_nodes) : trainer_nodes + rollout_nodes;
    if (cluster.nodes >= nodes) return;
    Refuse("size", absl::StrCat("cluster: nodes is ", cluster.nodes, ", want at least ", nodes,
                                ": the trainer takes ", trainer_nodes, ", and engines ",
                                cluster.colocated ? "share them from the first" : "follow"));
  }

  template <typename Framework>
  std::optional<RankLayouts> LayOutRanks(const Framework& framework, const std::string& who) {
    std::variant<RankLayouts, Refusals> laid =
        std::visit([&](const auto& known) { return LayOut(model_, known); }, framework);
    if (const auto* refusals = std::get_if<Refusals>(&laid)) {
      Refuse(who, *refusals);
      return std::nullopt;
    }
    auto& ranks = std::get<RankLayouts>(laid);
    std::set<const Piece*> lists;
    for (const Layout& rank : ranks) {
      if (lists.insert(rank.pieces.data()).second) pieces_ += rank.pieces.size();
    }
    if (pieces_ <= kMaxPieces) return std::move(ranks);
    Refuse("the deployment", TooManyPieces());
    return std::nullopt;
  }

  void LayOutAll() {
    const auto gpus = static_cast<std::size_t>(deployment_.cluster.gpus_per_node);
    const std::optional<RankLayouts> trainer = LayOutRanks(deployment_.trainer, "trainer");
    if (!trainer.has_value()) return;
    PlaceGroup(*trainer, "policy", 0);
    std::size_t gpu = deployment_.cluster.colocated ? 0 : DivideUp(trainer->size(), gpus) * gpus;
    std::size_t number = 0;
    for (std::size_t i = 0; i < deployment_.rollouts.size(); ++i) {
      const EngineSet& set = deployment_.rollouts[i];
      const std::optional<RankLayouts> engine = LayOutRanks(set.layout, NameOf(i));
      if (!engine.has_value()) return;
      for (std::int64_t n = 0; n < set.engines; ++n) {
        PlaceGroup(*engine, absl::StrCat("engine", number++), gpu);
        gpu += engine->size();
      }
    }
  }

  void PlaceGroup(const RankLayouts& ranks, const std::string& group, std::size_t first_gpu) {
    const auto gpus = static_cast<std::size_t>(deployment_.cluster.gpus_per_node);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      Layout& layout = job_.layouts.emplace_back(ranks[r]);
      layout.name.group = group;
      layout.node = absl::StrCat("node", (first_gpu + r) / gpus);
    }
  }

  const Deployment& deployment_;
  const ModelTensors& model_;
  Job job_;
  std::size_t pieces_ = 0;  // of layouts that differ
  Refusals refusals_;
};

}  // namespace

std::variant<Job, Refusals> LayOut(const Deployment& deployment,
                                   const HfConfig& config,
                                   std::int64_t layers) {
  const std::variant<ModelTensors, Refusals> model =
      ModelTensors::Create(config, deployment.dtype, layers);
  if (const auto* refusals = std::get_if<Refusals>(&model)) return *refusals;
  return DeploymentJob(deployment, std::get<ModelTensors>(model)).Make();
}

}  // namespace wb
