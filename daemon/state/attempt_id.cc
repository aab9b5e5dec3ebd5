#include "daemon/state/attempt_id.h"

#include <memory>

#include <xxhash.h>

namespace wb {
namespace {

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

/// Feeds fields one by one; texts with their length, so that no two keys give the same bytes.
class KeyHash {
 public:
  KeyHash() : state_(XXH3_createState()) { XXH3_64bits_reset(state_.get()); }
  void Add(std::uint64_t value) { XXH3_64bits_update(state_.get(), &value, sizeof(value)); }
  void Add(const std::string& text) {
    Add(std::uint64_t{text.size()});
    XXH3_64bits_update(state_.get(), text.data(), text.size());
  }
  std::uint64_t Digest() const { return XXH3_64bits_digest(state_.get()); }

 private:
  std::unique_ptr<XXH3_state_t, FreeState> state_;
};

}  // namespace

AttemptId MakeAttemptId(const AttemptKey& key) {
  KeyHash hash;
  hash.Add(key.term.value());
  hash.Add(key.job);
  hash.Add(key.group);
  hash.Add(key.version.value());
  hash.Add(key.fingerprint.value());
  hash.Add(std::uint64_t{key.tries});
  for (const auto& [name, generation] : key.workers) {
    hash.Add(name.group);
    hash.Add(static_cast<std::uint64_t>(name.rank));
    hash.Add(generation.incarnation.value());
    hash.Add(generation.epoch.value());
  }
  return AttemptId(hash.Digest());
}

}  // namespace wb
