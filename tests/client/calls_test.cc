#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include "tests/client/call_script.h"
#include "tests/client/client_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/time_slack.h"

namespace wb::test {
namespace {

using namespace std::chrono_literals;
using weightbridge::Error;
using weightbridge::MemoryState;
using weightbridge::PublishReport;
using weightbridge::ReceiveReport;
using weightbridge::Result;
using weightbridge::Rollout;
using weightbridge::Trainer;

TEST_CASE("Publish sends the version, what is said of it and the time it has, and reports",
          "[client]") {
  Seen<v1::ClientMessage> requests;
  FakeDaemon daemon([&](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    const std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (!request) return;
    requests.Add(*request);
    v1::DaemonMessage reply = ReplyTo(request->id());
    v1::PublishReply& publish = *reply.mutable_publish();
    publish.set_version(7);
    publish.set_bytes_sent(1234);
    publish.set_wait_seconds(0.25);
    publish.set_move_seconds(0.5);
    publish.set_pack_seconds(0.125);
    publish.set_wire_seconds(0.375);
    publish.set_copy_seconds(0.0625);
    publish.add_outcomes()->set_group("engine0");
    peer.Send(reply);
    peer.StaySilent();
  });
  Result<Trainer> trainer = JoinTrainer(daemon);
  REQUIRE(trainer.ok());
  const Result<PublishReport> report =
      trainer->Publish(7, {"step 70", 5000ms, {"engine0", "engine1"}});
  REQUIRE(report.ok());
  CHECK(report->version == 7);
  CHECK(report->bytes_sent == 1234);
  CHECK(report->wait_seconds == 0.25);
  CHECK(report->move_seconds == 0.5);
  CHECK(report->pack_seconds == 0.125);
  CHECK(report->wire_seconds == 0.375);
  CHECK(report->copy_seconds == 0.0625);
  CHECK(report->total_seconds > 0);
  REQUIRE(report->outcomes.size() == 1);
  CHECK(report->outcomes[0].group == "engine0");
  CHECK(report->outcomes[0].code == WB_OK);

  REQUIRE(requests.all().size() == 1);
  const v1::ClientMessage request = requests.all()[0];
  CHECK(request.publish().version() == 7);
  CHECK(request.publish().label() == "step 70");
  const auto& required = request.publish().required_groups();
  CHECK(std::vector<std::string>(required.begin(), required.end()) ==
        std::vector<std::string>{"engine0", "engine1"});
  CHECK(request.timeout_ms() <= 5000);
  CHECK(request.timeout_ms() > 5000 - Slack(1000ms).count());
}

TEST_CASE("a failed Publish gives the culprit, and the outcome of each group", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    const std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (!request) return;
    v1::DaemonMessage reply = ReplyTo(request->id());
    reply.mutable_status()->set_code(WB_UNAVAILABLE);
    reply.mutable_status()->set_message("worker engine1/0 on node n2 is gone");
    reply.mutable_status()->add_details("since 3 s");
    reply.mutable_publish()->add_outcomes()->set_group("engine0");
    v1::GroupOutcome& failed = *reply.mutable_publish()->add_outcomes();
    failed.set_group("engine1");
    failed.mutable_status()->set_code(WB_UNAVAILABLE);
    failed.mutable_status()->set_message("worker engine1/0 is gone");
    peer.Send(reply);
    peer.StaySilent();
  });
  Result<Trainer> trainer = JoinTrainer(daemon);
  REQUIRE(trainer.ok());
  const Error error = ErrorOf(trainer->Publish(7, {}));
  CHECK(error.code == WB_UNAVAILABLE);
  CHECK(error.message == "worker engine1/0 on node n2 is gone");
  CHECK(error.details ==
        std::vector<std::string>{"since 3 s", "engine0: OK",
                                 "engine1: UNAVAILABLE: worker engine1/0 is gone"});
  REQUIRE(trainer->LastOutcomes().size() == 2);
  CHECK(trainer->LastOutcomes()[1].code == WB_UNAVAILABLE);
  CHECK_FALSE(trainer->session_id().empty());  // the session goes on
}

TEST_CASE("Publish to a silent daemon ends a second late and warns that memory may be read",
          "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    peer.GrantJoin();
    peer.StaySilent();
  });
  Result<Trainer> trainer = JoinTrainer(daemon);
  REQUIRE(trainer.ok());
  const Stopwatch watch;
  const Error error = ErrorOf(trainer->Publish(7, {"", 200ms}));
  CHECK(watch.elapsed() >= 1200ms);
  CHECK(watch.elapsed() < Slack(1700ms));
  CHECK(error.code == WB_DEADLINE_EXCEEDED);
  CHECK(error.message == "daemon at " + daemon.socket() +
                             " did not answer Publish of version 7 within 0.2 s, nor one second "
                             "later; memory of policy/1 may still be read: the daemon (pid " +
                             std::to_string(::getpid()) +
                             "), which did not answer Publish of version 7, lives");
}

TEST_CASE("WaitForVersion gives a version, or the daemon's deadline with who is late", "[client]") {
  Seen<std::uint64_t> asked;
  FakeDaemon daemon([&](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (!request) return;
    asked.Add(request->wait_for_version().at_least());
    v1::DaemonMessage reply = ReplyTo(request->id());
    reply.mutable_wait_for_version()->set_version(501);
    peer.Send(reply);
    request = TakeRequest(peer);
    if (!request) return;
    asked.Add(request->wait_for_version().at_least());
    peer.Refuse(request->id(), WB_DEADLINE_EXCEEDED, "no version >= 502 was published in 100 ms");
    peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  const Result<std::uint64_t> version = rollout->WaitForVersion(1, 1s);
  REQUIRE(version.ok());
  CHECK(*version == 501);
  const Error error = ErrorOf(rollout->WaitForVersion(502, 100ms));
  CHECK(error.code == WB_DEADLINE_EXCEEDED);
  CHECK(error.message == "no version >= 502 was published in 100 ms");
  CHECK(asked.all() == std::vector<std::uint64_t>{1, 502});
  CHECK_FALSE(rollout->session_id().empty());
}

TEST_CASE("WaitForVersion with no time still asks once", "[client]") {
  Seen<std::uint32_t> timeouts;
  FakeDaemon daemon([&](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    const std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (!request) return;
    timeouts.Add(request->timeout_ms());
    peer.Refuse(request->id(), WB_DEADLINE_EXCEEDED, "nothing yet");
    peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  CHECK(ErrorOf(rollout->WaitForVersion(1, 0ms)).message == "nothing yet");
  CHECK(timeouts.all() == std::vector<std::uint32_t>{1});
}

TEST_CASE("before any version a rollout holds version 0, and asking is no error",
          "[client][field][case-92]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    peer.GrantJoin();
    peer.StaySilent();
  });
  const Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  CHECK(rollout->held_version() == 0);
  CHECK(rollout->memory_state() == MemoryState::kEmpty);
}

TEST_CASE("a received version is held, and one after the other", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    if (Deliver(peer, 501) && Deliver(peer, 502)) peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  const Result<ReceiveReport> first = rollout->Receive(501, {});
  REQUIRE(first.ok());
  CHECK(first->version == 501);
  CHECK(first->bytes_received == 16);
  CHECK(first->wait_seconds == 0.25);
  CHECK(first->move_seconds == 0.5);
  CHECK(first->wire_seconds == 0.375);
  CHECK(first->scatter_seconds == 0.125);
  CHECK(first->copy_seconds == 0.0625);
  CHECK(first->total_seconds > 0);
  CHECK(rollout->memory_state() == MemoryState::kValid);
  CHECK(rollout->held_version() == 501);
  REQUIRE(rollout->Receive(502, {}).ok());
  CHECK(rollout->held_version() == 502);
}

TEST_CASE("memory is invalid before go is accepted, even if that never arrives", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin() || !Deliver(peer, 6) || !TakeRequest(peer)) return;
    peer.Send(Go(7));
    peer.Close();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  REQUIRE(rollout->Receive(6, {}).ok());
  const Error error = ErrorOf(rollout->Receive(7, {}));
  CHECK(error.code == WB_UNAVAILABLE);
  // The daemon's end is not seen: it is this process.
  CHECK(
      Contains(error.message,
               "memory of engine0/1 is invalid and may still change: version 7 failed: daemon at " +
                   daemon.socket() + " is lost"));
  CHECK(rollout->memory_state() == MemoryState::kInvalid);
  CHECK(rollout->held_version() == 0);
}

TEST_CASE("a Receive that fails after go leaves memory invalid, until a later one lands",
          "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin() || !Deliver(peer, 6)) return;
    std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (!request) return;
    peer.Send(Go(7));
    TakeRequest(peer);
    peer.Refuse(request->id(), WB_UNAVAILABLE, "worker policy/3 is gone");
    request = TakeRequest(peer);
    if (!request) return;
    peer.Refuse(request->id(), WB_FAILED_PRECONDITION, "version 8 is not offered");
    if (Deliver(peer, 9)) peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  REQUIRE(rollout->Receive(6, {}).ok());

  Error error = ErrorOf(rollout->Receive(7, {}));
  CHECK(error.code == WB_UNAVAILABLE);
  CHECK(error.message ==
        "memory of engine0/1 is invalid: version 7 failed: worker policy/3 is gone");
  CHECK(rollout->memory_state() == MemoryState::kInvalid);
  CHECK(rollout->held_version() == 0);

  error = ErrorOf(rollout->Receive(8, {}));
  CHECK(error.message == "version 8 is not offered; memory of engine0/1 is invalid as before");

  REQUIRE(rollout->Receive(9, {}).ok());
  CHECK(rollout->memory_state() == MemoryState::kValid);
  CHECK(rollout->held_version() == 9);
}

TEST_CASE("a Receive that fails before go leaves the version before intact", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin() || !Deliver(peer, 6)) return;
    const std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (!request) return;
    peer.Refuse(request->id(), WB_DEADLINE_EXCEEDED, "policy/0 did not publish version 7");
    peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  REQUIRE(rollout->Receive(6, {}).ok());
  CHECK(ErrorOf(rollout->Receive(7, {})).message ==
        "policy/0 did not publish version 7; memory of engine0/1 is unchanged: it holds version 6");
  CHECK(rollout->memory_state() == MemoryState::kValid);
  CHECK(rollout->held_version() == 6);
}

TEST_CASE("a daemon that falls silent after go may still write, and the error says so",
          "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin() || !TakeRequest(peer)) return;
    peer.Send(Go(7));
    peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  const Stopwatch watch;
  const Error error = ErrorOf(rollout->Receive(7, {200ms}));
  CHECK(watch.elapsed() >= 1200ms);
  CHECK(watch.elapsed() < Slack(1700ms));
  CHECK(error.code == WB_DEADLINE_EXCEEDED);
  CHECK(error.message ==
        "memory of engine0/1 is invalid and may still change: version 7 failed: "
        "daemon at " +
            daemon.socket() +
            " did not answer Receive of version 7 within 0.2 s, nor one second "
            "later");
  CHECK(rollout->memory_state() == MemoryState::kInvalid);
}

TEST_CASE("a daemon that is silent without go can write nothing: memory is unchanged", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    peer.GrantJoin();
    peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  const Error error = ErrorOf(rollout->Receive(7, {100ms}));
  CHECK(error.code == WB_DEADLINE_EXCEEDED);
  CHECK(Contains(error.message, "memory of engine0/1 is unchanged: it holds no version"));
  CHECK(rollout->memory_state() == MemoryState::kEmpty);
  CHECK(rollout->session_id().empty());  // given up, so that the daemon's lease ends too
}

TEST_CASE("go for another version than the one asked for is not accepted", "[client]") {
  Seen<std::uint64_t> accepted;
  FakeDaemon daemon([&](FakePeer& peer, int) {
    if (!peer.GrantJoin() || !Deliver(peer, 6)) return;
    std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (!request) return;
    peer.Send(Go(8));
    peer.Refuse(request->id(), WB_ABORTED, "gone");
    request = TakeRequest(peer);
    if (!request) return;
    peer.Send(Go(8));
    peer.Send(Go(9));
    const std::optional<v1::ClientMessage> next = TakeRequest(peer);
    if (!next) return;
    accepted.Add(next->go_accepted().version());
    v1::DaemonMessage reply = ReplyTo(request->id());
    reply.mutable_receive()->set_version(9);
    peer.Send(reply);
    peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  REQUIRE(rollout->Receive(6, {}).ok());
  CHECK(ErrorOf(rollout->Receive(7, {})).code == WB_ABORTED);
  CHECK(rollout->held_version() == 6);
  REQUIRE(rollout->Receive(9, {}).ok());
  CHECK(rollout->held_version() == 9);
  CHECK(accepted.all() == std::vector<std::uint64_t>{9});
}

TEST_CASE("go outside a Receive is not accepted and changes nothing", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    const std::optional<JoinRecord> join = peer.TakeJoin();
    if (!join) return;
    v1::DaemonMessage reply = ReplyTo(join->last_id);
    reply.mutable_join()->set_session("s");
    peer.Send(reply);
    peer.Send(Go(7));
    // Had the notice been accepted, this would be GoAccepted and not Receive.
    if (Deliver(peer, 8)) peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  CHECK(rollout->memory_state() == MemoryState::kEmpty);
  CHECK(rollout->Receive(8, {}).ok());
}

TEST_CASE("bytes that arrived without go make memory invalid, whatever the daemon says",
          "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    const std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (!request) return;
    v1::DaemonMessage reply = ReplyTo(request->id());
    reply.mutable_receive()->set_version(7);
    reply.mutable_receive()->set_bytes_received(16);
    peer.Send(reply);
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  const Error error = ErrorOf(rollout->Receive(7, {}));
  CHECK(error.code == WB_INTERNAL);
  CHECK(Contains(error.message, "it wrote without having asked"));
  CHECK(rollout->memory_state() == MemoryState::kInvalid);
}

TEST_CASE("calls of the other role, version 0 and odd options are refused without asking",
          "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    peer.GrantJoin();
    peer.StaySilent();
  });
  const Stopwatch watch;
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  CHECK(ErrorOf(rollout->Receive(0, {})).message == "Receive of version 0: versions begin at 1");
  CHECK(ErrorOf(rollout->Receive(1, {-1ms})).code == WB_INVALID_ARGUMENT);
  CHECK(ErrorOf(rollout->WaitForVersion(1, std::chrono::hours(2000))).code == WB_INVALID_ARGUMENT);
  rollout = ErrorOf(rollout->Receive(0, {}));

  Result<Trainer> trainer = JoinTrainer(daemon);
  REQUIRE(trainer.ok());
  CHECK(ErrorOf(trainer->Publish(0, {})).code == WB_INVALID_ARGUMENT);
  CHECK(Contains(ErrorOf(trainer->Publish(1, {std::string(2000, 'l'), 1s})).message,
                 "the label has 2000 bytes, want at most 1024"));
  CHECK(Contains(ErrorOf(trainer->Publish(1, {"step \xff", 1s})).message,
                 "the label is not UTF-8 at byte 5"));
  const std::vector<std::string> groups(1024, std::string(200, 'g'));
  const Error large = ErrorOf(trainer->Publish(1, {"", 1s, groups}));
  CHECK(large.code == WB_RESOURCE_EXHAUSTED);
  CHECK(Contains(large.message,
                 "Publish of version 1: the label and the required groups make a "
                 "message of "));
  CHECK(Contains(large.message, "want at most 65472"));
  CHECK_FALSE(trainer->session_id().empty());  // nothing was sent, nothing is lost
  CHECK(watch.elapsed() < Slack(2000ms));
}

TEST_CASE("the library starts no thread, in Join or in a call", "[client]") {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  Seen<std::ptrdiff_t> inside;
  FakeDaemon daemon([&](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    const std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (!request) return;
    inside.Add(threads());
    peer.Refuse(request->id(), WB_CANCELLED, "seen");
    peer.StaySilent();
  });
  const std::ptrdiff_t before = threads();
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  CHECK(threads() == before);
  CHECK(ErrorOf(rollout->Receive(7, {})).code == WB_CANCELLED);
  CHECK(inside.all() == std::vector<std::ptrdiff_t>{before});
}

}  // namespace
}  // namespace wb::test
