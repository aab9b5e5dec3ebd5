// A trainer or a rollout as a program of its own, for tests that put it into namespaces where a
// test's own process is not: `worker_program trainer|rollout SOCKET VERSIONS` publishes or receives
// versions 1 to VERSIONS of one tensor, checks every element that it receives, and says on stderr
// what failed.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include <unistd.h>

#include <sanitizer/lsan_interface.h>

#include "client/include/weightbridge/client.h"

/// Asked by a build with LeakSanitizer: it looks for leaks in /proc, which a test may take away.
int __lsan_is_turned_off() {
  return ::access("/proc/self", F_OK) == 0 ? 0 : 1;
}

namespace {

using namespace weightbridge;  // NOLINT(google-build-using-namespace): a program of this library

constexpr std::int64_t kElements = 64 * 1024;
constexpr std::chrono::seconds kTimeout{60};

float ValueAt(std::size_t element, std::uint64_t version) {
  return static_cast<float>(version) + static_cast<float>(element) / kElements;
}

int Fail(const Error& error) {
  std::cerr << error.ToString() << "\n";
  return 1;
}

int RunTrainer(const JoinOptions& options,
               const Layout& layout,
               float* values,
               std::uint64_t last) {
  Result<Trainer> trainer = Trainer::Join(options, layout);
  if (!trainer.ok()) return Fail(trainer.error());
  for (std::uint64_t version = 1; version <= last; ++version) {
    for (std::size_t i = 0; i < kElements; ++i) values[i] = ValueAt(i, version);
    const auto published = trainer->Publish(version, {"", kTimeout});
    if (!published.ok()) return Fail(published.error());
  }
  return 0;
}

int RunRollout(const JoinOptions& options,
               const Layout& layout,
               float* values,
               std::uint64_t last) {
  Result<Rollout> rollout = Rollout::Join(options, layout);
  if (!rollout.ok()) return Fail(rollout.error());
  for (std::uint64_t version = 1; version <= last; ++version) {
    const auto offered = rollout->WaitForVersion(version, kTimeout);
    if (!offered.ok()) return Fail(offered.error());
    const auto received = rollout->Receive(version, {kTimeout});
    if (!received.ok()) return Fail(received.error());
    for (std::size_t i = 0; i < kElements; ++i) {
      if (values[i] == ValueAt(i, version)) continue;
      std::cerr << "version " << version << ": element " << i << " is " << values[i] << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 3;
  const std::string role = argv[1];
  const std::uint64_t versions = std::strtoull(argv[3], nullptr, 10);
  Result<SharedBuffer> memory = SharedBuffer::Create(kElements * sizeof(float));
  if (!memory.ok()) return Fail(memory.error());
  Layout layout;
  Param param("w", {kElements});
  param.AddPiece({"w", {0}, {kElements}, {0}, {}});
  const bool laid = layout.AddTensor("w", Dtype::kFp32, {kElements}).ok() &&
                    layout.AddParam(param).ok() && layout.SetBuffer("w", *memory).ok();
  if (!laid) return 3;
  JoinOptions options;
  options.socket = argv[2];
  options.job = "job";
  options.group = role == "trainer" ? "policy" : "engine0";
  options.rank = 0;
  options.world_size = 1;
  options.timeout = kTimeout;
  auto* const values = static_cast<float*>(memory->data());
  return role == "trainer" ? RunTrainer(options, layout, values, versions)
                           : RunRollout(options, layout, values, versions);
}
