#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "daemon/state/cluster_messages.h"
#include "planner/model/ids.h"

namespace wb {

/// Everything that makes one try of one delivery what it is.
struct AttemptKey {
  Term term;
  std::string job;
  std::string group;
  Version version;
  Fingerprint fingerprint;
  std::map<WorkerName, WorkerGeneration> workers;  // all that take part
  std::uint32_t tries = 0;                         // of the same before this one
};

/// A hash of the whole key: a message or chunk of another term, plan or registration never carries
/// the id of this attempt.
[[nodiscard]] AttemptId MakeAttemptId(const AttemptKey& key);

}  // namespace wb
