// A daemon that is lost, replaced or absent in a session, or answers what nobody asked.
#include <string>
#include <vector>

#include "tests/client/call_script.h"
#include "tests/client/client_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/time_slack.h"

namespace wb::test {
namespace {

using namespace std::chrono_literals;
using weightbridge::Error;
using weightbridge::Result;
using weightbridge::Rollout;

TEST_CASE("a daemon lost in a call is named, and the next call joins again", "[client]") {
  Seen<JoinRecord> joins;
  FakeDaemon daemon([&](FakePeer& peer, int number) {
    const std::optional<JoinRecord> join = peer.GrantJoin();
    if (!join) return;
    joins.Add(*join);
    if (number == 0) {
      if (Deliver(peer, 6)) TakeRequest(peer);  // takes a Receive with it
    } else if (number == 1) {
      if (!TakeRequest(peer)) return;
      peer.Send(Go(7));
      TakeRequest(peer);
    } else if (Deliver(peer, 8)) {
      peer.StaySilent();
    }
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  REQUIRE(rollout->Receive(6, {}).ok());

  Error error = ErrorOf(rollout->Receive(7, {}));
  CHECK(error.code == WB_UNAVAILABLE);
  CHECK(error.message == "daemon at " + daemon.socket() +
                             " is lost in Receive of version 7: the connection is closed; memory "
                             "of engine0/1 is unchanged: it holds version 6");
  CHECK(rollout->session_id().empty());

  error = ErrorOf(rollout->Receive(7, {}));
  CHECK(Contains(error.message,
                 "memory of engine0/1 is invalid and may still change: version 7 "
                 "failed: daemon at "));
  REQUIRE(rollout->Receive(8, {}).ok());

  const std::vector<JoinRecord> all = joins.all();
  REQUIRE(all.size() == 3);
  CHECK(all[1].request.held_version() == 6);
  CHECK(all[1].request.memory() == v1::MEMORY_VALID);
  CHECK(all[1].request.incarnation() == 42);
  CHECK(all[1].layout_bytes == all[0].layout_bytes);
  CHECK(all[1].buffers.size() == 1);
  CHECK(all[2].request.held_version() == 0);
  CHECK(all[2].request.memory() == v1::MEMORY_INVALID);
}

TEST_CASE("a daemon replaced between two calls is joined by the second one", "[client]") {
  Seen<bool> closed;
  FakeDaemon daemon([&](FakePeer& peer, int number) {
    if (!peer.GrantJoin()) return;
    if (number == 0) {
      Deliver(peer, 6);
      peer.Close();
      closed.Add(true);
    } else if (Deliver(peer, 7)) {
      peer.StaySilent();
    }
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  REQUIRE(rollout->Receive(6, {}).ok());
  REQUIRE(Soon([&] { return !closed.all().empty(); }));
  REQUIRE(rollout->Receive(7, {}).ok());
  CHECK(rollout->held_version() == 7);
}

TEST_CASE("while no daemon is there, calls say why and keep what memory holds", "[client]") {
  Seen<bool> closed;
  FakeDaemon daemon([&](FakePeer& peer, int) {
    if (peer.GrantJoin()) Deliver(peer, 6);
    peer.Close();
    closed.Add(true);
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  REQUIRE(rollout->Receive(6, {}).ok());
  REQUIRE(Soon([&] { return !closed.all().empty(); }));
  REQUIRE(std::filesystem::remove(daemon.socket()));
  for (int i = 0; i < 2; ++i) {
    const Error error = ErrorOf(rollout->Receive(7, {}));
    CHECK(error.code == WB_UNAVAILABLE);
    CHECK(Contains(error.message, daemon.socket()));
    CHECK(Contains(error.message, "ENOENT"));
    CHECK(Contains(error.message, "memory of engine0/1 is unchanged: it holds version 6"));
  }
  CHECK(ErrorOf(rollout->WaitForVersion(7, 1s)).code == WB_UNAVAILABLE);
}

TEST_CASE("an answer that fits no request ends the connection, not the process", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int number) {
    if (!peer.GrantJoin()) return;
    const std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (!request) return;
    v1::DaemonMessage reply = ReplyTo(request->id());
    reply.mutable_wait_for_version()->set_version(7);
    switch (number) {
      case 0:
        peer.SendRaw("\xff\xff\xff garbage");
        break;
      case 1:
        reply.set_id(request->id() + 1);
        peer.Send(reply);
        break;
      case 2:
        reply.mutable_publish();
        peer.Send(reply);
        break;
      case 3:
        reply.mutable_wait_for_version()->set_version(4);  // less than was asked for
        peer.Send(reply);
        break;
      case 4:
        peer.SendRaw(std::string(70'000, 'x'));
        break;
      default:
        peer.Send(reply);
        peer.StaySilent();
    }
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  for (int i = 0; i < 5; ++i) {
    INFO("answer " << i);
    const Error error = ErrorOf(rollout->WaitForVersion(5, 1s));
    CHECK(error.code == WB_INTERNAL);
    CHECK(Contains(error.message, "daemon at " + daemon.socket() + " is lost in WaitForVersion"));
  }
  const Result<std::uint64_t> version = rollout->WaitForVersion(5, 1s);
  REQUIRE(version.ok());
  CHECK(*version == 7);
}

TEST_CASE("a daemon that ends the session says why, under no request's id", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int number) {
    if (number == 0) {
      peer.TakeJoin();
      peer.Refuse(0, WB_INVALID_ARGUMENT, "a packet of 7 bytes is no message");
      return;
    }
    if (!peer.GrantJoin() || !TakeRequest(peer)) return;
    peer.Refuse(0, WB_INVALID_ARGUMENT, "a packet of 9 bytes is no message");
    peer.StaySilent();
  });
  const Result<Rollout> refused = JoinRollout(daemon);
  REQUIRE_FALSE(refused.ok());
  CHECK(Contains(refused.error().message, "a packet of 7 bytes is no message"));
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  const Error error = ErrorOf(rollout->WaitForVersion(1, 1s));
  CHECK(error.code == WB_UNAVAILABLE);
  CHECK(Contains(error.message, "it ended the session: a packet of 9 bytes is no message"));
  CHECK(rollout->session_id().empty());
}

TEST_CASE("a code that is none of the known ones is UNKNOWN", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    const std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (!request) return;
    peer.Refuse(request->id(), -5, "odd");
    peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  CHECK(ErrorOf(rollout->WaitForVersion(1, 1s)).code == WB_UNKNOWN);
}

}  // namespace
}  // namespace wb::test
