#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/client/client_fixture.h"
#include "tests/support/catch.h"

namespace wb::test {
namespace {

using weightbridge::Dtype;
using weightbridge::Error;
using weightbridge::Layout;
using weightbridge::Memory;
using weightbridge::Param;
using weightbridge::Result;
using weightbridge::SharedBuffer;

TEST_CASE("a shared buffer is zero, of the size asked for, and sealed", "[client]") {
  const SharedBuffer buffer = *SharedBuffer::Create(10'000);
  CHECK(buffer.size() == 10'000);
  const auto* bytes = static_cast<const unsigned char*>(buffer.data());
  CHECK(std::all_of(bytes, bytes + buffer.size(), [](unsigned char byte) { return byte == 0; }));
  CHECK(::fcntl(buffer.fd(), F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
  CHECK(::ftruncate(buffer.fd(), 0) != 0);
  CHECK(::ftruncate(buffer.fd(), 20'000) != 0);
  CHECK((::fcntl(buffer.fd(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a shared buffer of no bytes, or of more than there can be, is refused", "[client]") {
  const auto code = [](std::uint64_t bytes) {
    const Result<SharedBuffer> made = SharedBuffer::Create(bytes);
    return made.ok() ? WB_OK : made.error().code;
  };
  CHECK(code(0) == WB_INVALID_ARGUMENT);
  CHECK(code(~std::uint64_t{0}) == WB_INVALID_ARGUMENT);
  CHECK(code(std::uint64_t{1} << 62) == WB_RESOURCE_EXHAUSTED);
}

TEST_CASE("a shared buffer above the process's file size limit is an error, not its end",
          "[client]") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit low{4096, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);
  const Result<SharedBuffer> fits = SharedBuffer::Create(4096);
  const Result<SharedBuffer> refused = SharedBuffer::Create(4097);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(fits.ok());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == WB_RESOURCE_EXHAUSTED);
  CHECK(Contains(refused.error().message,
                 "this process may make files of 4096 bytes at most (RLIMIT_FSIZE"));
}

TEST_CASE("a layout's bytes that are none are refused", "[client]") {
  const Result<Layout> layout = Layout::FromSerialized("\xff\xff\xff\xff");
  REQUIRE_FALSE(layout.ok());
  CHECK(layout.error().code == WB_INVALID_ARGUMENT);
  CHECK(Contains(layout.error().message, "4 bytes are not a serialised weightbridge.v1.Layout"));
}

TEST_CASE("what is added to a layout is refused by name where it cannot be read", "[client]") {
  Layout layout;
  const auto text = [](const Result<void>& result) {
    return result.ok() ? std::string("OK") : result.error().ToString();
  };
  CHECK(
      Contains(text(layout.AddTensor("w", Dtype::kFp32, {})), "tensor w: ndim is 0, want 1 to 8"));
  CHECK(Contains(text(layout.AddTensor("w", Dtype::kFp32, std::vector<std::int64_t>(9, 1))),
                 "tensor w: ndim is 9, want 1 to 8"));
  CHECK(text(layout.AddTensor("w", Dtype::kFp32, {4, 2})) == "OK");
  CHECK(Contains(text(layout.AddTensor("w", Dtype::kFp32, {4, 2})), "ALREADY_EXISTS: tensor w"));
  CHECK(text(layout.AddAlias("a", "w")) == "OK");
  CHECK(Contains(text(layout.AddAlias("a", "v")), "ALREADY_EXISTS: alias a"));

  Param param("p", {4, 2});
  param.strides = {2};
  CHECK(Contains(text(layout.AddParam(param)), "param p: strides has 1 entries, want 2"));
  param.strides.clear();
  param.offset_bytes = std::uint64_t{1} << 63;
  CHECK(Contains(text(layout.AddParam(param)), "want less than 2^63"));
  param.offset_bytes = 0;
  param.pieces = {{"w", {0, 0}, {4}, {}, {}}};
  CHECK(Contains(text(layout.AddParam(param)), "param p, piece of w: hi has 1 entries, want 2"));
  param.pieces = {{"w", {0, 0}, {4, 2}, {0}, {}}};
  CHECK(Contains(text(layout.AddParam(param)), "param p, piece of w: at has 1 entries, want 2"));
  param.pieces = {{"w", {0, 0}, {4, 2}, {}, {0}}};
  CHECK(Contains(text(layout.AddParam(param)), "param p, piece of w: axes has 1 entries, want 2"));

  const std::string latin = "caf\xe9";  // what no message can carry
  CHECK(Contains(text(layout.AddTensor(latin, Dtype::kFp32, {4})),
                 "tensor: name is not UTF-8 at byte 3"));
  CHECK(Contains(text(layout.AddAlias("b", latin)), "alias: a name is not UTF-8 at byte 3"));
  param.name = latin;
  CHECK(Contains(text(layout.AddParam(param)), "param: name is not UTF-8 at byte 3"));
  param.name = "p";
  param.buffer = latin;
  CHECK(Contains(text(layout.AddParam(param)), "param p: buffer is not UTF-8 at byte 3"));
  param.buffer.reset();
  param.pieces = {{latin, {0, 0}, {4, 2}, {}, {}}};
  CHECK(Contains(text(layout.AddParam(param)), "param p, piece: tensor is not UTF-8 at byte 3"));

  Memory memory;
  CHECK(Contains(text(layout.SetBuffer(latin, memory)), "memory: buffer is not UTF-8 at byte 3"));
  CHECK(
      Contains(text(layout.SetBuffer("p", memory)), "memory of buffer p: -1 is not a descriptor"));
  memory.handle = 1'000'000;
  CHECK(Contains(text(layout.SetBuffer("p", memory)), "EBADF"));
  memory.provider = 9;
  CHECK(Contains(text(layout.SetBuffer("p", memory)), "provider is 9"));
}

TEST_CASE("the C interface refuses NULL and names it", "[client]") {
  CHECK(wb_layout_create(nullptr) == WB_INVALID_ARGUMENT);
  CHECK(std::string(wb_last_error_message()) == "layout is NULL");
  CHECK(wb_layout_add_tensor(nullptr, nullptr) == WB_INVALID_ARGUMENT);
  CHECK(wb_shared_buffer_create(1, nullptr) == WB_INVALID_ARGUMENT);
  CHECK(wb_join_rollout(nullptr, nullptr, nullptr) == WB_INVALID_ARGUMENT);
  CHECK(wb_publish(nullptr, 1, nullptr, nullptr) == WB_INVALID_ARGUMENT);
  CHECK(wb_receive(nullptr, 1, nullptr, nullptr) == WB_INVALID_ARGUMENT);
  CHECK(wb_wait_for_version(nullptr, 1, 0, nullptr) == WB_INVALID_ARGUMENT);
  CHECK(wb_session_held_version(nullptr) == 0);
  CHECK(wb_publish_outcome_count(nullptr) == 0);
  wb_layout_destroy(nullptr);
  wb_session_destroy(nullptr);
  wb_shared_buffer_destroy(nullptr);

  wb_layout* layout = nullptr;
  REQUIRE(wb_layout_create(&layout) == WB_OK);
  CHECK(wb_last_error_code() == WB_OK);
  CHECK(std::string(wb_last_error_message()).empty());
  wb_tensor tensor{};
  CHECK(wb_layout_add_tensor(layout, &tensor) == WB_INVALID_ARGUMENT);
  CHECK(std::string(wb_last_error_message()) ==
        "wb_tensor: struct_size is 0, want sizeof(wb_tensor)");
  tensor.struct_size = sizeof(tensor);
  CHECK(wb_layout_add_tensor(layout, &tensor) == WB_INVALID_ARGUMENT);
  wb_piece piece{};
  piece.struct_size = sizeof(piece);
  CHECK(wb_layout_add_piece(layout, 0, &piece) == WB_INVALID_ARGUMENT);
  CHECK(std::string(wb_last_error_message()) == "piece: param 0 of 0");
  wb_layout_destroy(layout);
}

/// wb_memory as a later header might have it.
struct LaterMemory {
  wb_memory known;
  std::uint64_t numa_node;
};

TEST_CASE("option structs of an older and of a later header are understood", "[client]") {
  wb_layout* layout = nullptr;
  REQUIRE(wb_layout_create(&layout) == WB_OK);
  const SharedBuffer buffer = *SharedBuffer::Create(16);

  LaterMemory later{};
  later.known.struct_size = sizeof(later);
  later.known.provider = WB_PROVIDER_FD;
  later.known.handle = buffer.fd();
  later.known.bytes = 16;
  CHECK(wb_layout_set_memory(layout, "w", &later.known) == WB_OK);
  later.numa_node = 1;
  CHECK(wb_layout_set_memory(layout, "w", &later.known) == WB_INVALID_ARGUMENT);
  CHECK(Contains(wb_last_error_message(), "of which this library"));

  wb_memory older = later.known;
  older.struct_size = offsetof(wb_memory, epoch);
  older.epoch = 0xdead;  // not ours to read
  CHECK(wb_layout_set_memory(layout, "w", &older) == WB_OK);
  wb_layout_destroy(layout);
}

TEST_CASE("an error belongs to the thread whose call failed", "[client]") {
  REQUIRE(wb_layout_create(nullptr) == WB_INVALID_ARGUMENT);
  wb_status other = WB_INTERNAL;
  std::thread([&other] { other = wb_last_error_code(); }).join();
  CHECK(other == WB_OK);
  CHECK(wb_last_error_code() == WB_INVALID_ARGUMENT);
}

TEST_CASE("status codes have their names, and other numbers one", "[client]") {
  CHECK(std::string(wb_status_name(WB_OK)) == "OK");
  CHECK(std::string(wb_status_name(WB_UNAUTHENTICATED)) == "UNAUTHENTICATED");
  CHECK(std::string(wb_status_name(-1)) == "UNKNOWN");
  CHECK(std::string(wb_status_name(17)) == "UNKNOWN");
}

}  // namespace
}  // namespace wb::test
