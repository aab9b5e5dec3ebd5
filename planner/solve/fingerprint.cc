#include "planner/solve/fingerprint.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <xxhash.h>

#include "planner/model/plan_moves.h"

namespace wb {
namespace {

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

// Feeds words to the hash, many at a time: there are hundreds of thousands of slices.
class Hasher {
 public:
  Hasher() : state_(XXH3_createState()) { XXH3_64bits_reset(state_.get()); }

  void Add(std::uint64_t word) {
    words_.push_back(word);
    if (words_.size() == kBatch) Flush();
  }
  void Add(const Index& index) {
    for (const std::int64_t value : index) Add(static_cast<std::uint64_t>(value));
  }
  std::uint64_t digest() {
    Flush();
    return XXH3_64bits_digest(state_.get());
  }

 private:
  static constexpr std::size_t kBatch = 512;
  void Flush() {
    XXH3_64bits_update(state_.get(), words_.data(), words_.size() * sizeof(words_[0]));
    words_.clear();
  }
  std::unique_ptr<XXH3_state_t, FreeState> state_;
  std::vector<std::uint64_t> words_;
};

std::uint64_t HashOf(const std::string& text) {
  return XXH3_64bits(text.data(), text.size());
}

std::uint64_t HashOf(const Layout& layout) {
  Hasher hasher;
  hasher.Add(HashOf(layout.name.ToString()));
  hasher.Add(HashOf(layout.node));
  return hasher.digest();
}

std::uint64_t HashOf(const Tensor& tensor) {
  Hasher hasher;
  hasher.Add(HashOf(tensor.name));
  hasher.Add(static_cast<std::uint64_t>(tensor.dtype));
  hasher.Add(tensor.overlap_identical ? 1 : 0);
  hasher.Add(tensor.shape);
  return hasher.digest();
}

// Hashes of what the groups' parts of a plan speak of, each once.
class Hashes {
 public:
  Hashes(const Job& job, const Plan& plan) : plan_(plan) {
    for (const Layout& layout : job.layouts) workers_.push_back(HashOf(layout));
    for (const Tensor& tensor : job.tensors) tensors_.push_back(HashOf(tensor));
    for (const Pool& pool : plan.pools) pools_.push_back(OfPool(pool));
    for (const Demand& demand : plan.demands) demands_.push_back(OfDemand(demand));
  }

  Fingerprint OfGroup(const PlanGroup& group) const {
    Hasher hasher;
    for (const PlanReceiver& receiver : group.receivers) {
      hasher.Add(workers_[receiver.worker.value()]);
      hasher.Add(demands_[receiver.demand]);
      hasher.Add(receiver.turn);
    }
    // Where pools stand in the plan hangs on the other groups.
    std::vector<std::uint64_t> rows;
    for (std::size_t begin = 0; begin < group.quotas.size();) {
      Hasher row;
      const std::uint32_t pool = group.quotas[begin].pool;
      row.Add(pools_[pool]);
      for (; begin < group.quotas.size() && group.quotas[begin].pool == pool; ++begin) {
        AddSource(group.quotas[begin], row);
        row.Add(group.quotas[begin].bytes);
      }
      rows.push_back(row.digest());
    }
    std::sort(rows.begin(), rows.end());
    for (const std::uint64_t row : rows) hasher.Add(row);
    for (const Tie& tie : group.ties) {
      hasher.Add(tensors_[tie.alias.value()]);
      hasher.Add(tensors_[tie.target.value()]);
    }
    return Fingerprint(hasher.digest());
  }

 private:
  void AddSource(const Quota& quota, Hasher& row) const {
    if (!quota.relay.has_value()) {
      row.Add(workers_[quota.src.value()]);
      return;
    }
    row.Add(0);
    for (const PlanReceiver* receiver : ByTurn(plan_.groups[*quota.relay])) {
      row.Add(workers_[receiver->worker.value()]);
    }
  }

  std::uint64_t OfPool(const Pool& pool) const {
    Hasher hasher;
    hasher.Add(pool.local ? 1 : 0);
    if (pool.mate.has_value()) hasher.Add(*pool.mate);
    for (const WorkerIndex member : pool.members) hasher.Add(workers_[member.value()]);
    return hasher.digest();
  }

  std::uint64_t OfDemand(const Demand& demand) const {
    Hasher hasher;
    for (std::uint32_t i = demand.begin; i < demand.end; ++i) {
      const Slice& slice = plan_.slices[i];
      hasher.Add(tensors_[slice.tensor.value()]);
      hasher.Add(pools_[demand.pools[i - demand.begin]]);
      hasher.Add(static_cast<std::uint64_t>(slice.box.ndim()));
      hasher.Add(slice.box.lo());
      hasher.Add(slice.box.hi());
      AddSplit(slice, hasher);
    }
    return hasher.digest();
  }

  // What decides which of the slice's parts become one move.
  void AddSplit(const Slice& slice, Hasher& hasher) const {
    const SplitSource* split = plan_.FindSplit(slice.source);
    if (split == nullptr) return;
    hasher.Add(slice.landing);
    for (std::size_t i = 0; i < split->holders.size(); ++i) {
      hasher.Add(workers_[split->holders[i].value()]);
      hasher.Add(split->pieces[i]);
    }
  }

  const Plan& plan_;
  std::vector<std::uint64_t> workers_;
  std::vector<std::uint64_t> tensors_;
  std::vector<std::uint64_t> pools_;
  std::vector<std::uint64_t> demands_;
};

}  // namespace

void FillFingerprints(const Job& job, Plan& plan) {
  const Hashes hashes(job, plan);
  Hasher whole;
  for (PlanGroup& group : plan.groups) {
    group.fingerprint = hashes.OfGroup(group);
    whole.Add(HashOf(group.name));
    whole.Add(group.fingerprint.value());
  }
  plan.fingerprint = Fingerprint(whole.digest());
}

}  // namespace wb
