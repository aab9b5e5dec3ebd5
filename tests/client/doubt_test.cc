// Versions whose bytes have all landed when the daemon, or its leader, is lost before the outcome.
#include <string>
#include <vector>

#include "tests/client/call_script.h"
#include "tests/client/client_fixture.h"
#include "tests/support/catch.h"

namespace wb::test {
namespace {

using namespace std::chrono_literals;
using weightbridge::Error;
using weightbridge::MemoryState;
using weightbridge::Result;
using weightbridge::Rollout;

/// Takes a Receive up to the point where all has landed; the request's id, 0 if the client did
/// otherwise.
std::uint64_t Stage(FakePeer& peer, std::uint64_t version) {
  const std::optional<v1::ClientMessage> request = TakeRequest(peer);
  if (!request) return 0;
  peer.Send(Go(version));
  if (!TakeRequest(peer)) return 0;
  peer.Send(Staged(version, 900 + version));
  return request->id();
}

v1::DaemonMessage Outcome(std::uint64_t version, bool committed) {
  v1::DaemonMessage notice;
  notice.mutable_outcome()->set_version(version);
  notice.mutable_outcome()->set_committed(committed);
  return notice;
}

/// Grants a join and tells what became of a version in doubt.
void GrantWith(FakePeer& peer, std::uint64_t version, v1::MemoryState outcome) {
  const std::optional<JoinRecord> join = peer.TakeJoin();
  if (!join) return;
  v1::DaemonMessage reply = ReplyTo(join->last_id);
  reply.mutable_join()->set_session("0123456789abcdef0123456789abcdef");
  reply.mutable_join()->set_outcome(outcome);
  reply.mutable_join()->set_outcome_version(version);
  peer.Send(reply);
}

/// Answers a WaitForVersion with version 9.
void Offer(FakePeer& peer, const v1::ClientMessage& request) {
  v1::DaemonMessage reply = ReplyTo(request.id());
  reply.mutable_wait_for_version()->set_version(9);
  peer.Send(reply);
}

TEST_CASE("a daemon lost after all has landed leaves the memory in doubt", "[client]") {
  Seen<JoinRecord> joins;
  FakeDaemon daemon([&](FakePeer& peer, int number) {
    const std::optional<JoinRecord> join = peer.GrantJoin();
    if (!join) return;
    joins.Add(*join);
    if (number == 0) {
      Stage(peer, 7);
    } else if (Deliver(peer, 8)) {
      peer.StaySilent();
    }
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  const Error error = ErrorOf(rollout->Receive(7, {}));
  CHECK(error.code == WB_UNAVAILABLE);
  CHECK(Contains(error.message, "memory of engine0/1 is in doubt: version 7 has landed"));
  CHECK(rollout->memory_state() == MemoryState::kInDoubt);
  CHECK(rollout->held_version() == 0);

  REQUIRE(rollout->Receive(8, {}).ok());
  CHECK(rollout->memory_state() == MemoryState::kValid);
  const std::vector<JoinRecord> all = joins.all();
  REQUIRE(all.size() == 2);
  CHECK(all[1].request.memory() == v1::MEMORY_IN_DOUBT);
  CHECK(all[1].request.held_version() == 7);
  CHECK(all[1].request.attempt() == 907);
}

TEST_CASE("the reply to a join decides what was in doubt, and only that", "[client]") {
  struct Case {
    std::uint64_t version;
    v1::MemoryState outcome;
    MemoryState wanted;
  };
  const Case one = GENERATE(Case{7, v1::MEMORY_VALID, MemoryState::kValid},
                            Case{7, v1::MEMORY_INVALID, MemoryState::kInvalid},
                            Case{6, v1::MEMORY_VALID, MemoryState::kInDoubt},
                            Case{7, v1::MEMORY_STATE_UNSPECIFIED, MemoryState::kInDoubt});
  FakeDaemon daemon([&](FakePeer& peer, int number) {
    if (number == 0) {
      if (peer.GrantJoin()) Stage(peer, 7);
      return;
    }
    GrantWith(peer, one.version, one.outcome);
    if (const auto request = TakeRequest(peer)) Offer(peer, *request);
    peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  REQUIRE_FALSE(rollout->Receive(7, {}).ok());
  REQUIRE(rollout->WaitForVersion(8, 2s).ok());
  CHECK(rollout->memory_state() == one.wanted);
  CHECK(rollout->held_version() == (one.wanted == MemoryState::kValid ? 7U : 0U));
}

TEST_CASE("a Receive answered in doubt is decided by a later notice", "[client]") {
  const bool committed = GENERATE(true, false);
  FakeDaemon daemon([&](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    v1::DaemonMessage reply = ReplyTo(Stage(peer, 7));
    reply.mutable_status()->set_code(WB_UNAVAILABLE);
    reply.mutable_status()->set_message("staged version 7, outcome unknown: no leader");
    reply.mutable_receive()->set_in_doubt(true);
    peer.Send(reply);
    const auto request = TakeRequest(peer);
    if (!request) return;
    peer.Send(Outcome(6, !committed));  // of another version: not what is in doubt
    peer.Send(Outcome(7, committed));
    Offer(peer, *request);
    peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  const Error error = ErrorOf(rollout->Receive(7, {}));
  CHECK(Contains(error.message, "its outcome is unknown: staged version 7"));
  CHECK(rollout->memory_state() == MemoryState::kInDoubt);
  REQUIRE(rollout->WaitForVersion(8, 2s).ok());
  CHECK(rollout->memory_state() == (committed ? MemoryState::kValid : MemoryState::kInvalid));
}

TEST_CASE("a Receive that fails after all has landed leaves the memory invalid", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    peer.Refuse(Stage(peer, 7), WB_UNAVAILABLE, "engine0/0 has left");
    peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  const Error error = ErrorOf(rollout->Receive(7, {}));
  CHECK(Contains(error.message, "memory of engine0/1 is invalid: version 7 failed"));
  CHECK(rollout->memory_state() == MemoryState::kInvalid);
}

TEST_CASE("what a daemon says of memory that is not in doubt changes nothing", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin() || !Deliver(peer, 6)) return;
    peer.Send(Staged(7, 907));
    peer.Send(Outcome(6, false));
    peer.Send(Outcome(7, true));
    if (Deliver(peer, 8)) peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  REQUIRE(rollout->Receive(6, {}).ok());
  CHECK(rollout->held_version() == 6);
  REQUIRE(rollout->Receive(8, {}).ok());
  CHECK(rollout->held_version() == 8);
}

}  // namespace
}  // namespace wb::test
