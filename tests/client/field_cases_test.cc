// Cases 59 and 79, as far as they are the library's.
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "tests/client/call_script.h"
#include "tests/client/join_fixture.h"
#include "tests/support/open_descriptors.h"

namespace wb::test {
namespace {

using namespace std::chrono_literals;
using weightbridge::Result;
using weightbridge::Rollout;
using weightbridge::SharedBuffer;

/// From now on this process has no such system call. False where that cannot be arranged.
bool Forbid(unsigned call) {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_CASE("without memfd_create a buffer is refused at once, and what to allow is said",
          "[client][field][case-59]") {
  const std::string text = InChild([]() -> std::string {
    if (!Forbid(SYS_memfd_create)) return "no seccomp here";
    const std::ptrdiff_t before = OpenDescriptors();
    const Result<SharedBuffer> made = SharedBuffer::Create(4096);
    if (made.ok() || OpenDescriptors() != before) return "made, or a descriptor is left";
    return made.error().ToString();
  });
  CHECK(Contains(text, "UNAVAILABLE"));
  CHECK(Contains(text, "memfd_create: "));
  CHECK(Contains(text, "ENOSYS"));
  CHECK(Contains(text, "allow memfd_create"));
}

TEST_CASE("without sendmsg Join fails at once, says so, and nothing is half registered",
          "[client][field][case-59]") {
  Seen<bool> joined;
  FakeDaemon daemon([&](FakePeer& peer, int) { joined.Add(peer.TakeJoin().has_value()); });
  const weightbridge::Layout layout = RowLayout();
  const Stopwatch watch;
  const std::string text = InChild([&]() -> std::string {
    if (!Forbid(SYS_sendmsg)) return "no seccomp here";
    const std::ptrdiff_t before = OpenDescriptors();
    const std::string error = JoinError(OptionsFor(daemon.socket()), layout);
    return OpenDescriptors() == before ? error : "a descriptor is left after " + error;
  });
  CHECK(watch.elapsed() < Slack(1000ms));
  CHECK(Contains(text, "UNAVAILABLE: join of engine0/1"));
  CHECK(Contains(text, "sendmsg: "));
  CHECK(Contains(text, "ENOSYS"));
  CHECK(Contains(text, "allow sendmsg with SCM_RIGHTS"));
  REQUIRE(Soon([&] { return !joined.all().empty(); }));
  CHECK_FALSE(joined.all().front());
}

TEST_CASE("the version is read by any thread, at a request's start and at its end",
          "[client][field][case-79]") {
  constexpr std::uint64_t kLast = 40;
  FakeDaemon daemon([](FakePeer& peer, int) {
    if (!peer.GrantJoin()) return;
    for (std::uint64_t version = 3; version <= kLast; ++version) {
      if (!Deliver(peer, version)) return;
    }
    peer.StaySilent();
  });
  Result<Rollout> rollout = JoinRollout(daemon);
  REQUIRE(rollout.ok());
  REQUIRE(rollout->Receive(3, {}).ok());
  const std::uint64_t start = rollout->held_version();

  // In place the memory holds no version while it is written: 0. Of the others none goes back.
  std::atomic<bool> stop{false};
  std::atomic<bool> decreased{false};
  std::uint64_t reads = 0;
  std::thread reader([&] {
    std::uint64_t last = 0;
    while (!stop || reads < 100'000) {
      const std::uint64_t now = rollout->held_version();
      if (now != 0 && now < last) decreased = true;
      if (now != 0) last = now;
      ++reads;
    }
  });
  bool all = true;
  for (std::uint64_t version = 4; version <= kLast; ++version) {
    all = all && rollout->Receive(version, {}).ok() && rollout->held_version() == version;
  }
  stop = true;
  reader.join();
  CHECK(all);
  CHECK_FALSE(decreased);
  CHECK(reads >= 100'000);
  CHECK(start == 3);
  CHECK(rollout->held_version() == kLast);
  CHECK(rollout->memory_state() == weightbridge::MemoryState::kValid);
}

}  // namespace
}  // namespace wb::test
