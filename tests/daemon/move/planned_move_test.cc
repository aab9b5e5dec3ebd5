#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "daemon/move/coordinate/held_plan.h"
#include "planner/lower/plan_part.h"
#include "planner/model/dtype.h"
#include "planner/solve/planner.h"
#include "tests/daemon/move/move_world.h"
#include "tests/support/catch.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb::test {
namespace {

/// Calls `visit(linear index in the tensor, byte offset in the buffer)` for each element.
template <typename Visit>
void ForEachElement(const Tensor& tensor, const Piece& piece, const Visit& visit) {
  const std::size_t ndim = tensor.shape.size();
  const std::int64_t size = DtypeBytes(tensor.dtype);
  std::vector<std::int64_t> at(piece.box.lo().begin(), piece.box.lo().end());
  while (true) {
    std::int64_t linear = 0;
    auto offset = static_cast<std::int64_t>(piece.offset_bytes);
    for (std::size_t d = 0; d < ndim; ++d) {
      linear = linear * tensor.shape[d] + at[d];
      offset += (at[d] - piece.box.lo()[d]) * piece.strides[d] * size;
    }
    visit(static_cast<std::uint64_t>(linear), static_cast<std::uint64_t>(offset));
    std::size_t d = ndim;
    while (d > 0 && ++at[d - 1] == piece.box.hi()[d - 1]) {
      at[d - 1] = piece.box.lo()[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

/// What a delivery of a whole version moved, over all groups and nodes.
void Add(BytesByPath& sum, const BytesByPath& bytes) {
  sum.tcp += bytes.tcp;
  sum.shm += bytes.shm;
  sum.local += bytes.local;
}

/// A planned job whose daemons are nodes of a world: every worker's buffers are regions of its
/// node, drawn to be the host's memory or the device's, and every element has a value of its own.
class PlannedWorld {
 public:
  PlannedWorld(const Job& job, std::mt19937_64& rng, const std::string& transports = "loopback")
      : job_(job), rng_(rng), world_(transports) {
    std::variant<Plan, Refusals> solved = Solve(job);
    REQUIRE(std::holds_alternative<Plan>(solved));
    plan_ = std::get<Plan>(std::move(solved));
    for (const Tie& tie : plan_.ties) target_of_[tie.alias] = tie.target;
    for (const Layout& layout : job.layouts) AddWorker(layout);
  }

  const Plan& plan() const { return plan_; }
  /// Bytes that have come, by path, over all versions.
  BytesByPath Moved() const {
    BytesByPath sum;
    for (const auto& [name, node] : nodes_) {
      for (const auto& [attempt, bytes] : node->events.staged) Add(sum, bytes);
    }
    return sum;
  }

  void DeliverAll(std::uint64_t version) {
    FillSources(version);
    std::set<std::string> groups;
    for (const Layout& layout : job_.layouts) {
      if (layout.role == Role::kRollout) groups.insert(layout.name.group);
    }
    for (const std::string& group : groups) {
      const std::vector<NodeWork> all = WorkOfGroup(group, version);
      Deliver(world_, all);
    }
    RequireDelivered(version);
  }

 private:
  using Memories = std::vector<std::span<std::byte>>;  // one per buffer

  void AddWorker(const Layout& layout) {
    MoveNode*& node = nodes_[layout.node];
    if (node == nullptr) node = &world_.Add(layout.node);
    LocalWorker local;
    local.session = layout.name.ToString();
    local.epoch = Epoch(1);
    local.registration =
        std::make_shared<Registration>(Registration{job_.name, job_.tensors, layout});
    Memories& memories = memories_[layout.name];
    for (const Buffer& buffer : layout.buffers) {
      const RegionId region(next_region_++);
      constexpr std::uint64_t kBefore = 24;  // buffers may start anywhere in their region
      memories.push_back(
          node->AddMemory(region, kBefore + buffer.bytes, DrawWhere(rng_)).subspan(kBefore));
      local.regions.push_back(region);
      local.offsets.push_back(kBefore);
    }
    workers_[layout.node].emplace(layout.name, std::move(local));
  }

  /// Byte `b` of an element: the same on every worker that holds it.
  std::byte ValueOf(TensorId tensor,
                    std::uint64_t element,
                    std::uint64_t b,
                    std::uint64_t version) {
    const auto tie = target_of_.find(tensor);
    const std::uint64_t id = (tie == target_of_.end() ? tensor : tie->second).value();
    const std::uint64_t mixed = ((id + 1) * 0x9E3779B97F4A7C15 ^ element * 0xC2B2AE3D27D4EB4F ^
                                 version * 0x165667B19E3779F9) +
                                b * 0x85EBCA77C2B2AE63;
    return static_cast<std::byte>((mixed ^ mixed >> 29) >> 13 & 0xFF);
  }

  /// What the worker's pieces hold in `version`, over `images`.
  void Draw(const Layout& layout,
            std::uint64_t version,
            std::vector<std::vector<std::byte>>& images) {
    for (const Piece& piece : layout.pieces) {
      const Tensor& tensor = job_.tensor(piece.tensor);
      const auto size = static_cast<std::uint64_t>(DtypeBytes(tensor.dtype));
      ForEachElement(tensor, piece, [&](std::uint64_t element, std::uint64_t offset) {
        for (std::uint64_t b = 0; b < size; ++b) {
          images[piece.buffer][offset + b] = ValueOf(piece.tensor, element, b, version);
        }
      });
    }
  }

  std::vector<std::vector<std::byte>> Image(const Layout& layout, std::uint64_t version) {
    std::vector<std::vector<std::byte>> images;
    for (const Buffer& buffer : layout.buffers) images.emplace_back(buffer.bytes, kSentinel);
    Draw(layout, version, images);
    return images;
  }

  void FillSources(std::uint64_t version) {
    for (const Layout& layout : job_.layouts) {
      Memories& memories = memories_[layout.name];
      const bool source = layout.role == Role::kTrainer;
      const auto images = source ? Image(layout, version) : Image({}, version);
      for (std::size_t b = 0; b < memories.size(); ++b) {
        if (source) {
          std::copy(images[b].begin(), images[b].end(), memories[b].begin());
        } else {
          std::fill(memories[b].begin(), memories[b].end(), kSentinel);
        }
      }
    }
  }

  std::vector<NodeWork> WorkOfGroup(const std::string& group, std::uint64_t version) {
    std::vector<NodeWork> all;
    for (const auto& [name, node] : nodes_) {
      PlanPart part = MakePlanPart(job_, plan_, group, name);
      if (part.moves.empty()) continue;
      PrepareAttempt message;
      message.attempt = AttemptId(next_attempt_ + version);
      message.job = job_.name;
      message.group = group;
      message.version = Version(version);
      for (const auto& [peer_name, peer] : nodes_) {
        if (peer_name != name) message.peers.push_back(peer->Address());
      }
      for (const PlanWorker& worker : part.workers) {
        if (worker.node == name) message.workers[worker.name.ToString()] = {{}, Epoch(1)};
      }
      HeldPlan held(std::move(part), name, kTestChunk / 16);
      all.push_back({node, held.Bind(message, workers_[name]).value()});
    }
    next_attempt_ += 1000;
    return all;
  }

  void RequireDelivered(std::uint64_t version) {
    for (const Layout& layout : job_.layouts) {
      if (layout.role != Role::kRollout) continue;
      INFO(layout.name.ToString());
      const auto images = Image(layout, version);
      const Memories& memories = memories_[layout.name];
      for (std::size_t b = 0; b < memories.size(); ++b) {
        REQUIRE(
            std::equal(memories[b].begin(), memories[b].end(), images[b].begin(), images[b].end()));
      }
    }
  }

  const Job& job_;
  std::mt19937_64& rng_;
  Plan plan_;
  std::map<TensorId, TensorId> target_of_;
  MoveWorld world_;
  std::map<std::string, MoveNode*> nodes_;
  std::map<std::string, LocalWorkers> workers_;  // by node
  std::map<WorkerName, Memories> memories_;
  std::uint64_t next_region_ = 1;
  std::uint64_t next_attempt_ = 1;
};

TEST_CASE("what the planner plans, the movers move, element by element", "[move][property]") {
  const int round = GENERATE(range(0, 40));
  INFO("WB_TEST_SEED=" << RunSeed() << " round " << round);
  std::mt19937_64 rng = TestRng(round);
  const Job job = RandomJob(rng);
  PlannedWorld world(job, rng);
  for (std::uint64_t version = 1; version <= 3; ++version) world.DeliverAll(version);
}

TEST_CASE("every path brings the same bytes, as many as planned",
          "[move][property][ucx][field][case-17]") {
  const int round = GENERATE(range(0, 3));
  const std::string path = GENERATE("tcp", "shm", "local");
  INFO("WB_TEST_SEED=" << RunSeed() << " round " << round << " path " << path);
  std::mt19937_64 rng = TestRng(round);
  Job job = RandomJob(rng);
  if (path == "local") {  // one daemon serves them all
    for (Layout& layout : job.layouts) layout.node = "n0";
  }
  PlannedWorld world(job, rng, path == "local" ? "loopback" : path);
  world.DeliverAll(1);
  const std::uint64_t between = world.plan().bytes - world.plan().intra_node_bytes;
  BytesByPath planned;
  planned.local = world.plan().intra_node_bytes;
  (path == "shm" ? planned.shm : planned.tcp) = between;
  REQUIRE(world.Moved() == planned);
  if (path == "local") REQUIRE(planned.local == world.plan().bytes);
}

}  // namespace
}  // namespace wb::test
