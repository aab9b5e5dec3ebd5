#include "planner/solve/fingerprint.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <xxhash.h>

namespace wb {
namespace {

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

// Feeds words to the hash, many at a time: there are millions of moves.
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

// Hashes of what moves name, once for all of them.
struct NameHashes {
  explicit NameHashes(const Job& job) {
    for (const Layout& layout : job.layouts) workers.push_back(HashOf(layout));
    for (const Tensor& tensor : job.tensors) tensors.push_back(HashOf(tensor));
  }
  std::vector<std::uint64_t> workers;
  std::vector<std::uint64_t> tensors;
};

Fingerprint OfGroup(const NameHashes& names, const Plan& plan, const PlanGroup& group) {
  Hasher hasher;
  hasher.Add(group.end - group.begin);
  for (std::size_t i = group.begin; i < group.end; ++i) {
    const Move& move = plan.moves[i];
    hasher.Add(names.workers[move.src.value()]);
    hasher.Add(names.workers[move.dst.value()]);
    hasher.Add(names.tensors[move.tensor.value()]);
    hasher.Add(static_cast<std::uint64_t>(move.box.ndim()));
    hasher.Add(move.box.lo());
    hasher.Add(move.box.hi());
  }
  for (const Tie& tie : group.ties) {
    hasher.Add(names.tensors[tie.alias.value()]);
    hasher.Add(names.tensors[tie.target.value()]);
  }
  return Fingerprint(hasher.digest());
}

}  // namespace

void FillFingerprints(const Job& job, Plan& plan) {
  const NameHashes names(job);
  Hasher whole;
  for (PlanGroup& group : plan.groups) {
    group.fingerprint = OfGroup(names, plan, group);
    whole.Add(HashOf(group.name));
    whole.Add(group.fingerprint.value());
  }
  plan.fingerprint = Fingerprint(whole.digest());
}

}  // namespace wb
