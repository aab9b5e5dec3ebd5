#pragma once

#include <cstdint>
#include <string_view>

namespace wb {

// The life of a version: the one table of states, used by leader and status alike.

/// Of a version at its job. kOpening: trainer ranks are publishing it. kOffered: deliveries are
/// under way. kReleased: every delivery is decided or failed, the sources may be written, and at
/// least one group has it; its status is OK only if all required groups have it. kFailed: nobody
/// has it, and its number is spent.
enum class PublicationState : std::uint8_t { kOpening, kOffered, kReleased, kFailed };

/// Of a version at one rollout group. kWaiting: ranks accept it, daemons prepare. kStaged: every
/// rank has verified all its bytes, which is a promise: from here on only the leader decides.
/// kInstalling: commit is decided and being told. kRetired: a later version overwrites it.
enum class DeliveryState : std::uint8_t {
  kWaiting,
  kPrepared,
  kMoving,
  kStaged,
  kInstalling,
  kCommitted,
  kRetired,
  kFailed
};

constexpr bool CanMove(PublicationState from, PublicationState to) {
  using enum PublicationState;
  switch (from) {
    case kOpening:
      return to == kOffered || to == kFailed;
    case kOffered:
      return to == kReleased || to == kFailed;
    case kReleased:
    case kFailed:
      return false;
  }
  return false;
}

constexpr bool CanMove(DeliveryState from, DeliveryState to) {
  using enum DeliveryState;
  switch (from) {
    case kWaiting:
      return to == kPrepared || to == kFailed;
    case kPrepared:
      return to == kMoving || to == kFailed;
    case kMoving:
      return to == kStaged || to == kFailed;
    case kStaged:
      return to == kInstalling || to == kFailed;
    case kInstalling:
      return to == kCommitted || to == kFailed;
    case kCommitted:
      return to == kRetired;
    case kRetired:
    case kFailed:
      return false;
  }
  return false;
}

/// Whether commit is decided: no loss or error fails the delivery any more.
constexpr bool CommitDecided(DeliveryState state) {
  using enum DeliveryState;
  return state == kInstalling || state == kCommitted || state == kRetired;
}

static_assert(!CanMove(PublicationState::kReleased, PublicationState::kFailed));
static_assert(!CanMove(PublicationState::kOpening, PublicationState::kReleased));
static_assert(!CanMove(DeliveryState::kMoving, DeliveryState::kCommitted));
static_assert(!CanMove(DeliveryState::kStaged, DeliveryState::kCommitted));
static_assert(!CanMove(DeliveryState::kCommitted, DeliveryState::kFailed));
static_assert(!CanMove(DeliveryState::kFailed, DeliveryState::kCommitted));
static_assert(!CanMove(DeliveryState::kFailed, DeliveryState::kInstalling));

/// "opening", "offered", ...: the words of status.
[[nodiscard]] std::string_view Name(PublicationState state);
[[nodiscard]] std::string_view Name(DeliveryState state);

}  // namespace wb
