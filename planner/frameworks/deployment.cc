#include "planner/frameworks/deployment.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
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
    const std::optional<RankLayouts> trainer = LayOutTrainer();
    std::vector<RankLayouts> engines;
    for (std::size_t i = 0; i < deployment_.rollouts.size(); ++i) {
      std::optional<RankLayouts> engine = LayOutEngine(i);
      if (engine.has_value()) engines.push_back(*std::move(engine));
    }
    if (!refusals_.empty()) return std::move(refusals_);
    CheckWorkers(*trainer, engines);
    if (!refusals_.empty()) return std::move(refusals_);
    Place(*trainer, engines);
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

  // The ranks of a framework's layout; its reasons are those of `who`.
  template <typename Frameworks>
  std::optional<RankLayouts> LayOutRanks(const Frameworks& frameworks, const std::string& who) {
    std::variant<RankLayouts, Refusals> laid =
        std::visit([&](const auto& framework) { return LayOut(model_, framework); }, frameworks);
    if (auto* ranks = std::get_if<RankLayouts>(&laid)) return std::move(*ranks);
    for (const Refusal& refusal : std::get<Refusals>(laid)) {
      Refuse(refusal.kind, absl::StrCat(who, ": ", refusal.text));
    }
    return std::nullopt;
  }

  std::optional<RankLayouts> LayOutTrainer() {
    if (!deployment_.says_etp && model_.config().experts > 0) {
      Refuse("size", "trainer: etp is missing, want it said: Megatron's own default is tp");
    }
    return LayOutRanks(deployment_.trainer, "trainer");
  }

  std::optional<RankLayouts> LayOutEngine(std::size_t i) {
    return LayOutRanks(deployment_.rollouts[i].layout, absl::StrCat("rollouts[", i, "]"));
  }

  // `engines` has one for each of the deployment's sets.
  void CheckWorkers(const RankLayouts& trainer, const std::vector<RankLayouts>& engines) {
    std::size_t workers = trainer.size();
    for (std::size_t i = 0; i < engines.size(); ++i) {
      // Each factor is at most kMaxWorkers.
      workers += engines[i].size() * static_cast<std::size_t>(deployment_.rollouts[i].engines);
    }
    if (workers > kMaxWorkers) {
      Refuse("limit",
             absl::StrCat("the deployment has ", workers, " workers, want at most ", kMaxWorkers));
    }
  }

  void Place(const RankLayouts& trainer, const std::vector<RankLayouts>& engines) {
    const auto gpus = static_cast<std::size_t>(deployment_.cluster.gpus_per_node);
    const std::size_t trainer_nodes = DivideUp(trainer.size(), gpus);
    PlaceGroup(trainer, "policy", 0);
    std::size_t gpu = deployment_.cluster.colocated ? 0 : trainer_nodes * gpus;
    std::size_t number = 0;
    for (std::size_t i = 0; i < engines.size(); ++i) {
      for (std::int64_t n = 0; n < deployment_.rollouts[i].engines; ++n) {
        PlaceGroup(engines[i], absl::StrCat("engine", number++), gpu);
        gpu += engines[i].size();
      }
    }
    const std::size_t nodes = std::max(trainer_nodes, DivideUp(gpu, gpus));
    if (static_cast<std::size_t>(deployment_.cluster.nodes) >= nodes) return;
    Refuse("size",
           absl::StrCat("cluster: nodes is ", deployment_.cluster.nodes, ", want at least ", nodes,
                        ": the trainer takes ", trainer_nodes, ", and engines ",
                        deployment_.cluster.colocated ? "share them from the first" : "follow"));
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
