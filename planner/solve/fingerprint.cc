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

// Feeds values to the hash, strings with their length, so that no two forms run together.
class Hasher {
 public:
  Hasher() : state_(XXH3_createState()) { XXH3_64bits_reset(state_.get()); }

  void Add(std::uint64_t value) { XXH3_64bits_update(state_.get(), &value, sizeof(value)); }
  void Add(const std::string& text) {
    Add(text.size());
    XXH3_64bits_update(state_.get(), text.data(), text.size());
  }
  void Add(const Index& index) {
    Add(index.size());
    XXH3_64bits_update(state_.get(), index.data(), index.size() * sizeof(index[0]));
  }
  std::uint64_t digest() const { return XXH3_64bits_digest(state_.get()); }

 private:
  std::unique_ptr<XXH3_state_t, FreeState> state_;
};

}  // namespace

Fingerprint FingerprintOf(const Job& job, const Plan& plan) {
  std::vector<std::string> workers;
  workers.reserve(job.layouts.size());
  for (const Layout& layout : job.layouts) workers.push_back(layout.name.ToString());
  Hasher hasher;
  hasher.Add(plan.moves.size());
  for (const Move& move : plan.moves) {
    hasher.Add(workers[move.src.value()]);
    hasher.Add(workers[move.dst.value()]);
    hasher.Add(job.tensor(move.tensor).name);
    hasher.Add(static_cast<std::uint64_t>(job.tensor(move.tensor).dtype));
    hasher.Add(move.box.lo());
    hasher.Add(move.box.hi());
  }
  hasher.Add(plan.ties.size());
  for (const Tie& tie : plan.ties) {
    hasher.Add(job.tensor(tie.alias).name);
    hasher.Add(job.tensor(tie.target).name);
  }
  return Fingerprint(hasher.digest());
}

}  // namespace wb
