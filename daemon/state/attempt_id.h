#pragma once

#include <map>
#include <string>

#include "planner/model/ids.h"

namespace wb {

/// Everything that makes one try of one delivery what it is.
struct AttemptKey {
  Term term;
  std::string job;
  std::string group;
  Version version;
  Fingerprint fingerprint;
  std::map<WorkerName, Epoch> epochs;  // of all workers that take part
};

/// A hash of the whole key: a message or chunk of another term, plan or registration never carries
/// the id of this attempt.
[[nodiscard]] AttemptId MakeAttemptId(const AttemptKey& key);

}  // namespace wb
