#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/client/client_fixture.h"
#include "tests/client/join_fixture.h"
#include "tests/support/catch.h"

namespace wb::test {
namespace {

using namespace std::chrono_literals;
using weightbridge::Dtype;
using weightbridge::Layout;
using weightbridge::Memory;
using weightbridge::Param;
using weightbridge::Result;
using weightbridge::Rollout;
using weightbridge::SharedBuffer;
using weightbridge::Trainer;

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

TEST_CASE("a session that is let go has ended, whatever children live on", "[client]") {
  std::atomic<bool> ended{false};
  FakeDaemon daemon([&ended](FakePeer& peer, int) {
    kGrant(peer, 0);
    ended.store(true);
  });
  std::optional<Result<Rollout>> rollout = JoinRollout(daemon);
  REQUIRE(rollout->ok());
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const pid_t child = ::fork();
  if (child == 0) {  // holds the connection, as all its parent's descriptors
    ::close(ends[1]);
    char none = 0;
    ::_exit(::read(ends[0], &none, 1) == 0 ? 0 : 1);
  }
  rollout.reset();
  CHECK(Soon([&] { return ended.load(); }));
  ::close(ends[0]);
  ::close(ends[1]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace
}  // namespace wb::test
