#include "transport/ucx/ucx_fabric.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

#include <linux/tcp.h>
#include <netinet/in.h>

#include "planner/base/fd_handle.h"
#include "tests/support/catch.h"
#include "tests/support/namespaces.h"
#include "tests/support/seed.h"
#include "tests/support/shm_gap.h"
#include "tests/transport/fabric_pair.h"
#include "tests/transport/peer_process.h"
#include "transport/ucx/stuck_queue.h"
#include "transport/ucx/ucx_address.h"
#include "transport/ucx/ucx_environment.h"

namespace wb::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

bool Names(const absl::Status& status, const std::string& word) {
  return std::string(status.message()).find(word) != std::string::npos;
}

absl::Status TryCreate(const UcxOptions& options) {
  const RegionTable regions;
  return UcxFabric::Create(options, regions).status();
}

TEST_CASE("a UCX fabric says what it runs on", "[transport][ucx]") {
  const RegionTable regions;
  const auto fabric = UcxFabric::Create({.interface = "lo"}, regions).value();
  REQUIRE(fabric->traits().name == "tcp");
  REQUIRE(fabric->traits().max_header_bytes == 256);
  REQUIRE(fabric->address().starts_with("ucx2:127.0.0.1:"));
}

TEST_CASE("an interface that is not there is refused, naming those that are", "[transport][ucx]") {
  const absl::Status status = TryCreate({.interface = "eth77"});
  REQUIRE(status.code() == absl::StatusCode::kNotFound);
  REQUIRE(Names(status, "eth77"));
  REQUIRE(Names(status, "lo"));
  REQUIRE(TryCreate({.interface = ""}).code() == absl::StatusCode::kNotFound);
}

TEST_CASE("transports that there are not are refused", "[transport][ucx]") {
  for (const std::string transports : {"rdma", "", "tcp,posix"}) {
    const absl::Status status = TryCreate({.interface = "lo", .transports = transports});
    REQUIRE(status.code() == absl::StatusCode::kInvalidArgument);
    REQUIRE(Names(status, "'" + transports + "'"));
  }
}

/// Sends one message, and returns what the sender's end and the receiver's end run on.
std::pair<LaneTraits, LaneTraits> LanesBetween(const std::string& from, const std::string& to) {
  UcxKind of_a(from);
  UcxKind of_b(to);
  Side a(of_a);
  Side b(of_b);
  b.decide = [](const Side::Seen& seen) -> Side::Decision {
    return std::optional<Landing>(Landing{{Side::kMemory, 0, seen.bytes}, 1});
  };
  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  REQUIRE(a.fabric->lane(to_b) == nullptr);
  REQUIRE(a.fabric->Send(to_b, {}, {Side::kMemory, 0, kMiB}, 1).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(1) != nullptr; }));
  REQUIRE(a.Sent(1)->status.ok());
  return {*a.fabric->lane(to_b), *b.fabric->lane(b.seen.at(0).from)};
}

TEST_CASE("both ends say what they run on", "[transport][ucx]") {
  const auto [from, to, path] = GENERATE(table<std::string, std::string, FabricPath>({
      {"tcp", "tcp", FabricPath::kTcp},
      {"shm", "shm", FabricPath::kShm},
      {"auto", "auto", FabricPath::kShm},
      {"auto", "tcp", FabricPath::kTcp},
      {"tcp", "auto", FabricPath::kTcp},
      {"shm", "auto", FabricPath::kShm},
      {"auto", "shm", FabricPath::kShm},
  }));
  CAPTURE(from, to);
  const auto [ours, theirs] = LanesBetween(from, to);
  for (const LaneTraits& lane : {ours, theirs}) {
    REQUIRE(lane.path == path);
    REQUIRE(lane.name == (path == FabricPath::kShm ? "shm" : "tcp"));
    REQUIRE(lane.device == (path == FabricPath::kShm ? "posix/memory" : "tcp/lo"));
    REQUIRE(lane.segment_bytes == (path == FabricPath::kShm ? 8256 : kMiB));
  }
}

TEST_CASE("shm refuses a peer without it, and one of another host, before it connects",
          "[transport][ucx]") {
  UcxShmKind shm;
  UcxTcpKind tcp;
  Side a(shm);
  Side b(tcp);
  const absl::Status without = a.fabric->Connect(b.fabric->address()).status();
  REQUIRE(without.code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(Names(without, "takes no shared memory"));
  UcxAddress elsewhere = DecodeAddress(b.fabric->address()).value();
  elsewhere.host = 1;
  const absl::Status other = a.fabric->Connect(EncodeAddress(elsewhere)).status();
  REQUIRE(other.code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(Names(other, "namespaces"));
}

TEST_CASE("a lane that should be another ends the endpoint with both by name", "[transport][ucx]") {
  UcxKind automatic("auto");
  UcxTcpKind tcp;
  const bool should_share = GENERATE(true, false);
  Side a(automatic);
  Side b(automatic);
  Side c(tcp);
  b.decide = c.decide = [](const Side::Seen& seen) -> Side::Decision {
    return std::optional<Landing>(Landing{{Side::kMemory, 0, seen.bytes}, 1});
  };
  // A peer that claims to share memory and cannot, or the other way round.
  Side& peer = should_share ? c : b;
  UcxAddress address = DecodeAddress(peer.fabric->address()).value();
  address.host = should_share ? DecodeAddress(a.fabric->address()).value().host : 0;
  const EndpointId to = a.fabric->Connect(EncodeAddress(address)).value();
  REQUIRE(a.fabric->Send(to, {}, MemoryRef{}, 1).ok());
  REQUIRE(RunUntil({&a, &peer}, [&] { return a.EndpointFailed() != nullptr && a.Sent(1); }));
  const absl::Status why = a.EndpointFailed()->status;
  CAPTURE(why.ToString());
  REQUIRE(why.code() == absl::StatusCode::kInternal);
  REQUIRE(Names(why, should_share ? "runs on tcp/lo, want posix/memory"
                                  : "runs on posix/memory, want tcp/lo"));
  REQUIRE_FALSE(a.Sent(1)->status.ok());
}

/// What all TCP sockets of this process have sent.
std::uint64_t TcpBytesSent() {
  std::uint64_t sum = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    tcp_info info{};
    socklen_t length = sizeof(info);
    const int fd = std::stoi(entry.path().filename().string());
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0) sum += info.tcpi_bytes_acked;
  }
  return sum;
}

TEST_CASE("payloads over shared memory do not touch the network", "[transport][ucx]") {
  // UCX may send messages over one lane and payloads over another: count what its sockets carry.
  UcxKind kind(GENERATE("shm", "auto", "tcp"));
  Side a(kind);
  Side b(kind);
  b.decide = [](const Side::Seen& seen) -> Side::Decision {
    return std::optional<Landing>(Landing{{Side::kMemory, 0, seen.bytes}, 1});
  };
  const EndpointId to_b = a.fabric->Connect(b.fabric->address()).value();
  for (const std::uint64_t bytes : {10 * kMiB, kMiB / 32}) {  // pulled, and with its header
    a.events.clear();
    REQUIRE(a.fabric->Send(to_b, {}, {Side::kMemory, 0, bytes}, 1).ok());
    REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(1) != nullptr; }));
    REQUIRE(a.Sent(1)->status.ok());
  }
  if (kind.transports() == "tcp") {
    REQUIRE(TcpBytesSent() > 10 * kMiB);
  } else {
    REQUIRE(TcpBytesSent() < kMiB / 64);
  }
}

TEST_CASE("UCX variables in the environment are refused until they are dropped",
          "[transport][ucx]") {
  REQUIRE(InheritedUcxVariables().empty());
  setenv("UCX_RNDV_THRESH", "1k", 1);
  setenv("UCX_TLS", "self", 1);
  const absl::Status status = TryCreate({.interface = "lo"});
  std::vector<std::string> dropped = DropInheritedUcxVariables();
  std::ranges::sort(dropped);
  REQUIRE(status.code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(Names(status, "UCX_RNDV_THRESH"));
  REQUIRE(Names(status, "UCX_TLS"));
  REQUIRE(dropped == std::vector<std::string>{"UCX_RNDV_THRESH", "UCX_TLS"});
  REQUIRE(TryCreate({.interface = "lo"}).ok());
}

TEMPLATE_TEST_CASE("a peer process that is killed fails its endpoint within two seconds",
                   "[transport][ucx]",
                   UcxTcpKind,
                   UcxShmKind) {
  const bool busy = GENERATE(false, true);
  TestType kind;
  Side a(kind);
  const PeerProcess peer = PeerProcess::Lander(kind.transports());
  const EndpointId to = a.fabric->Connect(peer.address()).value();
  REQUIRE(a.fabric->Send(to, {}, {Side::kMemory, 0, kMiB}, 1).ok());
  REQUIRE(RunUntil({&a}, [&] { return a.Sent(1) != nullptr; }));
  if (busy) {
    peer.Signal(SIGSTOP);  // so that the send cannot end before the kill
    REQUIRE(a.fabric->Send(to, {}, {Side::kMemory, 0, 4 * kMiB}, 2).ok());
  }
  peer.Signal(SIGKILL);
  REQUIRE(RunUntil(
      {&a}, [&] { return a.EndpointFailed() && (!busy || a.Sent(2) != nullptr); }, seconds(2)));
  REQUIRE(a.EndpointFailed()->endpoint == to);
  if (busy) REQUIRE_FALSE(a.Sent(2)->status.ok());
}

TEMPLATE_TEST_CASE("a sender that is killed ends the receives from it within two seconds",
                   "[transport][ucx]",
                   UcxTcpKind,
                   UcxShmKind) {
  TestType kind;
  Side a(kind, 64 * kMiB);
  const PeerProcess peer = PeerProcess::Sender(kind.transports(), a.fabric->address(), 8 * kMiB);
  REQUIRE(RunUntil({&a}, [&] { return a.seen.size() == 4; }));
  peer.Signal(SIGSTOP);
  REQUIRE(a.fabric->Accept(a.seen[0].id, {{Side::kMemory, 0, 8 * kMiB}, 1}).ok());
  RunFor({&a}, milliseconds(50));
  peer.Signal(SIGKILL);
  REQUIRE(RunUntil(
      {&a}, [&] { return a.EndpointFailed() && a.Received(1) != nullptr; }, seconds(2)));
  REQUIRE_FALSE(a.Received(1)->status.ok());
  REQUIRE(a.fabric->Accept(a.seen[1].id, {{Side::kMemory, 0, 8 * kMiB}, 2}).code() ==
          absl::StatusCode::kNotFound);
}

TEMPLATE_TEST_CASE(
    "no byte lands after CloseForced, even from a sender that stood still and goes on",
    "[transport][ucx]",
    UcxTcpKind,
    UcxShmKind) {
  constexpr std::uint64_t kBytes = 8 * kMiB;
  TestType kind;
  Side a(kind, 64 * kMiB);
  const PeerProcess peer = PeerProcess::Sender(kind.transports(), a.fabric->address(), kBytes);
  REQUIRE(RunUntil({&a}, [&] { return a.seen.size() == 4; }));
  for (std::uint64_t i = 0; i < 4; ++i) {
    REQUIRE(a.fabric->Accept(a.seen[i].id, {{Side::kMemory, i * kBytes, kBytes}, i}).ok());
  }
  // Into the middle of the transfer.
  REQUIRE(RunUntil({&a}, [&] { return a.memory()[100] == std::byte{0x77}; }));
  peer.Signal(SIGSTOP);
  a.fabric->CloseForced(a.seen[0].from);
  REQUIRE(RunUntil(
      {&a}, [&] { return a.Received(0) && a.Received(1) && a.Received(2) && a.Received(3); },
      seconds(2)));
  Fill(a.memory(), std::byte{0});
  peer.Signal(SIGCONT);
  RunFor({&a}, milliseconds(300));
  REQUIRE(AllAre(a.memory(), std::byte{0}));
}

TEST_CASE(
    "a queue that a killed sender has left at a standstill ends all endpoints, and the fabric "
    "goes on under its address",
    "[transport][ucx]") {
  const auto land = [](const Side::Seen& seen) -> Side::Decision {
    return std::optional<Landing>(Landing{{Side::kMemory, 0, seen.bytes}, seen.id.value()});
  };
  UcxShmKind kind;
  Side a(kind);
  a.decide = land;
  const PeerProcess lander = PeerProcess::Lander(kind.transports());
  const EndpointId to = a.fabric->Connect(lander.address()).value();
  REQUIRE(a.fabric->Send(to, {}, {Side::kMemory, 0, kMiB}, 1).ok());
  REQUIRE(RunUntil({&a}, [&] { return a.Sent(1) != nullptr; }));
  {
    const PeerProcess sender = PeerProcess::Sender(kind.transports(), a.fabric->address(), kMiB);
    REQUIRE(RunUntil({&a}, [&] { return a.seen.size() >= 4; }));
    sender.Signal(SIGSTOP);
    REQUIRE(LeaveShmGap());
    sender.Signal(SIGKILL);
    REQUIRE(a.fabric->Send(to, {}, {Side::kMemory, 0, kMiB}, 2).ok());
    // The message goes out, and its answer never comes.
    REQUIRE(RunUntil(
        {&a}, [&] { return a.Sent(2) != nullptr; }, seconds(4)));
    REQUIRE(a.Sent(2)->status.code() == absl::StatusCode::kUnavailable);
    REQUIRE(Names(a.Sent(2)->status, "amid sending through shared memory"));
    const auto ended = [&](const FabricEvent& event) {
      return event.kind == FabricEvent::Kind::kEndpointFailed && event.endpoint == to;
    };
    REQUIRE(std::ranges::count_if(a.events, ended) == 1);
  }
  a.seen.clear();
  a.events.clear();
  const PeerProcess sender = PeerProcess::Sender(kind.transports(), a.fabric->address(), kMiB);
  REQUIRE(RunUntil({&a}, [&] { return a.seen.size() >= 4; }));
  REQUIRE(RunUntil({&a}, [&] { return a.Received(a.seen[0].id.value()) != nullptr; }));
  REQUIRE(AllAre(a.memory().first(kMiB), std::byte{0x77}));
  const EndpointId again = a.fabric->Connect(lander.address()).value();
  REQUIRE(again > to);
  REQUIRE(a.fabric->Send(again, {}, {Side::kMemory, 0, kMiB}, 3).ok());
  REQUIRE(RunUntil({&a}, [&] { return a.Sent(3) != nullptr; }));
  REQUIRE(a.Sent(3)->status.ok());
}

TEST_CASE("a peer that stands still is not taken for a queue that does", "[transport][ucx]") {
  UcxShmKind kind;
  Side a(kind, 64 * kMiB);
  const PeerProcess stopped = PeerProcess::Lander(kind.transports());
  const PeerProcess other = PeerProcess::Lander(kind.transports());
  const EndpointId to_stopped = a.fabric->Connect(stopped.address()).value();
  const EndpointId to_other = a.fabric->Connect(other.address()).value();
  REQUIRE(a.fabric->Send(to_stopped, {}, {Side::kMemory, 0, kMiB}, 1).ok());
  REQUIRE(a.fabric->Send(to_other, {}, {Side::kMemory, 0, kMiB}, 2).ok());
  REQUIRE(RunUntil({&a}, [&] { return a.Sent(1) && a.Sent(2); }));
  stopped.Signal(SIGSTOP);
  // More than the stopped one's queue takes.
  REQUIRE(a.fabric->Send(to_stopped, {}, {Side::kMemory, 0, 64 * kMiB}, 3).ok());
  RunFor({&a}, 3 * StuckQueue::kPatience);
  REQUIRE(a.EndpointFailed() == nullptr);
  REQUIRE(a.fabric->Send(to_other, {}, {Side::kMemory, 0, kMiB}, 4).ok());
  REQUIRE(RunUntil({&a}, [&] { return a.Sent(4) != nullptr; }));
  REQUIRE(a.Sent(4)->status.ok());
  stopped.Signal(SIGCONT);
  REQUIRE(RunUntil({&a}, [&] { return a.Sent(3) != nullptr; }));
  REQUIRE(a.Sent(3)->status.ok());
}

TEST_CASE("a queue is probed when nothing comes by it, and stuck when the probe does not either",
          "[transport][ucx]") {
  using Verdict = StuckQueue::Verdict;
  StuckQueue queue;
  StuckQueue::Clock::time_point now;
  const auto busy_for = [&](milliseconds time) {
    Verdict verdict = Verdict::kWait;
    for (const auto end = now + time; now < end; now += milliseconds(1)) verdict = queue.Busy(now);
    return verdict;
  };
  REQUIRE(busy_for(milliseconds(200)) == Verdict::kWait);
  REQUIRE(busy_for(milliseconds(2)) == Verdict::kProbe);
  SECTION("in the end it is stuck") {
    REQUIRE(busy_for(milliseconds(798)) == Verdict::kProbe);
    REQUIRE(busy_for(milliseconds(2)) == Verdict::kStuck);
  }
  SECTION("when something comes it begins anew") {
    queue.Moves();
    REQUIRE(busy_for(milliseconds(200)) == Verdict::kWait);
  }
  SECTION("time in which this process stood still counts as a moment") {
    now += seconds(30);
    REQUIRE(queue.Busy(now) == Verdict::kProbe);
  }
}

TEST_CASE("peers that are killed leave no shared memory behind",
          "[transport][ucx][field][case-150]") {
  const auto present = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      if (entry.path().filename().string().starts_with("ucx_shm")) names.insert(entry.path());
    }
    return names;
  };
  UcxShmKind kind;
  Side a(kind);
  const std::set<std::string> before = present();
  for (int round = 0; round < 20; ++round) {
    const PeerProcess peer = PeerProcess::Lander(kind.transports());
    a.events.clear();
    const EndpointId to = a.fabric->Connect(peer.address()).value();
    REQUIRE(a.fabric->Send(to, {}, {Side::kMemory, 0, kMiB}, 1).ok());
    REQUIRE(RunUntil({&a}, [&] { return a.Sent(1) != nullptr; }));
    REQUIRE(a.fabric->Send(to, {}, {Side::kMemory, 0, 16 * kMiB}, 2).ok());
    a.fabric->Progress(a.events);
    peer.Signal(SIGKILL);
    REQUIRE(RunUntil(
        {&a}, [&] { return a.EndpointFailed() && a.Sent(2) != nullptr; }, seconds(2)));
  }
  // Other tests' segments come and go meanwhile.
  REQUIRE(RunUntil({&a}, [&] { return std::ranges::includes(before, present()); }));
}

TEST_CASE(
    "a peer in another PID namespace is reached by TCP, and refused where only shm may be used",
    "[transport][ucx][field][case-147]") {
  if (!MayMakeNamespaces(CLONE_NEWPID | CLONE_NEWNS)) return;
  const bool own_proc = GENERATE(true, false);  // without it nobody reaches it by shared memory
  const PeerProcess peer = PeerProcess::LanderInOwnPids("auto", own_proc);
  UcxKind automatic("auto");
  Side a(automatic);
  const EndpointId to = a.fabric->Connect(peer.address()).value();
  REQUIRE(a.fabric->Send(to, {}, {Side::kMemory, 0, kMiB}, 1).ok());
  REQUIRE(RunUntil({&a}, [&] { return a.Sent(1) != nullptr; }));
  REQUIRE(a.Sent(1)->status.ok());
  REQUIRE(a.fabric->lane(to)->path == FabricPath::kTcp);

  UcxShmKind shm;
  Side strict(shm);
  const absl::Status refused = strict.fabric->Connect(peer.address()).status();
  REQUIRE(refused.code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(Names(refused, own_proc ? "namespaces" : "takes no shared memory"));
}

TEST_CASE("a connection that nobody answers can be closed", "[transport][ucx]") {
  // A port that another program has now: it takes the connection and says nothing.
  const FdHandle silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  UcxAddress address;
  address.listener.sin_family = AF_INET;
  address.listener.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address.listener);
  REQUIRE(bind(silent.get(), reinterpret_cast<const sockaddr*>(&address.listener), length) == 0);
  REQUIRE(listen(silent.get(), 4) == 0);
  REQUIRE(getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address.listener), &length) == 0);

  UcxTcpKind kind;
  std::optional<Side> a;
  a.emplace(kind);
  const EndpointId to = a->fabric->Connect(EncodeAddress(address)).value();
  REQUIRE(a->fabric->Send(to, {}, {Side::kMemory, 0, 2 * kMiB}, 1).ok());
  REQUIRE(a->fabric->Send(to, {}, {Side::kMemory, 0, 10}, 2).ok());
  RunFor({&*a}, milliseconds(20));
  REQUIRE(a->events.empty());
  const bool closed_before_the_end = GENERATE(false, true);
  if (closed_before_the_end) {
    a->fabric->CloseForced(to);
    REQUIRE(RunUntil(
        {&*a}, [&] { return a->Sent(1) && a->Sent(2); }, seconds(2)));
    REQUIRE(a->Sent(1)->status.code() == absl::StatusCode::kCancelled);
    REQUIRE(a->Sent(2)->status.code() == absl::StatusCode::kCancelled);
  }
  const auto start = std::chrono::steady_clock::now();
  a.reset();
  REQUIRE(std::chrono::steady_clock::now() - start < Slack(seconds(2)));
}

TEST_CASE("random bytes on the data port do no harm", "[transport][ucx]") {
  INFO("WB_TEST_SEED=" << RunSeed());
  std::mt19937_64 rng = TestRng(0);
  UcxTcpKind kind;
  Side a(kind);
  Side b(kind);
  const UcxAddress address = DecodeAddress(a.fabric->address()).value();
  for (int round = 0; round < 30; ++round) {
    const FdHandle socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.listener),
                    sizeof(address.listener)) == 0);
    Bytes noise(16 + rng() % 500);
    for (std::byte& byte : noise) byte = std::byte(rng() & 0xFF);
    noise[7] |= std::byte{0x80};  // not a small number, which UCX 1.13 takes for a length
    REQUIRE(send(socket.get(), noise.data(), noise.size(), MSG_NOSIGNAL) > 0);
    RunFor({&a, &b}, milliseconds(2));
  }
  b.fabric->SetReceiver(nullptr);
  a.decide = [](const Side::Seen& seen) -> Side::Decision {
    return std::optional<Landing>(Landing{{Side::kMemory, 0, seen.bytes}, 1});
  };
  const EndpointId to = b.fabric->Connect(a.fabric->address()).value();
  REQUIRE(b.fabric->Send(to, {}, {Side::kMemory, 0, kMiB}, 1).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return b.Sent(1) != nullptr; }));
  REQUIRE(b.Sent(1)->status.ok());
}

TEST_CASE("a peer that does not know the nonce of the address loses its endpoint",
          "[transport][ucx]") {
  UcxTcpKind kind;
  Side a(kind);
  Side b(kind);
  UcxAddress address = DecodeAddress(b.fabric->address()).value();
  ++address.nonce;
  const EndpointId to_b = a.fabric->Connect(EncodeAddress(address)).value();
  REQUIRE(a.fabric->Send(to_b, {}, {Side::kMemory, 0, 2 * kMiB}, 1).ok());
  REQUIRE(RunUntil({&a, &b}, [&] { return a.Sent(1) && a.EndpointFailed(); }));
  REQUIRE_FALSE(a.Sent(1)->status.ok());
  REQUIRE(b.seen.empty());
  REQUIRE(b.events.empty());  // it never heard of that endpoint
}

TEST_CASE("an address survives its text, and no text but its own is one",
          "[transport][ucx][property]") {
  INFO("WB_TEST_SEED=" << RunSeed());
  std::mt19937_64 rng = TestRng(0);
  for (int round = 0; round < 20; ++round) {
    UcxAddress address;
    address.listener.sin_family = AF_INET;
    address.listener.sin_addr.s_addr = static_cast<in_addr_t>(rng());
    address.listener.sin_port = htons(static_cast<std::uint16_t>(1 + rng() % 65535));
    address.nonce = rng();
    address.host = rng();
    const std::string text = EncodeAddress(address);
    const UcxAddress read = DecodeAddress(text).value();
    REQUIRE(read.listener.sin_addr.s_addr == address.listener.sin_addr.s_addr);
    REQUIRE(read.listener.sin_port == address.listener.sin_port);
    REQUIRE(read.nonce == address.nonce);
    REQUIRE(read.host == address.host);

    for (std::size_t i = 0; i < text.size(); ++i) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ (1 << (rng() % 8)));
      INFO(text << " changed to " << changed);
      const absl::StatusOr<UcxAddress> other = DecodeAddress(changed);
      // The checksum's digits may change their case.
      REQUIRE((!other.ok() || EncodeAddress(*other) == text));
      REQUIRE_FALSE(DecodeAddress(text.substr(0, i)).ok());
    }
    REQUIRE_FALSE(DecodeAddress(text + "0").ok());
  }
}

}  // namespace
}  // namespace wb::test
