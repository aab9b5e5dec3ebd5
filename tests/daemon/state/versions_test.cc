#include "daemon/state/versions.h"

#include <set>
#include <vector>

#include "daemon/state/attempt_id.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

constexpr DeliveryState kDeliveryStates[] = {DeliveryState::kWaiting,    DeliveryState::kPrepared,
                                             DeliveryState::kMoving,     DeliveryState::kStaged,
                                             DeliveryState::kInstalling, DeliveryState::kCommitted,
                                             DeliveryState::kRetired,    DeliveryState::kFailed};

TEST_CASE("a delivery passes every state on its way, and none twice", "[control][state]") {
  for (const DeliveryState from : kDeliveryStates) {
    for (const DeliveryState to : kDeliveryStates) {
      const bool next = static_cast<int>(to) == static_cast<int>(from) + 1;
      const bool alive = from != DeliveryState::kCommitted && from != DeliveryState::kRetired &&
                         from != DeliveryState::kFailed;
      const bool legal = to == DeliveryState::kFailed ? alive : next;
      INFO(Name(from) << " -> " << Name(to));
      REQUIRE(CanMove(from, to) == legal);
    }
  }
}

TEST_CASE("commit is decided from installing on", "[control][state]") {
  REQUIRE_FALSE(CommitDecided(DeliveryState::kStaged));
  REQUIRE(CommitDecided(DeliveryState::kInstalling));
  REQUIRE(CommitDecided(DeliveryState::kRetired));
  REQUIRE_FALSE(CommitDecided(DeliveryState::kFailed));
}

TEST_CASE("states have the words of status", "[control][state]") {
  REQUIRE(Name(PublicationState::kOpening) == "opening");
  REQUIRE(Name(PublicationState::kOffered) == "offered");
  REQUIRE(Name(PublicationState::kReleased) == "released");
  REQUIRE(Name(PublicationState::kFailed) == "failed");
  std::set<std::string_view> names;
  for (const DeliveryState state : kDeliveryStates) names.insert(Name(state));
  REQUIRE(names.size() == std::size(kDeliveryStates));
}

TEST_CASE("an attempt id changes with everything that makes the attempt", "[control][state]") {
  const AttemptKey key{
      Term(1),
      "gqa",
      "engine0",
      Version(3),
      Fingerprint(9),
      {{{"engine0", 0}, {Incarnation(1), Epoch(1)}}, {{"policy", 0}, {Incarnation(1), Epoch(1)}}},
      0};
  REQUIRE(MakeAttemptId(key) == MakeAttemptId(key));
  std::vector<AttemptKey> others(10, key);
  others[0].term = Term(2);
  others[1].job = "gq";
  others[2].group = "engine1";
  others[3].version = Version(4);
  others[4].fingerprint = Fingerprint(10);
  others[5].workers[{"engine0", 0}].epoch = Epoch(2);
  others[6].workers.erase({"policy", 0});
  others[8].workers[{"engine0", 0}].incarnation = Incarnation(2);
  others[9].tries = 1;
  others[7].job = "gqae";
  others[7].group = "ngine0";
  std::set<AttemptId> ids{MakeAttemptId(key)};
  for (const AttemptKey& other : others) ids.insert(MakeAttemptId(other));
  REQUIRE(ids.size() == others.size() + 1);
}

}  // namespace
}  // namespace wb
