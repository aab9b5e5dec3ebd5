#include <algorithm>
#include <chrono>
#include <map>
#include <random>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "planner/base/fd_handle.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/seed.h"
#include "tests/transport/fabric_pair.h"

namespace wb::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

Bytes RandomBytes(std::mt19937_64& rng, std::uint64_t count) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = std::byte(rng() & 0xFF);
  return bytes;
}

void FillRandom(std::span<std::byte> memory, std::mt19937_64& rng) {
  for (; memory.size() >= 8; memory = memory.subspan(8)) {
    const std::uint64_t word = rng();
    std::memcpy(memory.data(), &word, 8);
  }
  for (std::byte& byte : memory) byte = std::byte(rng() & 0xFF);
}

Side::Decision LandAt(std::uint64_t offset, std::uint64_t bytes, std::uint64_t tag) {
  return std::optional<Landing>(Landing{{Side::kMemory, offset, bytes}, tag});
}

MemoryRef At(std::uint64_t offset, std::uint64_t bytes) {
  return {Side::kMemory, offset, bytes};
}

#define WB_FABRICS LoopbackKind, UcxTcpKind, UcxShmKind

TEMPLATE_TEST_CASE("header and payload arrive bit for bit", "[transport][contract]", WB_FABRICS) {
  const std::uint64_t bytes =
      GENERATE(std::uint64_t{0}, 1, 63 * kKiB, 64 * kKiB - 1, 64 * kKiB, kMiB + 3, 5 * kMiB + 3);
  const std::uint64_t header_bytes = GENERATE(std::uint64_t{0}, 256);
  INFO("WB_TEST_SEED=" << RunSeed() << " bytes " << bytes << " header " << header_bytes);
  std::mt19937_64 rng = TestRng(0);
  TestType kind;
  Side a(kind);
  Side b(kind);
  FillRandom(a.memory().first(bytes + 64), rng);
  const Bytes header = RandomBytes(rng, header_bytes);
  b.decide = [](const Side::Seen& seen) { return LandAt(7, seen.bytes, 42); };

  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  REQUIRE(a.fabric->Send(to_b, header, At(13, bytes), 5).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(5) != nullptr && b.Received(42) != nullptr; }));
  REQUIRE(a.Sent(5)->status.ok());
  REQUIRE(b.Received(42)->status.ok());
  REQUIRE(b.seen.size() == 1);
  REQUIRE(b.seen[0].header == header);
  REQUIRE(b.seen[0].bytes == bytes);
  REQUIRE(Equal(a.memory().subspan(13, bytes), b.memory().subspan(7, bytes)));
  REQUIRE(AllAre(b.memory().first(7), std::byte{0}));
  REQUIRE(AllAre(b.memory().subspan(7 + bytes, 64), std::byte{0}));
}

TEMPLATE_TEST_CASE("a receiver may decide later, and a held announcement survives until then",
                   "[transport][contract]",
                   WB_FABRICS) {
  const std::uint64_t bytes = GENERATE(std::uint64_t{0}, 10, 2 * kMiB);
  std::mt19937_64 rng = TestRng(0);
  TestType kind;
  Side a(kind);
  Side b(kind);
  FillRandom(a.memory().first(bytes), rng);
  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  REQUIRE(a.fabric->Send(to_b, {}, At(0, bytes), 1).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return b.seen.size() == 1; }));
  RunFor({&a, &b}, milliseconds(50));
  REQUIRE(a.Sent(1) == nullptr);
  REQUIRE(b.events.empty());

  REQUIRE(b.fabric->Accept(b.seen[0].id, {At(100, bytes), 9}).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(1) != nullptr && b.Received(9) != nullptr; }));
  REQUIRE(a.Sent(1)->status.ok());
  REQUIRE(b.Received(9)->status.ok());
  REQUIRE(Equal(a.memory().first(bytes), b.memory().subspan(100, bytes)));
  REQUIRE(b.fabric->Accept(b.seen[0].id, {At(100, bytes), 9}).code() ==
          absl::StatusCode::kNotFound);
}

TEMPLATE_TEST_CASE("a refusal reaches the sender with its reason, at once or later",
                   "[transport][contract]",
                   WB_FABRICS) {
  const std::uint64_t bytes = GENERATE(std::uint64_t{0}, 10, 2 * kMiB);
  const bool later = GENERATE(false, true);
  TestType kind;
  Side a(kind);
  Side b(kind);
  const absl::Status reason = absl::FailedPreconditionError("attempt 7 is not prepared");
  if (!later) b.decide = [&](const Side::Seen&) -> Side::Decision { return reason; };
  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  REQUIRE(a.fabric->Send(to_b, {}, At(0, bytes), 1).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return b.seen.size() == 1; }));
  if (later) REQUIRE(b.fabric->Refuse(b.seen[0].id, reason).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(1) != nullptr; }));
  REQUIRE(a.Sent(1)->status == reason);
  REQUIRE(b.events.empty());
  REQUIRE(b.fabric->Refuse(b.seen[0].id, reason).code() == absl::StatusCode::kNotFound);

  // The connection goes on.
  b.decide = [](const Side::Seen& seen) { return LandAt(0, seen.bytes, 3); };
  REQUIRE(a.fabric->Send(to_b, {}, At(0, bytes), 2).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(2) != nullptr; }));
  REQUIRE(a.Sent(2)->status.ok());
}

TEMPLATE_TEST_CASE("a landing that is none is refused, and nothing moves",
                   "[transport][contract]",
                   WB_FABRICS) {
  const std::uint64_t bytes = GENERATE(std::uint64_t{10}, 2 * kMiB);
  TestType kind;
  FakeDevice device;
  Side a(kind);
  Side b(kind);
  REQUIRE(b.regions.Add(Side::kOfDevice, device.Open(device.Allocate(bytes))).ok());
  const FdHandle fd(memfd_create("read-only", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(ftruncate(fd.get(), 4 << 20) == 0);
  REQUIRE(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0);
  const std::uint64_t end = b.memory_bytes;
  REQUIRE(b.regions
              .Add(Side::kReadOnly,
                   Region::OpenHostFd(fd.get(), 0, 4 << 20, RegionAccess::kReadOnly).value())
              .ok());
  const std::vector<std::pair<MemoryRef, absl::StatusCode>> places = {
      {{Side::kReadOnly, 0, bytes}, absl::StatusCode::kPermissionDenied},
      {{Side::kOfDevice, 0, bytes}, absl::StatusCode::kFailedPrecondition},
      {{Side::kMemory, end - bytes + 1, bytes}, absl::StatusCode::kOutOfRange},
      {{Side::kMemory, ~std::uint64_t{0}, bytes}, absl::StatusCode::kOutOfRange},
      {{RegionId(77), 0, bytes}, absl::StatusCode::kNotFound},
      {{Side::kMemory, 0, bytes - 1}, absl::StatusCode::kInvalidArgument},
      {{Side::kMemory, 0, bytes + 1}, absl::StatusCode::kInvalidArgument}};
  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  std::uint64_t tag = 0;
  for (const auto& [place, code] : places) {
    ++tag;
    b.decide = [&, where = place](const Side::Seen&) -> Side::Decision {
      return std::optional<Landing>(Landing{where, tag});
    };
    REQUIRE(a.fabric->Send(to_b, {}, At(0, bytes), tag).ok());
    REQUIRE(
        RunUntil({&a, &b}, [&] { return a.Sent(tag) != nullptr && b.Received(tag) != nullptr; }));
    REQUIRE(a.Sent(tag)->status.code() == code);
    REQUIRE(b.Received(tag)->status.code() == code);
  }
  // Held, a wrong place leaves it held.
  b.decide = [](const Side::Seen&) -> Side::Decision { return std::optional<Landing>(); };
  REQUIRE(a.fabric->Send(to_b, {}, At(0, bytes), 100).ok());
  const std::size_t seen = b.seen.size();
  REQUIRE(RunUntil({&a, &b}, [&] { return b.seen.size() == seen + 1; }));
  for (const auto& [place, code] : places) {
    REQUIRE(b.fabric->Accept(b.seen.back().id, {place, 100}).code() == code);
  }
  REQUIRE(b.fabric->Accept(b.seen.back().id, {At(0, bytes), 100}).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(100) != nullptr; }));
  REQUIRE(a.Sent(100)->status.ok());
}

TEMPLATE_TEST_CASE("many messages of all sizes cross both ways, each to its place",
                   "[transport][contract][property]",
                   WB_FABRICS) {
  INFO("WB_TEST_SEED=" << RunSeed());
  std::mt19937_64 rng = TestRng(0);
  TestType kind;
  Side a(kind, 32 << 20);
  Side b(kind, 32 << 20);
  constexpr std::uint64_t kMessages = 60;
  constexpr std::uint64_t kSlot = 256 * kKiB;
  constexpr std::uint64_t kLanded = 16 * kMiB;  // what arrives lies behind what is sent
  std::map<std::uint64_t, std::uint64_t> sizes[2];
  for (auto& of_side : sizes) {
    for (std::uint64_t i = 0; i < kMessages; ++i) of_side[i] = rng() % (i % 2 == 0 ? 300 : kSlot);
  }
  FillRandom(a.memory().first(kMessages * kSlot), rng);
  FillRandom(b.memory().first(kMessages * kSlot), rng);
  const auto land = [](const Side::Seen& seen) {
    const auto i = static_cast<std::uint64_t>(seen.header[0]);
    return LandAt(kLanded + i * kSlot, seen.bytes, 1000 + i);
  };
  a.decide = land;
  b.decide = land;
  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  const EndpointId to_a = b.fabric->Connect(a.fabric->address()).value();
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    const Bytes header{std::byte(i)};
    REQUIRE(a.fabric->Send(to_b, header, At(i * kSlot, sizes[0][i]), i).ok());
    REQUIRE(b.fabric->Send(to_a, header, At(i * kSlot, sizes[1][i]), i).ok());
  }
  REQUIRE(RunUntil({&a, &b}, [&] {
    return a.events.size() == 2 * kMessages && b.events.size() == 2 * kMessages;
  }));
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    for (Side* side : {&a, &b}) {
      REQUIRE(side->Sent(i)->status.ok());
      REQUIRE(side->Received(1000 + i)->status.ok());
    }
    REQUIRE(Equal(a.memory().subspan(i * kSlot, sizes[0][i]),
                  b.memory().subspan(kLanded + i * kSlot, sizes[0][i])));
    REQUIRE(Equal(b.memory().subspan(i * kSlot, sizes[1][i]),
                  a.memory().subspan(kLanded + i * kSlot, sizes[1][i])));
  }
}

TEMPLATE_TEST_CASE("the end that was connected to can send over the same pair",
                   "[transport][contract]",
                   WB_FABRICS) {
  TestType kind;
  Side a(kind);
  Side b(kind);
  a.decide = [](const Side::Seen& seen) { return LandAt(50, seen.bytes, 8); };
  b.decide = [](const Side::Seen& seen) { return LandAt(0, seen.bytes, 7); };
  a.memory()[0] = std::byte{1};
  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  REQUIRE(a.fabric->Send(to_b, {}, At(0, 1), 1).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return b.Received(7) != nullptr; }));
  REQUIRE(b.fabric->Send(b.seen[0].from, {}, At(0, 1), 2).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Received(8) != nullptr && b.Sent(2) != nullptr; }));
  REQUIRE(a.seen[0].from == to_b);
  REQUIRE(a.memory()[50] == std::byte{1});
}

TEMPLATE_TEST_CASE("each Connect makes a pair of its own: closing one leaves the others",
                   "[transport][contract]",
                   WB_FABRICS) {
  TestType kind;
  Side a(kind);
  Side b(kind);
  a.decide = b.decide = [](const Side::Seen& seen) { return LandAt(0, seen.bytes, 99); };
  const EndpointId a1 = a.fabric->Connect(b.fabric->address()).value();
  const EndpointId b1 = b.fabric->Connect(a.fabric->address()).value();
  const EndpointId a2 = a.fabric->Connect(b.fabric->address()).value();
  REQUIRE(a.fabric->Send(a1, {}, At(0, 10), 1).ok());
  REQUIRE(a.fabric->Send(a2, {}, At(0, 10), 2).ok());
  REQUIRE(b.fabric->Send(b1, {}, At(0, 10), 3).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(1) && a.Sent(2) && b.Sent(3); }));

  a.fabric->CloseForced(a1);
  REQUIRE(RunUntil({&a, &b}, [&] { return b.EndpointFailed() != nullptr; }));
  REQUIRE(a.fabric->Send(a2, {}, At(0, 10), 4).ok());
  REQUIRE(b.fabric->Send(b1, {}, At(0, 10), 5).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(4) && b.Sent(5); }));
  REQUIRE(a.Sent(4)->status.ok());
  REQUIRE(b.Sent(5)->status.ok());
  REQUIRE(a.EndpointFailed() == nullptr);
  REQUIRE(a.fabric->Send(a1, {}, At(0, 10), 6).code() == absl::StatusCode::kFailedPrecondition);
}

TEMPLATE_TEST_CASE("CloseForced ends outstanding receives, and no byte lands after their events",
                   "[transport][contract]",
                   WB_FABRICS) {
  constexpr std::uint64_t kBytes = 2 * kMiB;
  constexpr std::uint64_t kCount = 4;
  TestType kind;
  Side a(kind);
  Side b(kind);
  Fill(a.memory(), std::byte{0x11});
  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  for (std::uint64_t i = 0; i < kCount; ++i) {
    REQUIRE(a.fabric->Send(to_b, {}, At(0, kBytes), i).ok());
  }
  REQUIRE(RunUntil({&a, &b}, [&] { return b.seen.size() == kCount; }));
  // Three receives begin; the sender stands still, so that they cannot end by themselves.
  for (std::uint64_t i = 0; i + 1 < kCount; ++i) {
    REQUIRE(b.fabric->Accept(b.seen[i].id, {At(i * kBytes, kBytes), 100 + i}).ok());
  }
  b.fabric->CloseForced(b.seen[0].from);
  b.fabric->CloseForced(b.seen[0].from);  // idempotent
  REQUIRE(b.fabric->Accept(b.seen[3].id, {At(0, kBytes), 103}).code() ==
          absl::StatusCode::kNotFound);
  REQUIRE(RunUntil(
      {&b}, [&] { return b.Received(100) && b.Received(101) && b.Received(102); }, seconds(2)));
  Fill(b.memory(), std::byte{0x22});

  REQUIRE(RunUntil({&a, &b}, [&] {
    return a.EndpointFailed() && a.Sent(0) && a.Sent(1) && a.Sent(2) && a.Sent(3);
  }));
  RunFor({&a, &b}, milliseconds(100));
  REQUIRE(AllAre(b.memory(), std::byte{0x22}));
  REQUIRE_FALSE(a.Sent(3)->status.ok());
  REQUIRE(b.EndpointFailed() == nullptr);  // its owner closed it
  REQUIRE(b.events.size() == kCount - 1);
}

TEMPLATE_TEST_CASE("CloseForced by the sender ends its sends with errors",
                   "[transport][contract]",
                   WB_FABRICS) {
  const std::uint64_t bytes = GENERATE(std::uint64_t{10}, 2 * kMiB);
  TestType kind;
  Side a(kind);
  Side b(kind);
  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  REQUIRE(a.fabric->Send(to_b, {}, At(0, bytes), 1).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return b.seen.size() == 1; }));
  a.fabric->CloseForced(to_b);
  REQUIRE(RunUntil(
      {&a, &b}, [&] { return a.Sent(1) && b.EndpointFailed(); }, seconds(2)));
  REQUIRE(a.Sent(1)->status.code() == absl::StatusCode::kCancelled);
  REQUIRE(a.EndpointFailed() == nullptr);
  REQUIRE(b.EndpointFailed()->endpoint == b.seen[0].from);
  REQUIRE(b.fabric->Accept(b.seen[0].id, {At(0, bytes), 2}).code() == absl::StatusCode::kNotFound);
}

TEMPLATE_TEST_CASE("a receiver may close the endpoint it is asked about",
                   "[transport][contract]",
                   WB_FABRICS) {
  const std::uint64_t bytes = GENERATE(std::uint64_t{10}, 2 * kMiB);
  TestType kind;
  Side a(kind);
  Side b(kind);
  b.decide = [&](const Side::Seen& seen) {
    b.fabric->CloseForced(seen.from);
    return LandAt(0, seen.bytes, 6);
  };
  Fill(a.memory(), std::byte{0x11});
  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  REQUIRE(a.fabric->Send(to_b, {}, At(0, bytes), 1).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(1) && a.EndpointFailed() && b.Received(6); }));
  REQUIRE_FALSE(a.Sent(1)->status.ok());
  REQUIRE_FALSE(b.Received(6)->status.ok());
  REQUIRE(b.memory()[0] == std::byte{0});
}

TEMPLATE_TEST_CASE("a peer that is destroyed fails the endpoint within two seconds",
                   "[transport][contract]",
                   WB_FABRICS) {
  const std::uint64_t bytes = GENERATE(std::uint64_t{10}, 2 * kMiB);
  const bool idle = GENERATE(false, true);
  TestType kind;
  Side a(kind);
  std::optional<Side> b;
  b.emplace(kind);
  const EndpointId to_b = a.fabric->Connect(b->fabric->address()).value();
  if (idle) b->decide = [](const Side::Seen& seen) { return LandAt(0, seen.bytes, 6); };
  REQUIRE(a.fabric->Send(to_b, {}, At(0, bytes), 1).ok());
  REQUIRE(RunUntil({&a, &*b}, [&] { return idle ? a.Sent(1) != nullptr : b->seen.size() == 1; }));
  b.reset();
  REQUIRE(RunUntil(
      {&a}, [&] { return a.EndpointFailed() && a.Sent(1); }, seconds(2)));
  REQUIRE(a.EndpointFailed()->endpoint == to_b);
  REQUIRE(a.Sent(1)->status.ok() == idle);
  REQUIRE(a.fabric->Send(to_b, {}, At(0, bytes), 2).code() ==
          absl::StatusCode::kFailedPrecondition);
}

TEMPLATE_TEST_CASE("connecting to a fabric that has gone fails as an event",
                   "[transport][contract]",
                   WB_FABRICS) {
  TestType kind;
  Side a(kind);
  std::string address;
  {
    const Side gone(kind);
    address = gone.fabric->address();
  }
  const EndpointId endpoint = a.fabric->Connect(address).value();
  REQUIRE(RunUntil({&a}, [&] { return a.EndpointFailed() != nullptr; }));
  REQUIRE(a.EndpointFailed()->endpoint == endpoint);
  REQUIRE_FALSE(a.EndpointFailed()->status.ok());
}

TEMPLATE_TEST_CASE("what cannot be sent is refused before anything is posted",
                   "[transport][contract]",
                   WB_FABRICS) {
  TestType kind;
  FakeDevice device;
  Side a(kind);
  Side b(kind);
  REQUIRE(a.regions.Add(Side::kOfDevice, device.Open(device.Allocate(1))).ok());
  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  const Bytes long_header(a.fabric->traits().max_header_bytes + 1);
  const auto code = [&](EndpointId to, std::span<const std::byte> header, MemoryRef payload) {
    return a.fabric->Send(to, header, payload, 1).code();
  };
  REQUIRE(code(to_b, long_header, At(0, 1)) == absl::StatusCode::kInvalidArgument);
  REQUIRE(code(to_b, {}, At(0, a.fabric->traits().max_message_bytes + 1)) ==
          absl::StatusCode::kInvalidArgument);
  REQUIRE(code(to_b, {}, At(a.memory_bytes, 1)) == absl::StatusCode::kOutOfRange);
  REQUIRE(code(to_b, {}, {RegionId(9), 0, 1}) == absl::StatusCode::kNotFound);
  REQUIRE(code(to_b, {}, {Side::kOfDevice, 0, 1}) == absl::StatusCode::kFailedPrecondition);
  REQUIRE(code(EndpointId(999), {}, At(0, 1)) == absl::StatusCode::kFailedPrecondition);
  RunFor({&a, &b}, milliseconds(20));
  REQUIRE(a.events.empty());
  REQUIRE(b.seen.empty());
}

TEMPLATE_TEST_CASE("bytes that are no address are refused", "[transport][contract]", WB_FABRICS) {
  TestType kind;
  Side a(kind);
  const std::string good = a.fabric->address();
  for (const std::string& bad : {std::string(), std::string("x"), std::string(100000, 'a'),
                                 std::string("\0\1\2", 3), good + "0", std::string("0") + good}) {
    if (bad == good + "0" && a.fabric->traits().name == "loopback") continue;  // another number
    REQUIRE(a.fabric->Connect(bad).status().code() == absl::StatusCode::kInvalidArgument);
  }
}

TEMPLATE_TEST_CASE("a message without a receiver is refused", "[transport][contract]", WB_FABRICS) {
  TestType kind;
  Side a(kind);
  Side b(kind);
  b.fabric->SetReceiver(nullptr);
  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  REQUIRE(a.fabric->Send(to_b, {}, At(0, 2 * kMiB), 1).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(1) != nullptr; }));
  REQUIRE(a.Sent(1)->status.code() == absl::StatusCode::kUnavailable);
}

TEMPLATE_TEST_CASE("an armed fabric sleeps until there is something to do",
                   "[transport][contract]",
                   WB_FABRICS) {
  TestType kind;
  Side a(kind);
  Side b(kind);
  b.decide = [](const Side::Seen& seen) { return LandAt(0, seen.bytes, 1); };
  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  REQUIRE(a.fabric->Send(to_b, {}, At(0, 10), 1).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(1) != nullptr; }));

  // Whether b's descriptor stays unreadable for a time, when b was armed and then `meanwhile` ran.
  const auto sleeps = [&](milliseconds time, const std::function<void()>& meanwhile) {
    const auto deadline = std::chrono::steady_clock::now() + Slack(seconds(10));
    while (b.fabric->Progress(b.events) || !b.fabric->Arm().value()) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
    }
    meanwhile();
    pollfd watched{b.fabric->wakeup_fd(), POLLIN, 0};
    return poll(&watched, 1, static_cast<int>(time.count())) == 0;
  };
  int undisturbed = 0;
  for (int i = 0; i < 5; ++i) undisturbed += sleeps(milliseconds(50), [] {}) ? 1 : 0;
  REQUIRE(undisturbed >= 3);  // a rare empty wake-up is no fault

  REQUIRE_FALSE(sleeps(Slack(seconds(2)), [&] {
    REQUIRE(a.fabric->Send(to_b, {}, At(0, 2 * kMiB), 2).ok());
    for (int i = 0; i < 100; ++i) a.fabric->Progress(a.events);
  }));
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(2) != nullptr; }));
  REQUIRE(a.Sent(2)->status.ok());
}

}  // namespace
}  // namespace wb::test
