// What a session says of the memory and the daemon it is not sure of: quarantine, leaving.
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
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
using weightbridge::Result;
using weightbridge::Rollout;
using weightbridge::SharedBuffer;
using weightbridge::Trainer;

/// Whether a shared buffer is mapped at `address`.
bool Mapped(const void* address) {
  std::ostringstream from;
  from << std::hex << reinterpret_cast<std::uintptr_t>(address) << "-";
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.rfind(from.str(), 0) == 0 && Contains(line, "memfd:weightbridge")) return true;
  }
  return false;
}

/// Takes a Receive, is allowed to write, and says no more.
void FallSilentAfterGo(FakePeer& peer, std::uint64_t version) {
  if (!TakeRequest(peer)) return;
  peer.Send(Go(version));
  TakeRequest(peer);
  peer.StaySilent();
}

TEST_CASE("memory that a silent daemon may write is used again when a Join is granted",
          "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int number) {
    if (number == 1) return peer.StaySilent();
    if (!peer.GrantJoin()) return;
    if (number == 0) return FallSilentAfterGo(peer, 7);
    if (Deliver(peer, 8)) peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  const std::string may_change = "memory of engine0/1 may still change: the daemon (pid " +
                                 std::to_string(::getpid()) +
                                 "), which did not answer Receive of version 7, lives";
  REQUIRE(Contains(ErrorOf(rollout->Receive(7, {100ms})).message, "may still change"));
  const Stopwatch watch;
  const Error error = ErrorOf(rollout->WaitForVersion(8, 100ms));
  CHECK(error.code == WB_DEADLINE_EXCEEDED);
  CHECK(Contains(error.message, may_change));
  CHECK(Contains(error.message, "memory of engine0/1 is invalid as before"));
  CHECK(watch.elapsed() < Slack(1600ms));
  CHECK(rollout->memory_state() == MemoryState::kInvalid);
  REQUIRE(rollout->Receive(8, {}).ok());
  CHECK(rollout->held_version() == 8);
}

TEST_CASE("a Publish that is not answered keeps the memory from the next until a Join",
          "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int number) {
    if (number == 1) return peer.Close();
    if (!peer.GrantJoin()) return;
    const std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (number == 2 && request) {
      v1::DaemonMessage reply = ReplyTo(request->id());
      reply.mutable_publish()->set_version(9);
      peer.Send(reply);
    }
    peer.StaySilent();
  });
  Result<Trainer> trainer = JoinTrainer(daemon);
  REQUIRE(trainer.ok());
  const std::string may_be_read = "memory of policy/1 may still be read: the daemon (pid";
  CHECK(Contains(ErrorOf(trainer->Publish(7, {"", 100ms})).message, may_be_read));
  CHECK(Contains(ErrorOf(trainer->Publish(8, {"", 5s})).message, may_be_read));
  CHECK(trainer->Publish(9, {"", 5s}).ok());
}

TEST_CASE("quarantined memory stays mapped when its session and buffer are gone", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (peer.GrantJoin()) FallSilentAfterGo(peer, 7);
  });
  const auto used = [&](bool receive) {
    Result<SharedBuffer> memory = SharedBuffer::Create(16);
    REQUIRE(memory.ok());
    Result<Rollout> rollout = Rollout::Join(OptionsFor(daemon.socket()), RowLayout(*memory));
    REQUIRE(rollout.ok());
    if (receive) REQUIRE_FALSE(rollout->Receive(7, {50ms}).ok());
    return memory->data();
  };
  CHECK_FALSE(Mapped(used(false)));
  CHECK(Mapped(used(true)));
}

TEST_CASE("a worker that leaves tells why, and calls no more", "[client]") {
  Seen<std::string> reasons;
  FakeDaemon daemon([&](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    if (const auto request = TakeRequest(peer)) reasons.Add(request->leave().reason());
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  CHECK(ErrorOf(rollout->Leave("not \xff")).code == WB_INVALID_ARGUMENT);
  CHECK(ErrorOf(rollout->Leave(std::string(2000, 'x'))).code == WB_INVALID_ARGUMENT);
  REQUIRE(rollout->Leave("E-7f3a").ok());
  CHECK(reasons.all() == std::vector<std::string>{"E-7f3a"});
  CHECK(rollout->session_id().empty());
  const Error error = ErrorOf(rollout->Receive(7, {}));
  CHECK(error.code == WB_FAILED_PRECONDITION);
  CHECK(error.message == "Receive of version 7: engine0/1 has left");
}

TEST_CASE("culprits that a daemon names are details, one each", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    const std::optional<v1::ClientMessage> request = TakeRequest(peer);
    if (!request) return;
    v1::DaemonMessage reply = ReplyTo(request->id());
    reply.mutable_status()->set_code(WB_DEADLINE_EXCEEDED);
    reply.mutable_status()->set_message("not ready");
    v1::ErrorInfo& late = *reply.mutable_status()->add_infos();
    late.set_reason("LATE");
    late.set_domain("weightbridge");
    auto& metadata = *late.mutable_metadata();
    metadata["worker"] = "engine0/2";
    metadata["stage"] = "accept";
    metadata["since_seconds"] = "1.5";
    peer.Send(reply);
    peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  CHECK(ErrorOf(rollout->Receive(7, {})).details ==
        std::vector<std::string>{"reason=LATE domain=weightbridge since_seconds=1.5 stage=accept "
                                 "worker=engine0/2"});
}

}  // namespace
}  // namespace wb::test
