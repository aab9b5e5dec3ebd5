#include "daemon/state/versions.h"

namespace wb {

std::string_view Name(PublicationState state) {
  using enum PublicationState;
  switch (state) {
    case kOpening:
      return "opening";
    case kOffered:
      return "offered";
    case kReleased:
      return "released";
    case kFailed:
      return "failed";
  }
  return "?";
}

std::string_view Name(DeliveryState state) {
  using enum DeliveryState;
  switch (state) {
    case kWaiting:
      return "waiting";
    case kPrepared:
      return "prepared";
    case kMoving:
      return "moving";
    case kStaged:
      return "staged";
    case kInstalling:
      return "installing";
    case kCommitted:
      return "committed";
    case kRetired:
      return "retired";
    case kFailed:
      return "failed";
  }
  return "?";
}

}  // namespace wb
