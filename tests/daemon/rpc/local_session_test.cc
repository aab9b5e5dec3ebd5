#include <array>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"

#include "tests/daemon/rpc/local_door_fixture.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::DoorClient;
using test::DoorFixture;
using test::JoiningWorker;

/// A worker that has joined; its session id.
std::string JoinAs(DoorClient& client, v1::Role role) {
  const auto reply =
      JoiningWorker::Make(role, role == v1::TRAINER ? "policy" : "engine0").Join(client);
  REQUIRE(reply.has_value());
  CAPTURE(reply->ShortDebugString());
  REQUIRE(reply->status().code() == 0);
  return reply->join().session();
}

TEST_CASE("A call is answered on its id, whatever the order", "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  JoinAs(client, v1::TRAINER);
  v1::ClientMessage publish = test::PublishOf(11, 3, 60'000);
  publish.mutable_publish()->set_label("step\n\x1b[31m30");
  publish.mutable_publish()->add_required_groups("engine0");
  REQUIRE(client.Send(publish));
  v1::ClientMessage wait;
  wait.set_id(12);
  wait.set_timeout_ms(60'000);
  wait.mutable_wait_for_version()->set_at_least(4);
  REQUIRE(client.Send(wait));
  REQUIRE(fixture.thread().Becomes([&] { return fixture.calls().waits.contains(4); }));
  fixture.thread().Ask([&] {
    CHECK(fixture.calls().last_call.options.label == "step; ?[31m30");  // one line
    CHECK(fixture.calls().last_call.options.required_groups == std::set<std::string>{"engine0"});
    CHECK_FALSE(fixture.calls().last_call.snapshot);
    fixture.calls().waits.at(4)(Version(5));
    PublishResult result;
    result.outcomes = {{"engine0", absl::OkStatus()}, {"engine1", absl::AbortedError("lost")}};
    result.bytes_sent = 77;
    result.wait_seconds = 0.5;
    fixture.calls().publishes.at(3)(result);
    return true;
  });
  const auto first = client.Next();
  REQUIRE(first->id() == 12);
  REQUIRE(first->wait_for_version().version() == 5);
  const auto second = client.Next();
  REQUIRE(second->id() == 11);
  REQUIRE(second->publish().version() == 3);
  REQUIRE(second->publish().bytes_sent() == 77);
  REQUIRE(second->publish().outcomes_size() == 2);
  REQUIRE(second->publish().outcomes(1).status().message() == "lost");
}

TEST_CASE("A client hears that its snapshot is taken before its call is answered",
          "[rpc][local][snapshot]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  const std::string session = JoinAs(client, v1::TRAINER);
  v1::ClientMessage publish = test::PublishOf(11, 3, 60'000);
  publish.mutable_publish()->set_snapshot(true);
  REQUIRE(client.Send(publish));
  REQUIRE(fixture.thread().Becomes([&] { return fixture.calls().publishes.contains(3); }));
  fixture.thread().Ask([&] {
    CHECK(fixture.calls().last_call.snapshot);
    fixture.door().NotifySnapshot(session, Version(3), 0.25);
    fixture.door().NotifySnapshot("no such session", Version(3), 0.25);
    PublishResult result;
    result.snapshot_seconds = 0.25;
    fixture.calls().publishes.at(3)(result);
    return true;
  });
  const auto notice = client.Next();
  REQUIRE(notice->id() == 0);
  REQUIRE(notice->snapshot().version() == 3);
  REQUIRE(notice->snapshot().copy_seconds() == 0.25);
  const auto reply = client.Next();
  REQUIRE(reply->id() == 11);
  REQUIRE(reply->publish().snapshot_seconds() == 0.25);
}

TEST_CASE("A call's deadline is its timeout from its arrival", "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  JoinAs(client, v1::TRAINER);
  const auto before = std::chrono::steady_clock::now();
  REQUIRE(client.Send(test::PublishOf(1, 1, 2'000)));
  REQUIRE(fixture.thread().Becomes([&] { return fixture.calls().publishes.contains(1); }));
  const auto after = std::chrono::steady_clock::now();
  const auto deadline = fixture.thread().Ask([&] { return fixture.calls().last_deadline; });
  REQUIRE(deadline >= before + std::chrono::seconds(2));
  REQUIRE(deadline <= after + std::chrono::seconds(2));
}

TEST_CASE("A client is asked before its memory is written, and answers once", "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  const std::string session = JoinAs(client, v1::ROLLOUT);
  int accepted = 0;
  fixture.thread().Ask([&] {
    fixture.door().NotifyGo(session, Version(4), [&accepted] { ++accepted; });
    fixture.door().NotifyGo("no such session", Version(4), [&accepted] { accepted += 100; });
    return true;
  });
  const auto notice = client.Next();
  REQUIRE(notice->id() == 0);
  REQUIRE(notice->go().version() == 4);
  REQUIRE(fixture.thread().Ask([&] { return accepted; }) == 0);
  v1::ClientMessage answer;
  answer.set_id(9);
  answer.mutable_go_accepted()->set_version(4);
  REQUIRE(client.Send(answer));
  REQUIRE(fixture.thread().Becomes([&] { return accepted == 1; }));
  REQUIRE(client.Send(answer));  // nobody asks any more
  const absl::Status refusal = test::RefusalOf(client);
  REQUIRE(absl::StrContains(refusal.message(), "go_accepted for version 4, which nobody asked"));
  REQUIRE(accepted == 1);
}

TEST_CASE("The end of a connection ends its session and names the worker", "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  const std::string session = JoinAs(client, v1::ROLLOUT);
  REQUIRE(client.Send(test::ReceiveOf(1, 1, 60'000)));
  REQUIRE(fixture.thread().Becomes([&] { return fixture.calls().receives.contains(1); }));
  REQUIRE(fixture.thread().Ask([&] { return fixture.door().busy(); }));
  client.HangUp();
  REQUIRE(fixture.Empties());
  fixture.thread().Ask([&] {
    const std::string& reason = fixture.calls().closed.at(session);
    CHECK(absl::StrContains(reason, "worker engine0/0"));
    CHECK(absl::StrContains(reason, absl::StrCat("pid ", ::getpid())));
    // A late answer finds nobody, and harms nothing.
    fixture.calls().receives.at(1)(ReceiveResult{});
    CHECK_FALSE(fixture.door().busy());
    return true;
  });
}

TEST_CASE("A worker's end is its process's, whoever still holds its connection", "[rpc][local]") {
  DoorFixture fixture;
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  FdHandle held(ends[0]);
  FdHandle let_go(ends[1]);
  const pid_t worker = ::fork();
  if (worker == 0) {
    let_go.Reset();
    DoorClient client(fixture.path());
    const auto reply = JoiningWorker::Make(v1::ROLLOUT, "engine0").Join(client);
    if (::fork() == 0) {  // as a data loader does
      char none = 0;
      ::_exit(::read(held.get(), &none, 1) == 0 ? 0 : 1);
    }
    ::_exit(reply.has_value() && reply->status().code() == 0 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(worker, &status, 0) == worker);
  REQUIRE(status == 0);
  REQUIRE(fixture.Empties());
  fixture.thread().Ask([&] {
    CHECK(fixture.calls().closed.begin()->second ==
          absl::StrCat("worker engine0/0 (pid ", worker, ") has ended"));
    return true;
  });
}

TEST_CASE("A worker that leaves says why, on one line, and its session ends", "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  const std::string session = JoinAs(client, v1::ROLLOUT);
  v1::ClientMessage leave;
  leave.set_id(9);
  leave.mutable_leave()->set_reason("E-7f3a:\nCUDA is gone");
  REQUIRE(client.Send(leave));
  REQUIRE(client.Ends());
  REQUIRE(fixture.Empties());
  REQUIRE(fixture.thread().Ask([&] { return fixture.calls().closed.at(session); }) ==
          absl::StrCat("worker engine0/0 (pid ", ::getpid(), ") left: E-7f3a:; CUDA is gone"));
  DoorClient wordy(fixture.path());
  JoinAs(wordy, v1::ROLLOUT);
  leave.mutable_leave()->set_reason(std::string(10'000, 'x'));
  REQUIRE(wordy.Send(leave));
  REQUIRE(absl::StrContains(test::RefusalOf(wordy).message(), "leave.reason: 10000 bytes"));
}

TEST_CASE("A session that ends while it is being opened is closed", "[rpc][local]") {
  DoorFixture fixture;
  fixture.thread().Ask([&] { return fixture.calls().hold_openings = true; });
  DoorClient client(fixture.path());
  JoiningWorker::Make(v1::ROLLOUT, "engine0").Send(client);
  REQUIRE(fixture.thread().Becomes([&] { return fixture.calls().held_opening != nullptr; }));
  client.HangUp();
  REQUIRE(fixture.Empties());
  fixture.thread().Ask([&] {
    CHECK(fixture.calls().closed.size() == 1);
    fixture.calls().held_opening({});
    return true;
  });
}

struct BadMessage {
  const char* name;
  std::string bytes;
  int descriptors;
  const char* text;  // in the refusal
};

std::vector<BadMessage> BadFirstMessages() {
  v1::ClientMessage finish;
  finish.set_id(5);
  finish.mutable_join_finish();
  v1::ClientMessage join;
  join.mutable_join()->set_protocol(1);
  v1::ClientMessage nothing;
  nothing.set_id(3);
  return {
      {"garbage", std::string(100, '\xff'), 0, "a packet of 100 bytes is no weightbridge.v1"},
      {"a packet beyond the limit", std::string(64 * 1024 + 1, 'x'), 0,
       "a packet has more than 65536 bytes"},
      {"no body", nothing.SerializeAsString(), 0, "a message that protocol 1 does not know"},
      {"an unknown body", std::string("\x08\x07\xba\x06\x00", 5), 0,
       "a message that protocol 1 does not know"},
      {"join_finish first", finish.SerializeAsString(), 0, "join_finish out of order, want join"},
      {"publish first", test::PublishOf(1, 1, 1000).SerializeAsString(), 0,
       "publish out of order, want join first"},
      {"a descriptor with join", join.SerializeAsString(), 1, "join carries 1 descriptors"},
      {"more descriptors than anyone may ask for", join.SerializeAsString(), 8,
       "a packet carries more than one descriptor"},
  };
}

TEST_CASE("What is no message of a join is refused by name", "[rpc][local]") {
  DoorFixture fixture;
  const FdHandle memory = test::MakeMemory(8);
  for (const BadMessage& bad : BadFirstMessages()) {
    CAPTURE(bad.name);
    DoorClient client(fixture.path());
    REQUIRE(client.SendBytes(
        bad.bytes, std::vector<int>(static_cast<std::size_t>(bad.descriptors), memory.get())));
    const absl::Status refusal = test::RefusalOf(client);
    CAPTURE(refusal.ToString());
    CHECK(absl::StrContains(refusal.message(), bad.text));
  }
}

TEST_CASE("What is no call of an open session is refused by name", "[rpc][local]") {
  v1::ClientMessage again;
  again.set_id(9);
  again.mutable_join()->set_protocol(1);
  v1::ClientMessage zero = test::PublishOf(0, 1, 1000);
  v1::ClientMessage twice = test::PublishOf(1, 1, 60'000);
  const auto [name, message, text] =
      GENERATE_COPY(table<std::string, v1::ClientMessage, std::string>(
          {{"a second join", again, "join in an open session, want publish"},
           {"id 0", zero, "publish: id 0 is for notices"},
           {"an id in use", twice, "publish: id 1 is in use"}}));
  CAPTURE(name);
  DoorFixture fixture;
  DoorClient client(fixture.path());
  const std::string session = JoinAs(client, v1::TRAINER);
  REQUIRE(client.Send(test::PublishOf(1, 1, 60'000)));
  REQUIRE(client.Send(message));
  const absl::Status refusal = test::RefusalOf(client);
  REQUIRE(absl::StrContains(refusal.message(), text));
  REQUIRE(absl::StrContains(fixture.thread().Ask([&] { return fixture.calls().closed[session]; }),
                            text));
}

TEST_CASE("A call that the leader could not take is refused at the door, and the session goes on",
          "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  JoinAs(client, v1::TRAINER);
  v1::ClientMessage labelled = test::PublishOf(2, 5, 60'000);
  labelled.mutable_publish()->set_label(std::string(8193, 'x'));
  v1::ClientMessage nameless = test::PublishOf(2, 5, 60'000);
  nameless.mutable_publish()->add_required_groups("");
  const std::vector<std::pair<v1::ClientMessage, std::string>> wrong{
      {test::PublishOf(1, 0, 60'000), "publish: version: 0, want >= 1"},
      {labelled, "publish: label: 8193 bytes, want at most 8192"},
      {nameless, "publish: required_groups: is empty"},
      {test::ReceiveOf(3, 0, 60'000), "receive: version: 0, want >= 1"}};
  for (const auto& [message, text] : wrong) {
    CAPTURE(text);
    REQUIRE(client.Send(message));
    const auto reply = client.Next();
    REQUIRE(reply.has_value());
    REQUIRE(reply->id() == message.id());
    REQUIRE(reply->status().message() == text);
  }
  REQUIRE(client.Send(test::PublishOf(4, 5, 60'000)));
  REQUIRE(fixture.thread().Becomes([&] { return fixture.calls().publishes.contains(5); }));
}

TEST_CASE("A ninth call at a time is refused with the number, and the session goes on",
          "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  JoinAs(client, v1::TRAINER);
  for (std::uint64_t id = 1; id <= 9; ++id) REQUIRE(client.Send(test::PublishOf(id, id, 60'000)));
  const auto refused = client.Next();
  REQUIRE(refused->id() == 9);
  REQUIRE(refused->status().code() == static_cast<int>(absl::StatusCode::kResourceExhausted));
  REQUIRE(
      absl::StrContains(refused->status().message(), "has 8 calls in progress, the most allowed"));
  fixture.thread().Ask([&] {
    fixture.calls().publishes.at(1)(PublishResult{});
    return true;
  });
  REQUIRE(client.Next()->id() == 1);
  REQUIRE(client.Send(test::PublishOf(10, 10, 60'000)));
  REQUIRE(fixture.thread().Becomes([&] { return fixture.calls().publishes.contains(10); }));
}

TEST_CASE("Random packets are refused, and the door serves on", "[rpc][local][property]") {
  DoorFixture fixture;
  for (int round = 0; round < 100; ++round) {
    INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
    std::mt19937_64 rng = test::TestRng(round);
    DoorClient client(fixture.path());
    std::string bytes(1 + rng() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(rng());
    REQUIRE(client.SendBytes(bytes));
    REQUIRE_FALSE(test::RefusalOf(client).ok());
  }
  REQUIRE(fixture.Empties());
  DoorClient good(fixture.path());
  JoinAs(good, v1::ROLLOUT);
}

TEST_CASE("No descriptor is left after 200 bad sessions", "[rpc][local]") {
  DoorFixture fixture;
  {
    DoorClient warm_up(fixture.path());
    JoinAs(warm_up, v1::ROLLOUT);
  }
  REQUIRE(fixture.Empties());
  const std::size_t before = test::OpenDescriptors();
  for (int round = 0; round < 200; ++round) {
    DoorClient client(fixture.path());
    JoiningWorker worker = JoiningWorker::Make(v1::ROLLOUT, "engine0");
    if (round % 4 == 0) worker.buffers[1].attach.set_bytes(1);
    if (round % 4 == 1) worker.join.set_buffers(1);
    if (round % 4 == 2) worker.buffers[1].memory = test::MakeMemory(8, false);
    if (round % 4 == 3) {
      const FdHandle extra = test::MakeMemory(8);
      client.Send(test::PublishOf(1, 1, 1), std::vector<int>(7, extra.get()));
    }
    worker.Send(client);
  }
  REQUIRE(fixture.Empties());
  REQUIRE(test::OpenDescriptors() == before);
}

TEST_CASE("A client that does not read is sent away", "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  const std::string session = JoinAs(client, v1::ROLLOUT);
  // Answers of 64 KiB fill the socket, then the door's own queue.
  fixture.thread().Ask([&] {
    for (std::uint64_t version = 1; version <= 2000; ++version) {
      fixture.door().NotifyGo(session, Version(version), [] {});
    }
    return true;
  });
  REQUIRE(fixture.thread().Becomes([&] { return fixture.calls().closed.contains(session); }));
  REQUIRE(absl::StrContains(fixture.thread().Ask([&] { return fixture.calls().closed[session]; }),
                            "does not read: 64 replies wait"));
}

TEST_CASE("A reply beyond a packet is cut, and says so", "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  JoinAs(client, v1::TRAINER);
  REQUIRE(client.Send(test::PublishOf(1, 1, 60'000)));
  REQUIRE(fixture.thread().Becomes([&] { return fixture.calls().publishes.contains(1); }));
  fixture.thread().Ask([&] {
    PublishResult result;
    result.status = absl::AbortedError(std::string(8000, 'x'));
    for (int group = 0; group < 500; ++group) {
      result.outcomes.push_back(
          {absl::StrCat("engine", group), absl::AbortedError(std::string(8000, 'y'))});
    }
    fixture.calls().publishes.at(1)(result);
    return true;
  });
  const auto reply = client.Next();
  REQUIRE(reply.has_value());
  REQUIRE(reply->ByteSizeLong() <= kMaxPacketBytes);
  REQUIRE(reply->publish().outcomes_size() > 50);
  REQUIRE(absl::EndsWith(reply->status().message(), " ..."));
  REQUIRE(absl::StrContains(reply->status().details(0), "more groups"));
}

TEST_CASE("A draining door refuses new work and lets old work end", "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  JoinAs(client, v1::TRAINER);
  REQUIRE(client.Send(test::PublishOf(1, 1, 60'000)));
  REQUIRE(fixture.thread().Becomes([&] { return fixture.calls().publishes.contains(1); }));
  bool quiet = false;
  fixture.thread().Ask([&] {
    fixture.door().StopAccepting();
    fixture.door().WhenQuiet([&quiet] { quiet = true; });
    return true;
  });
  REQUIRE_FALSE(DoorClient(fixture.path()).connected());
  REQUIRE(client.Send(test::PublishOf(2, 2, 60'000)));
  const auto refused = client.Next();
  REQUIRE(refused->id() == 2);
  REQUIRE(refused->status().message() == "node n0 drains");
  REQUIRE_FALSE(fixture.thread().Ask([&] { return quiet; }));
  fixture.thread().Ask([&] {
    fixture.calls().publishes.at(1)(PublishResult{});
    return true;
  });
  REQUIRE(client.Next()->id() == 1);
  REQUIRE(fixture.thread().Ask([&] { return quiet; }));
  fixture.thread().Ask([&] {
    fixture.door().Close(absl::UnavailableError("node n0 stops"));
    return true;
  });
  REQUIRE(test::RefusalOf(client) == absl::UnavailableError("node n0 stops"));
}

}  // namespace
}  // namespace wb
