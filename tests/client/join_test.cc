#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/client/client_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"

namespace wb::test {
namespace {

using namespace std::chrono_literals;
using weightbridge::Dtype;
using weightbridge::JoinOptions;
using weightbridge::Layout;
using weightbridge::Memory;
using weightbridge::MemoryState;
using weightbridge::Param;
using weightbridge::Result;
using weightbridge::Rollout;
using weightbridge::SharedBuffer;
using weightbridge::Trainer;

constexpr auto kGrant = [](FakePeer& peer, int) {
  peer.GrantJoin();
  peer.StaySilent();
};

/// A daemon that grants joins and keeps what it was told.
struct JoinKeeper {
  Seen<JoinRecord> joins;
  FakeDaemon daemon{[this](FakePeer& peer, int) {
    if (std::optional<JoinRecord> record = peer.GrantJoin()) joins.Add(*record);
    peer.StaySilent();
  }};
};

std::string JoinError(const JoinOptions& options, const Layout& layout) {
  const Result<Rollout> joined = Rollout::Join(options, layout);
  if (joined.ok()) return "joined";
  return joined.error().ToString();
}

/// Waits until the script has seen the join whole: the reply comes before the record is kept.
JoinRecord Kept(const JoinKeeper& keeper) {
  REQUIRE(Soon([&] { return !keeper.joins.all().empty(); }));
  return keeper.joins.all().front();
}

TEST_CASE("Join says who joins, in which process, holding nothing", "[client]") {
  JoinKeeper keeper;
  const Result<Rollout> rollout = JoinRollout(keeper.daemon);
  REQUIRE(rollout.ok());
  CHECK(rollout->session_id() == "0123456789abcdef0123456789abcdef");
  CHECK(rollout->node() == "n0");

  const JoinRecord record = Kept(keeper);
  CHECK(record.request.protocol() == 1);
  CHECK(record.request.job() == "run1");
  CHECK(record.request.role() == v1::ROLLOUT);
  CHECK(record.request.group() == "engine0");
  CHECK(record.request.has_rank());
  CHECK(record.request.rank() == 1);
  CHECK(record.request.world_size() == 2);
  CHECK(record.request.incarnation() == 42);
  CHECK(record.request.held_version() == 0);
  CHECK(record.request.memory() == v1::MEMORY_EMPTY);
  CHECK(record.request.buffers() == 1);
  CHECK(record.request.layout_bytes() == record.layout.ByteSizeLong());
}

TEST_CASE("Join sends the layout as it was declared, with the worker's name in it", "[client]") {
  JoinKeeper keeper;
  Layout layout;
  REQUIRE(layout.AddTensor("w", Dtype::kBf16, {3, 2}, weightbridge::Overlap::kIdentical).ok());
  REQUIRE(layout.AddAlias("tied", "w").ok());
  Param turned("w_t", {2, 3});
  turned.dtype = Dtype::kBf16;
  turned.strides = {8, 1};
  turned.buffer = "flat";
  turned.offset_bytes = 64;
  turned.AddPiece({"w", {0, 0}, {3, 2}, {0, 0}, {1, 0}});
  REQUIRE(layout.AddParam(turned).ok());
  Param scratch("scratch", {5});
  scratch.dtype = Dtype::kFp32;
  scratch.local = true;
  REQUIRE(layout.AddParam(scratch).ok());
  REQUIRE(layout.SetBuffer("flat", *SharedBuffer::Create(4096)).ok());
  REQUIRE(Trainer::Join(OptionsFor(keeper.daemon.socket()), layout).ok());

  const v1::Layout sent = Kept(keeper).layout;
  CHECK(sent.job() == "run1");
  CHECK(sent.worker().role() == v1::TRAINER);
  CHECK(sent.worker().group() == "engine0");
  CHECK(sent.worker().rank() == 1);
  CHECK(sent.aliases().at("tied") == "w");
  const v1::Tensor& tensor = sent.tensors().at("w");
  CHECK(tensor.dtype() == v1::BF16);
  CHECK(tensor.overlap() == v1::IDENTICAL);
  CHECK(std::vector<std::int64_t>(tensor.shape().begin(), tensor.shape().end()) ==
        std::vector<std::int64_t>{3, 2});
  REQUIRE(sent.worker().params_size() == 2);
  const v1::Param& param = sent.worker().params(0);
  CHECK(param.name() == "w_t");
  CHECK(param.buffer() == "flat");
  CHECK(param.offset_bytes() == 64);
  CHECK(param.dtype() == v1::BF16);
  CHECK(param.strides(0) == 8);
  CHECK(param.strides(1) == 1);
  REQUIRE(param.pieces_size() == 1);
  CHECK(param.pieces(0).box().hi(0) == 3);
  CHECK(param.pieces(0).box().hi(1) == 2);
  CHECK(param.pieces(0).axes(0) == 1);
  CHECK(param.pieces(0).axes(1) == 0);
  CHECK(sent.worker().params(1).local());
}

TEST_CASE("a layout larger than a packet goes in parts and arrives whole", "[client]") {
  JoinKeeper keeper;
  Layout layout;
  constexpr int kParams = 3000;
  const SharedBuffer memory = *SharedBuffer::Create(4096);
  REQUIRE(layout.AddTensor("w", Dtype::kFp32, {kParams}).ok());
  for (int i = 0; i < kParams; ++i) {
    Param param("model.layers." + std::to_string(i) + ".self_attention.linear_qkv.weight", {1});
    param.buffer = "flat";
    param.AddPiece({"w", {i}, {i + 1}, {0}, {}});
    REQUIRE(layout.AddParam(param).ok());
  }
  REQUIRE(layout.SetBuffer("flat", memory).ok());
  REQUIRE(Rollout::Join(OptionsFor(keeper.daemon.socket()), layout).ok());

  const JoinRecord record = Kept(keeper);
  CHECK(record.request.layout_bytes() > 3 * 65'536);
  CHECK(record.parts >= 4);
  CHECK(record.largest_packet <= 65'536);
  CHECK(record.layout.worker().params_size() == kParams);
}

TEST_CASE("the same layout is the same bytes, whatever the order of its tensors", "[client]") {
  const auto sent = [](const std::vector<std::string>& names) {
    JoinKeeper keeper;
    Layout layout;
    for (const std::string& name : names) {
      REQUIRE(layout.AddTensor(name, Dtype::kFp32, {1}).ok());
    }
    REQUIRE(Rollout::Join(OptionsFor(keeper.daemon.socket()), layout).ok());
    return Kept(keeper).layout_bytes;
  };
  CHECK(sent({"a", "b", "c"}) == sent({"c", "a", "b"}));
}

TEST_CASE("a shared buffer goes to the daemon as a sealed descriptor of the same memory",
          "[client]") {
  Seen<std::string> found;
  FakeDaemon daemon([&found](FakePeer& peer, int) {
    const std::optional<JoinRecord> record = peer.TakeJoin();
    if (!record || record->buffers.size() != 1) return;
    const AttachedBuffer& buffer = record->buffers.front();
    const int seals = ::fcntl(buffer.fd, F_GET_SEALS);
    void* data = ::mmap(nullptr, 16, PROT_READ | PROT_WRITE, MAP_SHARED, buffer.fd, 0);
    if (data == MAP_FAILED || (seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_SEAL) == 0) return;
    found.Add(std::string(static_cast<const char*>(data)));
    std::memcpy(data, "from the daemon", 16);
    ::munmap(data, 16);
    found.Add(buffer.request.buffer() + " " + std::to_string(buffer.request.offset_bytes()) + " " +
              std::to_string(buffer.request.bytes()) + " " +
              std::to_string(buffer.request.epoch()));
    peer.Refuse(record->last_id, WB_CANCELLED, "seen");
  });
  const SharedBuffer memory = *SharedBuffer::Create(16);
  std::memcpy(memory.data(), "from the worker", 16);
  const Layout layout = RowLayout(memory);

  REQUIRE(Contains(JoinError(OptionsFor(daemon.socket()), layout), "seen"));
  CHECK(found.all() == std::vector<std::string>{"from the worker", "w 0 16 1"});
  CHECK(std::string(static_cast<const char*>(memory.data())) == "from the daemon");
}

TEST_CASE("a caller's memfd is duplicated, with the stretch of it that is the buffer", "[client]") {
  JoinKeeper keeper;
  const int fd = ::memfd_create("caller", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(::ftruncate(fd, 8192) == 0);
  Layout layout;
  Param param("w", {1, 4});
  param.AddPiece({"w", {1, 0}, {2, 4}, {0, 0}, {}});
  REQUIRE(layout.AddTensor("w", Dtype::kFp32, {2, 4}).ok());
  REQUIRE(layout.AddParam(param).ok());
  Memory memory;
  memory.handle = fd;
  memory.offset = 4096;
  memory.bytes = 16;
  memory.epoch = 3;
  REQUIRE(layout.SetBuffer("w", memory).ok());
  REQUIRE(::close(fd) == 0);
  const Result<Rollout> rollout = Rollout::Join(OptionsFor(keeper.daemon.socket()), layout);
  REQUIRE(rollout.ok());

  const JoinRecord record = Kept(keeper);
  REQUIRE(record.buffers.size() == 1);
  CHECK(record.buffers[0].request.offset_bytes() == 4096);
  CHECK(record.buffers[0].request.bytes() == 16);
  CHECK(record.buffers[0].request.epoch() == 3);
  struct stat status {};
  CHECK(::fstat(record.buffers[0].fd, &status) == 0);
  CHECK(status.st_size == 8192);
}

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

/// Runs `body` in a forked child; what it returns comes back.
template <typename Body>
std::string InChild(Body body) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text = body();
    const bool written = ::write(ends[1], text.data(), text.size()) >= 0;
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t got = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
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

TEST_CASE("a child after fork may not use the session, and does not end it", "[client]") {
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    while (std::optional<Packet> packet = peer.Next()) {
      v1::DaemonMessage reply;
      reply.set_id(packet->message.id());
      reply.mutable_wait_for_version()->set_version(7);
      peer.Send(reply);
    }
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  const std::string text = InChild([&]() -> std::string {
    Rollout session = std::move(rollout).value();  // ends with this child
    const Result<std::uint64_t> found = session.WaitForVersion(1, 1s);
    return found.ok() ? "found" : found.error().ToString();
  });
  CHECK(Contains(text, "FAILED_PRECONDITION"));
  CHECK(Contains(text, "belongs to process " + std::to_string(::getpid())));

  const Result<std::uint64_t> found = rollout->WaitForVersion(1, 1s);
  REQUIRE(found.ok());
  CHECK(*found == 7);
}

}  // namespace
}  // namespace wb::test
