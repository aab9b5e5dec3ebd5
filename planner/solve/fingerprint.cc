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

std::uint64_t HashOf(const std::string& name) {
  return XXH3_64bits(name.data(), name.size());
}

}  // namespace

Fingerprint FingerprintOf(const Job& job, const Plan& plan) {
  std::vector<std::uint64_t> workers;
  std::vector<std::uint64_t> tensors;
  for (const Layout& layout : job.layouts) workers.push_back(HashOf(layout.name.ToString()));
  for (const Tensor& tensor : job.tensors) tensors.push_back(HashOf(tensor.name));
  Hasher hasher;
  hasher.Add(plan.moves.size());
  for (const Move& move : plan.moves) {
    hasher.Add(workers[move.src.value()]);
    hasher.Add(workers[move.dst.value()]);
    hasher.Add(tensors[move.tensor.value()]);
    hasher.Add(static_cast<std::uint64_t>(job.tensor(move.tensor).dtype));
    hasher.Add(static_cast<std::uint64_t>(move.box.ndim()));
    hasher.Add(move.box.lo());
    hasher.Add(move.box.hi());
  }
  hasher.Add(plan.ties.size());
  for (const Tie& tie : plan.ties) {
    hasher.Add(tensors[tie.alias.value()]);
    hasher.Add(tensors[tie.target.value()]);
  }
  return Fingerprint(hasher.digest());
}

}  // namespace wb
