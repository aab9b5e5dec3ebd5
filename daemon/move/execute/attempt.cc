#include "daemon/move/execute/attempt.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/model/culprit.h"

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
  return Reworded(status, absl::StrCat(what, ": ", status.message()));
}

absl::Status PrefixedWithPeer(const absl::Status& status,
                              const std::string& node,
                              const std::string& what) {
  absl::Status prefixed = Prefixed(status, what);
  if (!absl::IsUnavailable(status)) return prefixed;
  Culprit gone;
  gone.reason = Culprit::Reason::kGone;
  gone.node = node;
  gone.stage = "move";
  return WithCulprits(std::move(prefixed), {&gone, 1});
}

}  // namespace wb
