#include "daemon/move/execute/attempt.h"

#include "absl/strings/str_cat.h"

namespace wb {

const char* ToString(AttemptState state) {
  switch (state) {
    case AttemptState::kPreparing:
      return "preparing";
    case AttemptState::kPrepared:
      return "prepared";
    case AttemptState::kMoving:
      return "moving";
    case AttemptState::kStaged:
      return "staged";
    case AttemptState::kFailed:
      return "failed";
    case AttemptState::kFinishing:
      return "finishing";
    case AttemptState::kAborting:
      return "aborting";
  }
  return "?";
}

absl::Status Prefixed(const absl::Status& status, const std::string& what) {
  return {status.code(), absl::StrCat(what, ": ", status.message())};
}

}  // namespace wb
