// Messages of one process to another over UCX, nothing packed or summed: what a fabric carries.
// Prints GB/s of one walk through as much memory as is given, after one that makes it present.
//
// usage: fabric_bench tcp|shm MESSAGE_BYTES IN_FLIGHT MEMORY_BYTES

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/memory/region.h"
#include "transport/ucx/ucx_environment.h"
#include "transport/ucx/ucx_fabric.h"

namespace wb {
namespace {

constexpr RegionId kMemory{1};

struct Arguments {
  std::string transports;
  std::uint64_t message_bytes = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t memory_bytes = 0;
};

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

std::unique_ptr<Party> MakeParty(const Arguments& arguments) {
  auto party = std::make_unique<Party>();
  absl::StatusOr<Region> memory = Region::AllocateArena(arguments.memory_bytes);
  Check(memory.status());
  Check(party->regions.Add(kMemory, *std::move(memory)));
  absl::StatusOr<std::unique_ptr<Fabric>> fabric =
      UcxFabric::Create({"lo", arguments.transports}, party->regions);
  Check(fabric.status());
  party->fabric = *std::move(fabric);
  return party;
}

/// Progress, or sleep until there is some. False when `stop_fd` can be read.
bool Step(Party& party, int stop_fd) {
  if (party.fabric->Progress(party.events)) return true;
  const absl::StatusOr<bool> armed = party.fabric->Arm();
  Check(armed.status());
  if (!*armed) {
    std::this_thread::yield();  // as the mover does: the other end may need the core
    return true;
  }
  pollfd watched[] = {{party.fabric->wakeup_fd(), POLLIN, 0}, {stop_fd, POLLIN, 0}};
  poll(watched, 2, 1000);
  return watched[1].revents == 0;
}

/// The other process: lands whatever comes, one place after the other.
[[noreturn]] void Serve(const Arguments& arguments, int parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::unique_ptr<Party> party = MakeParty(arguments);
  std::uint64_t next = 0;
  party->fabric->SetReceiver([&](const Announcement& announcement) {
    if (next + announcement.bytes > arguments.memory_bytes) next = 0;
    const Landing landing{{kMemory, next, announcement.bytes}, 0};
    next += announcement.bytes;
    return absl::StatusOr<std::optional<Landing>>(landing);
  });
  const std::string& address = party->fabric->address();
  if (write(parent, address.data(), address.size()) < 0) std::_Exit(1);
  while (Step(*party, parent)) party->events.clear();
  std::_Exit(0);
}

/// Sends the memory once.
void SendAll(Party& sender, EndpointId endpoint, const Arguments& arguments) {
  const std::byte header[64] = {};
  std::uint64_t in_flight = 0;
  const auto settle = [&](std::uint64_t at_most) {
    while (in_flight > at_most) {
      Step(sender, -1);
      for (const FabricEvent& event : sender.events) {
        Check(event.status);
        --in_flight;
      }
      sender.events.clear();
    }
  };
  const std::uint64_t bytes = arguments.message_bytes;
  for (std::uint64_t at = 0; at + bytes <= arguments.memory_bytes; at += bytes) {
    settle(arguments.in_flight - 1);
    Check(sender.fabric->Send(endpoint, header, {kMemory, at, bytes}, 0));
    ++in_flight;
  }
  settle(0);
}

}  // namespace
}  // namespace wb

int main(int argc, char** argv) {
  wb::Arguments arguments;
  if (argc == 5) {
    arguments = {argv[1], std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10),
                 std::strtoull(argv[4], nullptr, 10)};
  }
  if (arguments.message_bytes == 0 || arguments.in_flight == 0 ||
      arguments.memory_bytes < arguments.message_bytes) {
    std::cerr << "usage: fabric_bench tcp|shm MESSAGE_BYTES IN_FLIGHT MEMORY_BYTES\n";
    return 3;
  }
  wb::DropInheritedUcxVariables();
  int ends[2] = {};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return 1;
  const pid_t receiver = fork();
  if (receiver == 0) {
    close(ends[0]);
    wb::Serve(arguments, ends[1]);
  }
  close(ends[1]);
  char address[256] = {};
  if (read(ends[0], address, sizeof(address) - 1) <= 0) return 1;
  const std::unique_ptr<wb::Party> party = wb::MakeParty(arguments);
  const absl::StatusOr<wb::EndpointId> connected = party->fabric->Connect(address);
  wb::Check(connected.status());
  wb::SendAll(*party, *connected, arguments);
  const auto start = std::chrono::steady_clock::now();
  wb::SendAll(*party, *connected, arguments);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%.3f\n", static_cast<double>(arguments.memory_bytes) / took.count() / 1e9);
  close(ends[0]);
  waitpid(receiver, nullptr, 0);
  return 0;
}
