// Messages of one process to another over UCX and TCP on the loopback interface, nothing packed or
// summed, against one thread's memcpy in the same run. Arguments: bytes a message, messages in
// flight.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <benchmark/benchmark.h>

#include "transport/memory/region.h"
#include "transport/ucx/ucx_environment.h"
#include "transport/ucx/ucx_fabric.h"

namespace wb {
namespace {

constexpr RegionId kMemory{1};
constexpr std::uint64_t kMemoryBytes = std::uint64_t{64} << 20;

struct Party {
  RegionTable regions;
  std::unique_ptr<Fabric> fabric;
  std::vector<FabricEvent> events;
};

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << status << '\n';
  std::exit(1);
}

std::unique_ptr<Party> MakeParty() {
  auto party = std::make_unique<Party>();
  absl::StatusOr<Region> memory = Region::AllocateArena(kMemoryBytes);
  Check(memory.status());
  Check(party->regions.Add(kMemory, *std::move(memory)));
  absl::StatusOr<std::unique_ptr<Fabric>> fabric =
      UcxFabric::Create({.interface = "lo"}, party->regions);
  Check(fabric.status());
  party->fabric = *std::move(fabric);
  return party;
}

/// Progress, or sleep until there is some. False when `stop_fd` can be read.
bool Step(Party& party, int stop_fd) {
  if (party.fabric->Progress(party.events)) return true;
  const absl::StatusOr<bool> armed = party.fabric->Arm();
  Check(armed.status());
  if (!*armed) return true;
  pollfd watched[] = {{party.fabric->wakeup_fd(), POLLIN, 0}, {stop_fd, POLLIN, 0}};
  poll(watched, 2, 1000);
  return watched[1].revents == 0;
}

/// The other process: lands whatever comes, one place after the other.
[[noreturn]] void Serve(int parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::unique_ptr<Party> party = MakeParty();
  std::uint64_t next = 0;
  party->fabric->SetReceiver([&](const Announcement& announcement) {
    if (next + announcement.bytes > kMemoryBytes) next = 0;
    const Landing landing{{kMemory, next, announcement.bytes}, 0};
    next += announcement.bytes;
    return absl::StatusOr<std::optional<Landing>>(landing);
  });
  const std::string& address = party->fabric->address();
  if (write(parent, address.data(), address.size()) < 0) std::_Exit(1);
  while (Step(*party, parent)) party->events.clear();
  std::_Exit(0);
}

double MemcpyRate(std::span<std::byte> memory) {
  const std::size_t half = memory.size() / 2;
  double best = 0;
  for (int round = 0; round < 10; ++round) {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(memory.data(), memory.data() + half, half);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(half) / took.count() / 1e9);
  }
  return best;
}

Party* sender = nullptr;
EndpointId endpoint;

void SendMessages(benchmark::State& state) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  const auto window = static_cast<std::uint64_t>(state.range(1));
  const std::byte header[64] = {};
  std::uint64_t in_flight = 0;
  std::uint64_t next = 0;
  const auto settle = [&](std::uint64_t at_most) {
    while (in_flight > at_most) {
      Step(*sender, -1);
      for (const FabricEvent& event : sender->events) {
        Check(event.status);
        --in_flight;
      }
      sender->events.clear();
    }
  };
  for ([[maybe_unused]] const auto& _ : state) {
    settle(window - 1);
    if (next + bytes > kMemoryBytes) next = 0;
    Check(sender->fabric->Send(endpoint, header, {kMemory, next, bytes}, 0));
    next += bytes;
    ++in_flight;
  }
  settle(0);
  state.SetBytesProcessed(state.iterations() * state.range(0));
  state.counters["limit_gb_per_s"] =
      MemcpyRate(sender->regions.ResolveWritable({kMemory, 0, kMemoryBytes}).value());
}

BENCHMARK(SendMessages)
    ->ArgsProduct({{4 << 10, 64 << 10, 1 << 20, 4 << 20}, {1, 2, 4, 8}})
    ->UseRealTime();

}  // namespace
}  // namespace wb

int main(int argc, char** argv) {
  wb::DropInheritedUcxVariables();
  int ends[2] = {};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return 1;
  const pid_t receiver = fork();
  if (receiver == 0) {
    close(ends[0]);
    wb::Serve(ends[1]);
  }
  close(ends[1]);
  char address[256] = {};
  if (read(ends[0], address, sizeof(address) - 1) <= 0) return 1;
  const std::unique_ptr<wb::Party> party = wb::MakeParty();
  wb::sender = party.get();
  const absl::StatusOr<wb::EndpointId> connected = party->fabric->Connect(address);
  wb::Check(connected.status());
  wb::endpoint = *connected;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  close(ends[0]);
  waitpid(receiver, nullptr, 0);
  return 0;
}
