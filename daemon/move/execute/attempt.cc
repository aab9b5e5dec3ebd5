#include "daemon/move/execute/attempt.h"

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

}  // namespace wb
