// A Join that cannot be: refused by the daemon, by the library, or by what is at the socket.
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/client/client_fixture.h"
#include "tests/client/join_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"

namespace wb::test {
namespace {

using namespace std::chrono_literals;
using weightbridge::Dtype;
using weightbridge::JoinOptions;
using weightbridge::Layout;
using weightbridge::Param;
using weightbridge::Result;
using weightbridge::Rollout;
using weightbridge::SharedBuffer;

TEST_CASE("a refused join gives the daemon's words, and each reason as a detail", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    const std::optional<JoinRecord> record = peer.TakeJoin();
    if (!record) return;
    v1::DaemonMessage reply;
    reply.set_id(record->last_id);
    reply.mutable_status()->set_code(WB_INVALID_ARGUMENT);
    reply.mutable_status()->set_message("2 reasons");
    reply.mutable_status()->add_details("tensor w: box [1,0]..[2,5] is outside [2,4]");
    reply.mutable_status()->add_details("buffer w has 16 bytes, want 20");
    peer.Send(reply);
  });
  const Result<Rollout> joined = JoinRollout(daemon);
  REQUIRE_FALSE(joined.ok());
  CHECK(joined.error().code == WB_INVALID_ARGUMENT);
  CHECK(joined.error().message == "join of engine0/1 at " + daemon.socket() + ": 2 reasons");
  CHECK(joined.error().details ==
        std::vector<std::string>{"tensor w: box [1,0]..[2,5] is outside [2,4]",
                                 "buffer w has 16 bytes, want 20"});
}

TEST_CASE("a refusal in mid-join is the reason given, though the daemon hung up on what followed",
          "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    const std::optional<Packet> join = peer.Next();
    if (join) peer.Refuse(join->message.id(), WB_RESOURCE_EXHAUSTED, "layouts may have 4096 bytes");
  });
  Layout layout;
  const std::string name(1000, 'p');
  for (int i = 0; i < 2000; ++i) {
    REQUIRE(layout.AddParam(Param(name + std::to_string(i), {1})).ok());
  }
  const Result<Rollout> joined = Rollout::Join(OptionsFor(daemon.socket()), layout);
  REQUIRE_FALSE(joined.ok());
  CHECK(joined.error().code == WB_RESOURCE_EXHAUSTED);
  CHECK(Contains(joined.error().message, "layouts may have 4096 bytes"));
}

TEST_CASE("Join names a missing and a dead socket at once", "[client][field][case-157]") {
  const TempFolder folder;
  const Layout layout = RowLayout();
  const Stopwatch watch;

  SECTION("missing: ENOENT") {
    const std::string text = JoinError(OptionsFor(folder.path() + "/worker.sock"), layout);
    CHECK(Contains(text, "UNAVAILABLE: join of engine0/1 at " + folder.path() + "/worker.sock"));
    CHECK(Contains(text, "ENOENT"));
    CHECK(Contains(text, "is a weightbridged running with this run_dir?"));
  }
  SECTION("dead: ECONNREFUSED") {
    const std::string path = folder.path() + "/worker.sock";
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    REQUIRE(::bind(fd, static_cast<sockaddr*>(static_cast<void*>(&address)), sizeof(address)) == 0);
    ::close(fd);
    const std::string text = JoinError(OptionsFor(path), layout);
    CHECK(Contains(text, "UNAVAILABLE"));
    CHECK(Contains(text, "ECONNREFUSED"));
  }
  SECTION("not a socket: ECONNREFUSED") {
    const std::string path = folder.path() + "/file";
    ::close(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    CHECK(Contains(JoinError(OptionsFor(path), layout), "ECONNREFUSED"));
  }
  SECTION("a path too long for a socket") {
    const std::string text = JoinError(OptionsFor("/" + std::string(200, 's')), layout);
    CHECK(Contains(text, "INVALID_ARGUMENT"));
    CHECK(Contains(text, "want at most 107"));
  }
  CHECK(watch.elapsed() < Slack(2000ms));
}

TEST_CASE("Join of a socket that this user may not open names EACCES",
          "[client][field][case-157]") {
  FakeDaemon daemon(kGrant);
  REQUIRE(::chmod(daemon.socket().c_str(), 0) == 0);
  const Layout layout = RowLayout();
  const std::string text = InChild([&]() -> std::string {
    // Root may open everything; a child can become somebody else.
    if (::geteuid() == 0 && ::setuid(65534) != 0) return "cannot change user";
    return JoinError(OptionsFor(daemon.socket()), layout);
  });
  CHECK(Contains(text, "PERMISSION_DENIED"));
  CHECK(Contains(text, daemon.socket()));
  CHECK(Contains(text, "EACCES"));
}

TEST_CASE("Join of a silent daemon ends one second after its timeout", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) { peer.StaySilent(); });
  JoinOptions options = OptionsFor(daemon.socket());
  options.timeout = 200ms;
  const Stopwatch watch;
  const Result<Rollout> joined = Rollout::Join(options, RowLayout());
  REQUIRE_FALSE(joined.ok());
  CHECK(joined.error().code == WB_DEADLINE_EXCEEDED);
  CHECK(Contains(joined.error().message, daemon.socket()));
  REQUIRE(joined.error().details.size() == 1);
  CHECK(Contains(joined.error().details[0], "reason=LATE domain=weightbridge since_seconds=1."));
  CHECK(Contains(joined.error().details[0], "stage=answer"));
  CHECK(watch.elapsed() >= 1200ms);
  CHECK(watch.elapsed() < Slack(1700ms));
}

TEST_CASE("an answer to Join that is none is refused by what it is", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int number) {
    const std::optional<JoinRecord> record = peer.TakeJoin();
    if (!record) return;
    v1::DaemonMessage reply;
    switch (number) {
      case 0:
        peer.SendRaw(std::string("\xff\xff\xff garbage"));
        break;
      case 1:
        reply.set_id(record->last_id + 1000);
        reply.mutable_join()->set_session("s");
        peer.Send(reply);
        break;
      case 2:
        reply.set_id(record->last_id);
        reply.mutable_publish();
        peer.Send(reply);
        break;
      default:
        peer.SendRaw(std::string(70'000, 'x'));
    }
  });
  const JoinOptions options = OptionsFor(daemon.socket());
  const Layout layout = RowLayout();
  CHECK(Contains(JoinError(options, layout), "not a DaemonMessage"));
  CHECK(Contains(JoinError(options, layout), "is not one to Join"));
  CHECK(Contains(JoinError(options, layout), "is not one to Join"));
  CHECK(Contains(JoinError(options, layout), "a packet of 70000 bytes, want at most 65536"));
}

TEST_CASE("a missing rank is refused and never taken for rank 0", "[client][field][case-6]") {
  JoinOptions options = OptionsFor("/nowhere/worker.sock");
  options.rank.reset();
  CHECK(Contains(JoinError(options, RowLayout()),
                 "INVALID_ARGUMENT: join of group engine0: rank is required"));
}

TEST_CASE("Join refuses an incomplete identity before it connects", "[client]") {
  const Layout layout = RowLayout();
  JoinOptions options = OptionsFor("/nowhere/worker.sock");
  SECTION("no socket") {
    options.socket.clear();
    CHECK(Contains(JoinError(options, layout), "no socket"));
  }
  SECTION("no job") {
    options.job.clear();
    CHECK(Contains(JoinError(options, layout), "no job"));
  }
  SECTION("no group") {
    options.group.clear();
    CHECK(Contains(JoinError(options, layout), "no group"));
  }
  SECTION("names that no message can carry") {
    options.group = "engine\xff";
    CHECK(Contains(JoinError(options, layout), "group is not UTF-8 at byte 6"));
    options.job = "\xc3(";
    CHECK(Contains(JoinError(options, layout), "job is not UTF-8 at byte 0"));
  }
  SECTION("no world") {
    options.world_size = 0;
    CHECK(Contains(JoinError(options, layout), "world_size is 0, want >= 1"));
  }
  SECTION("a rank outside the world") {
    options.rank = 2;
    CHECK(Contains(JoinError(options, layout), "rank is 2, want 0 to 1"));
  }
  SECTION("a negative timeout") {
    options.timeout = -1ms;
    CHECK(Contains(JoinError(options, layout), "timeout_ms is -1"));
  }
}

TEST_CASE("a serialised layout must name the worker that joins", "[client]") {
  v1::Layout wire;
  wire.set_job("run1");
  wire.mutable_worker()->set_role(v1::ROLLOUT);
  wire.mutable_worker()->set_group("engine0");
  wire.mutable_worker()->set_rank(1);
  wire.mutable_worker()->set_node("n7");

  SECTION("it does: it is sent as it is") {
    JoinKeeper keeper;
    const Layout layout = *Layout::FromSerialized(wire.SerializeAsString());
    REQUIRE(Rollout::Join(OptionsFor(keeper.daemon.socket()), layout).ok());
    CHECK(Kept(keeper).layout.SerializeAsString() == wire.SerializeAsString());
  }
  SECTION("another job") {
    wire.set_job("run2");
    const Layout layout = *Layout::FromSerialized(wire.SerializeAsString());
    CHECK(Contains(JoinError(OptionsFor("/s"), layout), "job is run1, the layout's is run2"));
  }
  SECTION("another rank") {
    wire.mutable_worker()->set_rank(0);
    const Layout layout = *Layout::FromSerialized(wire.SerializeAsString());
    CHECK(Contains(JoinError(OptionsFor("/s"), layout), "rank is 1, the layout's is 0"));
  }
  SECTION("another group") {
    wire.mutable_worker()->set_group("engine1");
    const Layout layout = *Layout::FromSerialized(wire.SerializeAsString());
    CHECK(
        Contains(JoinError(OptionsFor("/s"), layout), "group is engine0, the layout's is engine1"));
  }
  SECTION("the other role") {
    wire.mutable_worker()->set_role(v1::TRAINER);
    const Layout layout = *Layout::FromSerialized(wire.SerializeAsString());
    CHECK(Contains(JoinError(OptionsFor("/s"), layout), "the other role's"));
  }
}

TEST_CASE("a buffer without memory, and memory without a buffer, are refused by name", "[client]") {
  Layout layout;
  Param param("w", {4});
  param.buffer = "flat";
  param.AddPiece({"w", {0}, {4}, {0}, {}});
  REQUIRE(layout.AddTensor("w", Dtype::kFp32, {4}).ok());
  REQUIRE(layout.AddParam(param).ok());
  CHECK(Contains(JoinError(OptionsFor("/s"), layout),
                 "param w lies in buffer flat, which has no memory"));

  REQUIRE(layout.SetBuffer("flat", *SharedBuffer::Create(16)).ok());
  REQUIRE(layout.SetBuffer("flta", *SharedBuffer::Create(16)).ok());
  CHECK(Contains(JoinError(OptionsFor("/s"), layout),
                 "memory is given for buffer flta, which no param names"));
}

}  // namespace
}  // namespace wb::test
