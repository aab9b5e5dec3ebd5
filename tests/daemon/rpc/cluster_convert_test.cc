#include "daemon/rpc/cluster/cluster_convert.h"

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"

#include "daemon/rpc/wire_values.h"
#include "proto/convert.h"
#include "tests/daemon/rpc/door_client.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

const std::string kSession(32, 'a');
constexpr Term kTerm(41);

v1::Layout WireLayout() {
  v1::Layout layout = test::JoiningWorker::Make(v1::ROLLOUT, "engine0").layout;
  layout.mutable_worker()->set_node("n0");
  return layout;
}

std::shared_ptr<const Registration> SomeRegistration() {
  return std::make_shared<const Registration>(
      std::get<Registration>(RegistrationFromProto(WireLayout())));
}

PlanPart SomePlanPart() {
  PlanPart part;
  part.job = "job";
  part.group = "engine0";
  part.fingerprint = Fingerprint(123);
  part.workers = {{{"policy", 0}, "n0"}, {{"engine0", 0}, "n1"}};
  part.tensors = {{"a", Dtype::kFp32, {4}, false}};
  part.moves = {{WorkerIndex(0), WorkerIndex(1), TensorId(0), *Box::Create({1}, {3}), 8}};
  return part;
}

std::vector<ToLeader> AllToLeader() {
  return {ClusterHello{"n0", Incarnation(9), "address\0with zero", "tcp", "host", 12},
          RegisterWorker{kSession,
                         Incarnation(5),
                         4,
                         Epoch(2),
                         Version(6),
                         MemoryState::kInDoubt,
                         AttemptId(77),
                         SomeRegistration(),
                         {},
                         {{"engine0", Version(5)}}},
          UnregisterWorker{kSession, "worker engine0/0 (pid 1) closed its connection", true},
          PublishVersion{kSession, Version(3), {"step 30", {"engine0", "engine1"}}, 0.25},
          AcceptVersion{kSession, Version(3)},
          GiveUpVersion{kSession, Version(3), "late: policy/1"},
          AttemptPrepared{AttemptId(77)},
          AttemptStaged{AttemptId(77), {1, 2, 3}},
          AttemptFailed{AttemptId(77), absl::AbortedError("n1 is gone")},
          AttemptAborted{AttemptId(77)},
          AttemptCommitted{AttemptId(77)},
          Heartbeat{}};
}

std::vector<FromLeader> AllFromLeader() {
  const PrepareAttempt prepare{
      AttemptId(77),
      "job",
      "engine0",
      Version(3),
      Fingerprint(123),
      SomePlanPart(),
      {{"n0", Incarnation(9), "address"}},
      {{"engine0/0", {Incarnation(5), Epoch(2)}}, {"policy/0", {Incarnation(6), Epoch(0)}}},
      {"engine8", "engine9"}};
  PrepareAttempt known = prepare;
  known.plan.reset();
  return {Welcome{Incarnation(8)},
          WorkerRegistered{kSession, absl::OkStatus()},
          WorkerRegistered{kSession, absl::AlreadyExistsError("engine0/0")},
          VersionOutcome{kSession, Version(3), true},
          VersionOffered{"job", "engine0", Version(3)},
          VersionFailed{"job", "engine0", Version(3), absl::AbortedError("policy/0 is gone")},
          prepare,
          known,
          GoAttempt{AttemptId(77)},
          CommitAttempt{AttemptId(77)},
          AbortAttempt{AttemptId(77), absl::DeadlineExceededError("late")},
          FinishPublish{kSession,
                        Version(3),
                        absl::OkStatus(),
                        {{"engine0", absl::OkStatus()}, {"engine1", absl::AbortedError("x")}},
                        0.25,
                        0.5},
          FinishReceive{kSession, Version(3), absl::AbortedError("x"), 0.25, 0.5},
          Heartbeat{}};
}

TEST_CASE("Every message to the leader survives the wire", "[rpc][convert]") {
  std::vector<std::size_t> kinds;
  for (const ToLeader& message : AllToLeader()) {
    const v1::ClusterRequest wire = ToProto(message, kTerm);
    CAPTURE(wire.ShortDebugString());
    REQUIRE(wire.term() == kTerm.value());
    v1::ClusterRequest received;
    REQUIRE(received.ParseFromString(wire.SerializeAsString()));
    const absl::StatusOr<ToLeader> read = ToLeaderFromProto(received);
    REQUIRE(read.status() == absl::OkStatus());
    REQUIRE(read->index() == message.index());
    REQUIRE(ToProto(*read, kTerm).ShortDebugString() == wire.ShortDebugString());
    kinds.push_back(message.index());
  }
  REQUIRE(kinds.size() == std::variant_size_v<ToLeader>);
}

TEST_CASE("Every message from the leader survives the wire", "[rpc][convert]") {
  std::vector<bool> seen(std::variant_size_v<FromLeader>);
  for (const FromLeader& message : AllFromLeader()) {
    const v1::ClusterReply wire = ToProto(message, kTerm);
    CAPTURE(wire.ShortDebugString());
    v1::ClusterReply received;
    REQUIRE(received.ParseFromString(wire.SerializeAsString()));
    const absl::StatusOr<FromLeader> read = FromLeaderFromProto(received);
    REQUIRE(read.status() == absl::OkStatus());
    REQUIRE(read->index() == message.index());
    REQUIRE(ToProto(*read, kTerm).ShortDebugString() == wire.ShortDebugString());
    seen[message.index()] = true;
  }
  REQUIRE(std::count(seen.begin(), seen.end(), true) ==
          static_cast<std::ptrdiff_t>(std::variant_size_v<FromLeader>));
}

TEST_CASE("A registration arrives as it was", "[rpc][convert]") {
  const RegisterWorker sent{kSession,
                            Incarnation(5),
                            4,
                            Epoch(2),
                            Version(6),
                            MemoryState::kInDoubt,
                            AttemptId(77),
                            SomeRegistration(),
                            {},
                            {{"engine1", Version(5)}}};
  const absl::StatusOr<ToLeader> read = ToLeaderFromProto(ToProto(ToLeader(sent), kTerm));
  REQUIRE(read.ok());
  const auto& received = std::get<RegisterWorker>(*read);
  REQUIRE(*received.registration == *sent.registration);
  REQUIRE(received.contents == ContentsId{});
  REQUIRE(received.memory == MemoryState::kInDoubt);
  REQUIRE(received.attempt == AttemptId(77));
  REQUIRE(received.commits.size() == 1);
  REQUIRE(received.commits.front().group == "engine1");
  REQUIRE(received.commits.front().version == Version(5));
  REQUIRE(received.held_version == Version(6));
  REQUIRE(received.epoch == Epoch(2));
}

TEST_CASE("A registration by digest says who the worker is and no more", "[rpc][convert]") {
  const ContentsId contents{std::string(32, 'd'), 1'000'000};
  const RegisterWorker sent{
      kSession, Incarnation(5),     4,        Epoch(2), Version(6), MemoryState::kValid,
      {},       SomeRegistration(), contents, {}};
  const v1::ClusterRequest wire = ToProto(ToLeader(sent), kTerm);
  REQUIRE(wire.ByteSizeLong() < 200);
  const absl::StatusOr<ToLeader> read = ToLeaderFromProto(wire);
  REQUIRE(read.ok());
  const auto& received = std::get<RegisterWorker>(*read);
  REQUIRE(received.contents == contents);
  REQUIRE(received.registration->job == sent.registration->job);
  REQUIRE(received.registration->layout.name == sent.registration->layout.name);
  REQUIRE(received.registration->layout.pieces.empty());

  v1::ClusterRequest bad = wire;
  bad.mutable_register_worker()->mutable_contents()->set_sha256("short");
  REQUIRE(ToLeaderFromProto(bad).status().message() == "contents.sha256: has 5 bytes, want 32");
  bad = wire;
  bad.mutable_register_worker()->mutable_contents()->set_bytes(0);
  REQUIRE(ToLeaderFromProto(bad).status().message() == "contents.bytes: is 0");
  bad = wire;
  bad.mutable_register_worker()->mutable_layout()->mutable_worker()->add_params();
  REQUIRE(ToLeaderFromProto(bad).status().message() ==
          "layout: has tensors or params beside those of its contents");
}

TEST_CASE("A plan part arrives as it was, and stays away when it was left out", "[rpc][convert]") {
  const auto read = [](const FromLeader& message) {
    return std::get<PrepareAttempt>(*FromLeaderFromProto(ToProto(message, kTerm)));
  };
  const std::vector<FromLeader> all = AllFromLeader();
  REQUIRE(read(all[6]).plan == SomePlanPart());
  REQUIRE_FALSE(read(all[7]).plan.has_value());
  REQUIRE(read(all[7]).workers == std::get<PrepareAttempt>(all[7]).workers);
  REQUIRE(read(all[7]).forget == std::vector<std::string>{"engine8", "engine9"});
}

template <typename Wire>
struct Spoiled {
  const char* text;  // in the refusal
  std::size_t sample;
  std::function<void(Wire&)> spoil;
};

TEST_CASE("A worker's words are cut to what the leader takes, and end no stream",
          "[rpc][convert]") {
  const std::string long_text = std::string(kMaxTextBytes - 1, 'x') + "\u00e9 and more";
  const std::string cut(kMaxTextBytes - 1, 'x');  // not within a character
  const auto arrives = [](const ToLeader& message) {
    return *ToLeaderFromProto(ToProto(message, kTerm));
  };
  const ToLeader left = arrives(UnregisterWorker{kSession, long_text, false});
  REQUIRE(std::get<UnregisterWorker>(left).reason == cut);
  const ToLeader gave_up = arrives(GiveUpVersion{kSession, Version(3), long_text});
  REQUIRE(std::get<GiveUpVersion>(gave_up).reason == cut);
  const ToLeader published = arrives(PublishVersion{kSession, Version(3), {long_text, {}}});
  REQUIRE(std::get<PublishVersion>(published).options.label == cut);
}

TEST_CASE("A message to the leader that is wrong is refused by its field", "[rpc][convert]") {
  using W = v1::ClusterRequest;
  const std::vector<Spoiled<W>> cases = {
      {"protocol: 2", 0, [](W& w) { w.mutable_hello()->set_protocol(2); }},
      {"node: is empty", 0, [](W& w) { w.mutable_hello()->clear_node(); }},
      {"node: holds a character", 0, [](W& w) { w.mutable_hello()->set_node("a/b"); }},
      {"incarnation: 0", 0, [](W& w) { w.mutable_hello()->set_incarnation(0); }},
      {"data_address: 70000 bytes", 0,
       [](W& w) { w.mutable_hello()->set_data_address(std::string(70'000, 'x')); }},
      {"snapshot_seconds: -1", 3, [](W& w) { w.mutable_publish()->set_snapshot_seconds(-1); }},
      {"session: 5 characters", 1, [](W& w) { w.mutable_register_worker()->set_session("short"); }},
      {"session: is not lower case hex", 1,
       [](W& w) { w.mutable_register_worker()->set_session(std::string(32, 'G')); }},
      {"incarnation: 0", 1, [](W& w) { w.mutable_register_worker()->set_incarnation(0); }},
      {"world_size: -1", 1, [](W& w) { w.mutable_register_worker()->set_world_size(-1); }},
      {"memory: state 0", 1, [](W& w) { w.mutable_register_worker()->clear_memory(); }},
      {"held_version: 0", 1, [](W& w) { w.mutable_register_worker()->set_held_version(0); }},
      {"dtype", 1,
       [](W& w) {
         (*w.mutable_register_worker()->mutable_layout()->mutable_tensors())["a"].clear_dtype();
       }},
      {"reason: 9000 bytes", 2,
       [](W& w) { w.mutable_unregister_worker()->set_reason(std::string(9'000, 'x')); }},
      {"version: 0", 3, [](W& w) { w.mutable_publish()->set_version(0); }},
      {"version: 0", 4, [](W& w) { w.mutable_accept()->set_version(0); }},
      {"attempt: 0", 6, [](W& w) { w.mutable_prepared()->set_attempt(0); }},
      {"status: OK in a failure", 8, [](W& w) { w.mutable_failed()->clear_status(); }},
      {"commits.group: is empty", 1,
       [](W& w) { w.mutable_register_worker()->mutable_commits(0)->clear_group(); }},
      {"body: is none", 11, [](W& w) { w.clear_body(); }},
  };
  for (const Spoiled<W>& bad : cases) {
    W wire = ToProto(AllToLeader()[bad.sample], kTerm);
    bad.spoil(wire);
    const absl::StatusOr<ToLeader> read = ToLeaderFromProto(wire);
    CAPTURE(bad.text, read.status().ToString());
    CHECK(read.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(read.status().message(), bad.text));
  }
}

TEST_CASE("A message from the leader that is wrong is refused by its field", "[rpc][convert]") {
  using W = v1::ClusterReply;
  const std::vector<Spoiled<W>> cases = {
      {"session: 0 characters", 1, [](W& w) { w.mutable_worker_registered()->clear_session(); }},
      {"group: is empty", 4, [](W& w) { w.mutable_version_offered()->clear_group(); }},
      {"status: OK in a failure", 5, [](W& w) { w.mutable_version_failed()->clear_status(); }},
      {"attempt: 0", 6, [](W& w) { w.mutable_prepare()->set_attempt(0); }},
      {"src", 6, [](W& w) { w.mutable_prepare()->mutable_plan()->mutable_moves(0)->set_src(9); }},
      {"version: 0", 3, [](W& w) { w.mutable_version_outcome()->clear_version(); }},
      {"incarnations: has none of engine0/0", 6,
       [](W& w) { w.mutable_prepare()->mutable_incarnations()->erase("engine0/0"); }},
      {"incarnations: has 3 workers", 6,
       [](W& w) { (*w.mutable_prepare()->mutable_incarnations())["engine0/9"] = 1; }},
      {"forget: holds a character", 6, [](W& w) { w.mutable_prepare()->set_forget(0, "a/b"); }},
      {"peers.node", 6, [](W& w) { w.mutable_prepare()->mutable_peers(0)->clear_node(); }},
      {"status: OK in an abort", 10, [](W& w) { w.mutable_abort()->clear_status(); }},
      {"wait_seconds", 11,
       [](W& w) {
         w.mutable_finish_publish()->set_wait_seconds(std::numeric_limits<double>::quiet_NaN());
       }},
      {"move_seconds: -1", 12, [](W& w) { w.mutable_finish_receive()->set_move_seconds(-1); }},
      {"body: is none", 13, [](W& w) { w.clear_body(); }},
  };
  for (const Spoiled<W>& bad : cases) {
    W wire = ToProto(AllFromLeader()[bad.sample], kTerm);
    bad.spoil(wire);
    const absl::StatusOr<FromLeader> read = FromLeaderFromProto(wire);
    CAPTURE(bad.text, read.status().ToString());
    CHECK(read.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(read.status().message(), bad.text));
  }
}

}  // namespace
}  // namespace wb
