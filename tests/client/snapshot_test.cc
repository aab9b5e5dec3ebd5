// Versions that move from a snapshot while the trainer goes on.
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
using weightbridge::PublishOptions;
using weightbridge::PublishReport;
using weightbridge::Result;
using weightbridge::Source;
using weightbridge::Trainer;

PublishOptions FromSnapshot(std::chrono::milliseconds timeout = 5s) {
  PublishOptions options;
  options.timeout = timeout;
  options.source = Source::kSnapshot;
  return options;
}

Result<Trainer> JoinForSnapshots(const FakeDaemon& daemon) {
  weightbridge::JoinOptions options = OptionsFor(daemon.socket());
  options.group = "policy";
  options.source = Source::kSnapshot;
  return Trainer::Join(options, RowLayout());
}

v1::DaemonMessage Taken(std::uint64_t version) {
  v1::DaemonMessage notice;
  notice.mutable_snapshot()->set_version(version);
  notice.mutable_snapshot()->set_copy_seconds(0.25);
  return notice;
}

/// Takes a Publish up to its snapshot; the request's id, 0 if the client did otherwise.
std::uint64_t Snapshot(FakePeer& peer, std::uint64_t version) {
  const std::optional<v1::ClientMessage> request = TakeRequest(peer);
  if (!request || request->publish().version() != version) return 0;
  peer.Send(Taken(version));
  return request->id();
}

v1::DaemonMessage Published(std::uint64_t id, std::uint64_t version) {
  v1::DaemonMessage reply = ReplyTo(id);
  reply.mutable_publish()->set_version(version);
  reply.mutable_publish()->set_bytes_sent(1234);
  reply.mutable_publish()->set_move_seconds(0.5);
  reply.mutable_publish()->set_snapshot_seconds(0.25);
  reply.mutable_publish()->add_outcomes()->set_group("engine0");
  return reply;
}

v1::DaemonMessage Failed(std::uint64_t id) {
  v1::DaemonMessage reply = ReplyTo(id);
  reply.mutable_status()->set_code(WB_UNAVAILABLE);
  reply.mutable_status()->set_message("engine0/0 left");
  v1::GroupOutcome& outcome = *reply.mutable_publish()->add_outcomes();
  outcome.set_group("engine0");
  outcome.mutable_status()->set_code(WB_UNAVAILABLE);
  return reply;
}

/// Says its lines when the test says so.
class Cue {
 public:
  void Give() { given_.Add(true); }
  void Await() const {
    Soon([this] { return !given_.all().empty(); });
  }

 private:
  Seen<bool> given_;
};

TEST_CASE("Publish from a snapshot returns when that is taken, and its end is told when asked for",
          "[client][snapshot]") {
  Cue asked;
  Seen<JoinRecord> joins;
  Seen<v1::ClientMessage> requests;
  FakeDaemon daemon([&](FakePeer& peer, int) {
    if (const auto join = peer.GrantJoin()) joins.Add(*join);
    const std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (!request) return;
    requests.Add(*request);
    peer.Send(Taken(6));  // of no call
    peer.Send(Taken(7));
    asked.Await();
    peer.Send(Published(request->id(), 7));
    peer.StaySilent();
  });
  Result<Trainer> trainer = JoinForSnapshots(daemon);
  REQUIRE(trainer.ok());
  const Result<PublishReport> report = trainer->Publish(7, FromSnapshot());
  REQUIRE(report.ok());
  CHECK(report->version == 7);
  CHECK(report->snapshot_seconds == 0.25);
  CHECK(report->total_seconds > 0);
  CHECK(report->outcomes.empty());
  CHECK(report->previous.version == 0);
  REQUIRE(joins.all().size() == 1);
  CHECK(joins.all()[0].request.snapshots());
  REQUIRE(requests.all().size() == 1);
  CHECK(requests.all()[0].publish().snapshot());

  for (const auto timeout : {0ms, 50ms}) {
    const Error early = ErrorOf(trainer->WaitPublished(7, timeout));
    CHECK(early.code == WB_DEADLINE_EXCEEDED);
    CHECK(Contains(early.message, "version 7 of policy/1 is still moving from its snapshot after"));
  }
  asked.Give();
  for (int again = 0; again < 2; ++again) {
    const Result<PublishReport> end = trainer->WaitPublished(7, 5s);
    REQUIRE(end.ok());
    CHECK(end->bytes_sent == 1234);
    CHECK(end->move_seconds == 0.5);
    CHECK(end->snapshot_seconds == 0.25);
    REQUIRE(end->outcomes.size() == 1);
    CHECK(end->outcomes[0].group == "engine0");
    CHECK(end->previous.version == 0);
  }
}

TEST_CASE("WaitPublished gives the culprit, and the outcome of each group", "[client][snapshot]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    peer.Send(Failed(Snapshot(peer, 7)));
    peer.StaySilent();
  });
  Result<Trainer> trainer = JoinForSnapshots(daemon);
  REQUIRE(trainer.ok());
  REQUIRE(trainer->Publish(7, FromSnapshot()).ok());
  const Error error = ErrorOf(trainer->WaitPublished(7, 5s));
  CHECK(error.code == WB_UNAVAILABLE);
  CHECK(error.message == "engine0/0 left");
  CHECK(error.details == std::vector<std::string>{"engine0: UNAVAILABLE"});
  REQUIRE(trainer->LastOutcomes().size() == 1);
  CHECK(trainer->LastOutcomes()[0].code == WB_UNAVAILABLE);
}

TEST_CASE("only the last version from a snapshot is waited for", "[client][snapshot]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    peer.Send(Published(Snapshot(peer, 7), 7));
    peer.StaySilent();
  });
  Result<Trainer> trainer = JoinForSnapshots(daemon);
  REQUIRE(trainer.ok());
  CHECK(ErrorOf(trainer->WaitPublished(7, 0ms)).message ==
        "WaitPublished of version 7: policy/1: there is no snapshot yet");
  REQUIRE(trainer->Publish(7, FromSnapshot()).ok());
  const Error error = ErrorOf(trainer->WaitPublished(6, 0ms));
  CHECK(error.code == WB_FAILED_PRECONDITION);
  CHECK(error.message == "WaitPublished of version 6: policy/1: the last snapshot is of version 7");
}

TEST_CASE("the next Publish waits for the version before, and tells how that ended",
          "[client][snapshot]") {
  Cue waiting;
  FakeDaemon daemon([&](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    const std::uint64_t first = Snapshot(peer, 7);
    waiting.Await();
    peer.Send(Failed(first));
    const std::uint64_t second = Snapshot(peer, 9);  // and nothing of 8
    peer.Send(Published(second, 9));
    if (const auto third = TakeRequest(peer)) peer.Send(Published(third->id(), 10));
    peer.StaySilent();
  });
  Result<Trainer> trainer = JoinForSnapshots(daemon);
  REQUIRE(trainer.ok());
  REQUIRE(trainer->Publish(7, FromSnapshot()).ok());
  const Stopwatch watch;
  const Error late = ErrorOf(trainer->Publish(8, FromSnapshot(100ms)));
  CHECK(late.code == WB_DEADLINE_EXCEEDED);
  CHECK(
      late.message ==
      "Publish of version 8: version 7 of policy/1 is still moving from its snapshot after 0.1 s");
  CHECK(watch.elapsed() >= 100ms);
  CHECK_FALSE(trainer->session_id().empty());

  waiting.Give();
  const Result<PublishReport> second = trainer->Publish(9, FromSnapshot());
  REQUIRE(second.ok());
  CHECK(second->previous.version == 7);
  CHECK(second->previous.code == WB_UNAVAILABLE);
  CHECK(second->previous.message == "engine0/0 left");

  const Result<PublishReport> third = trainer->Publish(10, {"", 5s});  // in place
  REQUIRE(third.ok());
  CHECK(third->previous.version == 9);
  CHECK(third->previous.code == WB_OK);
  CHECK(third->previous.message.empty());
}

TEST_CASE("an end that was asked for is not told again, one that a failed Publish met is",
          "[client][snapshot]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    peer.Send(Failed(Snapshot(peer, 7)));
    if (const auto refused = TakeRequest(peer)) {
      peer.Refuse(refused->id(), WB_INVALID_ARGUMENT, "version 6 is not above 7");
    }
    peer.Send(Published(Snapshot(peer, 8), 8));
    Snapshot(peer, 9);
    peer.StaySilent();
  });
  Result<Trainer> trainer = JoinForSnapshots(daemon);
  REQUIRE(trainer.ok());
  REQUIRE(trainer->Publish(7, FromSnapshot()).ok());
  REQUIRE_FALSE(trainer->Publish(6, FromSnapshot()).ok());
  const Result<PublishReport> second = trainer->Publish(8, FromSnapshot());
  REQUIRE(second.ok());
  CHECK(second->previous.version == 7);
  REQUIRE(trainer->WaitPublished(8, 5s).ok());
  const Result<PublishReport> third = trainer->Publish(9, FromSnapshot());
  REQUIRE(third.ok());
  CHECK(third->previous.version == 0);
}

TEST_CASE("a daemon lost after the snapshot leaves the outcome unknown, and no quarantine",
          "[client][snapshot]") {
  Seen<bool> closed;
  FakeDaemon daemon([&](FakePeer& peer, int number) {
    if (!peer.GrantJoin()) return;
    if (number == 0) {
      Snapshot(peer, 7);
      peer.Close();
      closed.Add(true);
      return;
    }
    Snapshot(peer, 8);
    peer.StaySilent();
  });
  Result<Trainer> trainer = JoinForSnapshots(daemon);
  REQUIRE(trainer.ok());
  REQUIRE(trainer->Publish(7, FromSnapshot()).ok());
  REQUIRE(Soon([&] { return !closed.all().empty(); }));
  const auto check = [&](const std::string& message) {
    CHECK(Contains(message, "daemon at " + daemon.socket() + " is lost"));
    CHECK(Contains(message, "outcome is unknown"));
    CHECK_FALSE(Contains(message, "may still be read"));
  };
  SECTION("who waits hears of it at once, and the next Publish joins again") {
    const Error error = ErrorOf(trainer->WaitPublished(7, 5s));
    CHECK(error.code == WB_UNAVAILABLE);
    check(error.message);
    const Result<PublishReport> next = trainer->Publish(8, FromSnapshot());
    REQUIRE(next.ok());
    CHECK(next->previous.version == 0);
  }
  SECTION("who does not wait is told with the next Publish") {
    const Result<PublishReport> next = trainer->Publish(8, FromSnapshot());
    REQUIRE(next.ok());
    CHECK(next->previous.version == 7);
    CHECK(next->previous.code == WB_UNAVAILABLE);
    check(next->previous.message);
  }
}

TEST_CASE("a daemon that does not end a version in its time is given up a second later",
          "[client][snapshot]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    Snapshot(peer, 7);
    peer.StaySilent();
  });
  Result<Trainer> trainer = JoinForSnapshots(daemon);
  REQUIRE(trainer.ok());
  const Stopwatch watch;
  REQUIRE(trainer->Publish(7, FromSnapshot(200ms)).ok());
  const Error error = ErrorOf(trainer->WaitPublished(7, 60s));
  CHECK(watch.elapsed() >= 1200ms);
  CHECK(watch.elapsed() < Slack(1700ms));
  CHECK(error.code == WB_UNAVAILABLE);
  CHECK(Contains(error.message,
                 "did not answer Publish of version 7 within 0.2 s, nor one second "
                 "later; its outcome is unknown"));
  CHECK(trainer->session_id().empty());
}

TEST_CASE("a daemon lost before the snapshot may still read the memory", "[client][snapshot]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    peer.GrantJoin();
    peer.StaySilent();
  });
  Result<Trainer> trainer = JoinForSnapshots(daemon);
  REQUIRE(trainer.ok());
  const Error error = ErrorOf(trainer->Publish(7, FromSnapshot(100ms)));
  CHECK(error.code == WB_DEADLINE_EXCEEDED);
  CHECK(Contains(error.message, "memory of policy/1 may still be read"));
  CHECK(ErrorOf(trainer->WaitPublished(7, 0ms)).code == WB_FAILED_PRECONDITION);
}

TEST_CASE("a version that is answered without its snapshot ends the connection",
          "[client][snapshot]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    if (const auto request = TakeRequest(peer)) peer.Send(Published(request->id(), 7));
    peer.StaySilent();
  });
  Result<Trainer> trainer = JoinForSnapshots(daemon);
  REQUIRE(trainer.ok());
  CHECK(ErrorOf(trainer->Publish(7, FromSnapshot())).code == WB_INTERNAL);
  CHECK(trainer->session_id().empty());
}

TEST_CASE("a worker whose version still moves may leave", "[client][snapshot]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    peer.Send(Published(Snapshot(peer, 7), 7));
    TakeRequest(peer);
  });
  Result<Trainer> trainer = JoinForSnapshots(daemon);
  REQUIRE(trainer.ok());
  REQUIRE(trainer->Publish(7, FromSnapshot()).ok());
  REQUIRE(trainer->Leave("done").ok());
  CHECK(ErrorOf(trainer->WaitPublished(7, 0ms)).code == WB_FAILED_PRECONDITION);
}

TEST_CASE("a source that does not exist is refused by number", "[client][snapshot]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    peer.GrantJoin();
    peer.StaySilent();
  });
  weightbridge::JoinOptions options = OptionsFor(daemon.socket());
  options.source = static_cast<Source>(7);
  CHECK(ErrorOf(Trainer::Join(options, RowLayout())).message ==
        "join: source is 7, want WB_SOURCE_IN_PLACE or WB_SOURCE_SNAPSHOT");
  Result<Trainer> trainer = JoinForSnapshots(daemon);
  REQUIRE(trainer.ok());
  PublishOptions publish;
  publish.source = static_cast<Source>(-1);
  CHECK(ErrorOf(trainer->Publish(7, publish)).message ==
        "publish: source is -1, want WB_SOURCE_IN_PLACE or WB_SOURCE_SNAPSHOT");
}

}  // namespace
}  // namespace wb::test
