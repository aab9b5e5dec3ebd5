// Groups that come late and get what another rollout group holds.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/leader_world.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using Catch::Matchers::Contains;
using test::LeaderWorld;
using test::PairOfNodes;
using test::RolloutRank;
using test::Text;

/// engine0 of the pair holds version 5; n2 is attached.
struct LateWorld : PairOfNodes {
  explicit LateWorld(LeaderWorld& leader_world)
      : PairOfNodes(leader_world), n2(world.Attach("n2")) {
    PublishAll(5);
    AcceptAll(5);
    REQUIRE(world.PublishEnd(n0, "t0")->status.ok());
    REQUIRE(world.PublishEnd(n0, "t1")->status.ok());
    for (const PeerId peer : {n0, n1}) {
      world.Take<PrepareAttempt>(peer);
      world.Take<GoAttempt>(peer);
      world.Take<VersionOffered>(peer);
      world.Take<FinishReceive>(peer);
    }
  }
  void Join(const SessionId& session,
            int rank = 0,
            int ranks = 1,
            const test::HeldBefore& held = {}) {
    REQUIRE(world.Join(n2, session, RolloutRank("engine1", rank, ranks, "n2"), ranks, held).ok());
  }
  /// The version that engine1 was offered; 0: none.
  std::uint64_t Offered() {
    const std::vector<VersionOffered> offers = world.Take<VersionOffered>(n2);
    return offers.empty() ? 0 : offers.back().version.value();
  }
  /// What status shows of the newest delivery to a group, of that version.
  DeliverySnapshot To(const std::string& group, std::uint64_t version) {
    std::optional<DeliverySnapshot> found;
    for (const VersionSnapshot& snapshot : world.leader().Versions("gqa", 0)) {
      if (snapshot.version != Version(version)) continue;
      for (const DeliverySnapshot& delivery : snapshot.deliveries) {
        if (delivery.group == group) found = delivery;
      }
    }
    REQUIRE(found.has_value());
    return *found;
  }
  MemberSnapshot Worker(const std::string& name) {
    for (MemberSnapshot& member : world.leader().Members("gqa")) {
      if (member.name.ToString() == name) return std::move(member);
    }
    FAIL("no worker " + name);
    return {};
  }

  PeerId n2;
};

TEST_CASE("a group that comes after a version gets it from a group that holds it",
          "[control][leader][field][case-101]") {
  LeaderWorld world;
  LateWorld late(world);
  late.Join("e0", 0, 2);
  REQUIRE(late.Offered() == 0);  // not whole yet
  late.Join("e1", 1, 2);
  REQUIRE(late.Offered() == 5);
  REQUIRE(late.Worker("engine1/0").memory == MemoryState::kEmpty);
  REQUIRE(late.Worker("engine1/0").held_version == Version());

  world.Accept(late.n2, "e0", 5);
  world.Accept(late.n2, "e1", 5);
  const std::vector<PrepareAttempt> asked = world.Take<PrepareAttempt>(late.n2);
  REQUIRE(asked.size() == 1);
  REQUIRE(asked[0].version == Version(5));
  REQUIRE(asked[0].plan.has_value());
  REQUIRE(asked[0].peers.at(0).node == "n1");
  REQUIRE(world.Take<PrepareAttempt>(late.n1).at(0).workers.size() == 2);
  REQUIRE(world.Take<PrepareAttempt>(late.n0).empty());
  REQUIRE(world.ReceiveEnd(late.n2, "e0")->status.ok());
  REQUIRE(world.ReceiveEnd(late.n2, "e1")->status.ok());
  REQUIRE(late.Worker("engine1/1").memory == MemoryState::kValid);
  REQUIRE(late.Worker("engine1/1").held_version == Version(5));
  REQUIRE(late.To("engine1", 5).state == "committed");
  REQUIRE(late.To("engine1", 5).sources == "engine0");
  REQUIRE(world.Newest().version == Version(5));
  REQUIRE(world.Newest().state == "released");
  REQUIRE(world.PublishEnd(late.n0, "t0") == std::nullopt);

  // The next version goes to both, from the trainers.
  late.PublishAll(6);
  late.AcceptAll(6);
  world.Accept(late.n2, "e0", 6);
  world.Accept(late.n2, "e1", 6);
  REQUIRE(world.PublishEnd(late.n0, "t0")->outcomes.size() == 2);
  REQUIRE(late.To("engine1", 6).sources == "policy");
  REQUIRE(late.To("engine1", 5).state == "retired");
}

TEST_CASE("a group that holds the newest version is offered nothing", "[control][leader]") {
  LeaderWorld world;
  SECTION("it says so as it joins a leader that has published nothing") {
    const PairOfNodes pair(world);
    const PeerId n2 = world.Attach("n2");
    REQUIRE(world.Join(n2, "e0", RolloutRank("engine1", 0, 1, "n2"), 1, {Version(5)}).ok());
    REQUIRE(world.Take<VersionOffered>(n2).empty());
    REQUIRE(world.Take<VersionOffered>(pair.n1).size() == 1);  // engine0, which has none
  }
  SECTION("it got it from this leader, and joins again") {
    LateWorld late(world);
    late.Join("e0");
    world.Accept(late.n2, "e0", 5);
    REQUIRE(world.ReceiveEnd(late.n2, "e0")->status.ok());
    REQUIRE(late.Offered() == 5);
    world.Say(late.n2, UnregisterWorker{"e0", "its connection is lost", false});
    late.Join("f0", 0, 1, {Version(5)});
    REQUIRE(late.Offered() == 0);
  }
  SECTION("an older one is not enough") {
    LateWorld late(world);
    late.Join("e0", 0, 1, {Version(4)});
    REQUIRE(late.Offered() == 5);
  }
}

TEST_CASE("a group that holds another leader's version of the same number is no source of it",
          "[control][leader]") {
  LeaderWorld world;
  LateWorld late(world);
  const Registration stranger = RolloutRank("a", 0, 1, "n2");  // first in the order of names
  REQUIRE(world.Join(late.n2, "a0", stranger, 1, {Version(5)}).ok());
  REQUIRE(late.Worker("a/0").memory == MemoryState::kInvalid);
  REQUIRE(late.Offered() == 5);
  late.Join("e0");
  world.Accept(late.n2, "e0", 5);
  REQUIRE(world.ReceiveEnd(late.n2, "e0")->status.ok());
  REQUIRE(late.To("engine1", 5).sources == "engine0");
  late.PublishAll(6);
  late.AcceptAll(6);
  world.Accept(late.n2, "a0", 6);
  world.Accept(late.n2, "e0", 6);
  REQUIRE(world.PublishEnd(late.n0, "t0")->status.ok());
  REQUIRE(late.Worker("a/0").memory == MemoryState::kValid);
}

TEST_CASE("nothing is offered late while a version opens or moves", "[control][leader]") {
  LeaderWorld world;
  LateWorld late(world);
  SECTION("until it has failed") {
    world.Publish(late.n0, "t0", 6);
    late.Join("e0");
    REQUIRE(late.Offered() == 0);
    world.Say(late.n0, GiveUpVersion{"t0", Version(6), "enough"});
    REQUIRE(late.Offered() == 5);
  }
  SECTION("until it is released, and then that one") {
    world.manners[late.n1].stages = false;
    late.PublishAll(6);
    late.AcceptAll(6);
    late.Join("e0");
    REQUIRE(late.Offered() == 0);
    world.Say(late.n1, AttemptStaged{world.Take<GoAttempt>(late.n1).at(0).attempt, {}});
    REQUIRE(late.Offered() == 6);
  }
}

TEST_CASE("a late delivery that does not move yet makes way for a newer version",
          "[control][leader]") {
  LeaderWorld world;
  LateWorld late(world);
  late.Join("e0", 0, 2);
  late.Join("e1", 1, 2);
  world.Accept(late.n2, "e0", 5);
  late.PublishAll(6);
  REQUIRE(Text(world.ReceiveEnd(late.n2, "e0")->status) ==
          "job gqa version 5 to engine1: version 6 is on offer: receive that");
  REQUIRE(late.Offered() == 6);
  late.AcceptAll(6);
  world.Accept(late.n2, "e0", 6);
  world.Accept(late.n2, "e1", 6);
  REQUIRE(world.PublishEnd(late.n0, "t0")->status.ok());
}

TEST_CASE("a group is not written while another reads it", "[control][leader]") {
  LeaderWorld world;
  LateWorld late(world);
  world.manners[late.n2].stages = false;
  late.Join("e0");
  world.Accept(late.n2, "e0", 5);
  const AttemptId reads = world.Take<GoAttempt>(late.n2).at(0).attempt;
  world.Take<GoAttempt>(late.n1);
  late.PublishAll(6);
  late.AcceptAll(6);
  world.Say(late.n2, GiveUpVersion{"e0", Version(6), "not now"});  // so that none is waited for
  REQUIRE(late.To("engine0", 6).state == "prepared");
  REQUIRE(world.Take<GoAttempt>(late.n1).empty());
  const std::vector<std::string> waits = world.leader().Waits();
  REQUIRE(std::any_of(waits.begin(), waits.end(), [](const std::string& wait) {
    return wait.find("for engine1, which reads engine0, before that is written") !=
           std::string::npos;
  }));
  SECTION("it commits") {
    world.Say(late.n2, AttemptStaged{reads, {}});
    REQUIRE(world.ReceiveEnd(late.n2, "e0")->status.ok());
  }
  SECTION("it fails") {
    world.Say(late.n2, AttemptFailed{reads, absl::DataLossError("sum")});
    REQUIRE_FALSE(world.ReceiveEnd(late.n2, "e0")->status.ok());
  }
  REQUIRE(world.Take<GoAttempt>(late.n1).size() == 1);
  REQUIRE(late.To("engine0", 6).state == "committed");
}

TEST_CASE("a death at the source fails the late delivery alone, and another holder is asked",
          "[control][leader]") {
  LeaderWorld world;
  LateWorld late(world);
  const PeerId n3 = world.Attach("n3");
  REQUIRE(world.Join(n3, "z0", RolloutRank("other", 0, 1, "n3"), 1).ok());
  world.Accept(n3, "z0", 5);
  REQUIRE(world.ReceiveEnd(n3, "z0")->status.ok());
  world.manners[late.n2].stages = false;
  late.Join("e0");
  world.Accept(late.n2, "e0", 5);
  REQUIRE(late.To("engine1", 5).state == "moving");
  REQUIRE(late.Offered() == 5);
  world.Say(late.n1, UnregisterWorker{"r1", "process ended"});
  REQUIRE(Text(world.ReceiveEnd(late.n2, "e0")->status) ==
          "job gqa version 5 to engine1: engine0/1 (node n1) left: process ended");
  REQUIRE(late.Worker("engine1/0").memory == MemoryState::kInvalid);
  REQUIRE(late.To("engine0", 5).state == "committed");
  REQUIRE(late.Offered() == 5);
  REQUIRE(late.To("engine1", 5).sources == "other");

  world.manners[late.n2].stages = true;
  world.Accept(late.n2, "e0", 5);
  REQUIRE(world.ReceiveEnd(late.n2, "e0")->status.ok());
  REQUIRE(world.leader().stale_messages() == 0);
}

TEST_CASE("with no holder left a group starts with the next version", "[control][leader]") {
  LeaderWorld world;
  LateWorld late(world);
  world.manners[late.n2].stages = false;
  late.Join("e0");
  REQUIRE(late.Offered() == 5);
  SECTION("it had begun") {
    world.Accept(late.n2, "e0", 5);
    world.Say(late.n1, UnregisterWorker{"r0", "process ended"});
    REQUIRE_FALSE(world.ReceiveEnd(late.n2, "e0")->status.ok());
  }
  SECTION("it had not") {
    world.Say(late.n1, UnregisterWorker{"r0", "process ended"});
    REQUIRE(world.Take<VersionFailed>(late.n2).size() == 1);
  }
  REQUIRE(late.Offered() == 0);
}

TEST_CASE("a group that no holder can serve is not offered what it cannot have",
          "[control][leader]") {
  LeaderWorld world;
  LateWorld late(world);
  Registration other = RolloutRank("engine1", 0, 1, "n2");
  other.tensors.front().name = "zz";
  REQUIRE(world.Join(late.n2, "e0", other, 1).ok());
  REQUIRE(late.Offered() == 0);
  world.Accept(late.n2, "e0", 5);
  REQUIRE_THAT(Text(world.ReceiveEnd(late.n2, "e0")->status), Contains("starts with the next"));
}

TEST_CASE("what a group holds from an earlier leader's time is handed on", "[control][leader]") {
  LeaderWorld world;
  const PeerId n1 = world.Attach("n1");
  const PeerId n2 = world.Attach("n2");
  REQUIRE(world.Join(n1, "r0", RolloutRank("engine0", 0, 1, "n1"), 1, {Version(5)}).ok());
  REQUIRE(world.Join(n2, "e0", RolloutRank("engine1", 0, 1, "n2"), 1).ok());
  REQUIRE(world.Take<VersionOffered>(n2).at(0).version == Version(5));
  world.Accept(n2, "e0", 5);
  REQUIRE(world.ReceiveEnd(n2, "e0")->status.ok());
  REQUIRE(world.Newest().version == Version(5));
}

}  // namespace
}  // namespace wb
