// A rollout rank: receives versions of w [8, 1024] until it holds version VERSIONS. The ranks of
// this engine, WORLD_SIZE of them, hold its columns, whatever the trainer's ranks hold.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "weightbridge/client.h"

namespace wb = weightbridge;

wb::Result<void> Serve(const wb::JoinOptions& options, std::uint64_t versions) {
  const std::int64_t first = 1024 * *options.rank / options.world_size;  // columns [first, end)
  const std::int64_t end = 1024 * (*options.rank + 1) / options.world_size;
  const std::int64_t width = end - first;

  auto memory = wb::SharedBuffer::Create(8 * width * sizeof(float));
  if (!memory.ok()) return memory.error();
  wb::Layout layout;
  wb::Param param("w", {8, width});
  param.AddPiece({"w", {0, first}, {8, end}, {0, 0}, {}});
  auto added = layout.AddTensor("w", wb::Dtype::kFp32, {8, 1024});
  if (added.ok()) added = layout.AddParam(param);
  if (added.ok()) added = layout.SetBuffer("w", *memory);
  if (!added.ok()) return added;

  auto rollout = wb::Rollout::Join(options, layout);
  if (!rollout.ok()) return rollout.error();
  while (rollout->held_version() < versions) {
    auto version = rollout->WaitForVersion(rollout->held_version() + 1, std::chrono::minutes(1));
    if (!version.ok()) return version.error();
    auto report = rollout->Receive(*version, {});  // an engine pauses before it, resumes after
    if (!report.ok()) return report.error();
    // From here on the memory holds the version whole; let us see.
    const auto* w = static_cast<const float*>(memory->data());
    for (std::int64_t i = 0; i < 8 * width; ++i) {
      const std::int64_t index = i / width * 1024 + first + i % width;  // in w, row-major
      if (w[i] != float(index + *version)) return wb::Error{WB_DATA_LOSS, "w is wrong", {}};
    }
    std::printf("version %d: %d bytes received and right, in %.1f ms\n", int(*version),
                int(report->bytes_received), report->total_seconds * 1e3);
  }
  return {};
}

int main(int argc, char** argv) {
  if (argc != 6) {
    std::puts("usage: rollout SOCKET JOB RANK WORLD_SIZE VERSIONS");
    return 3;
  }
  wb::JoinOptions options;
  options.socket = argv[1];  // the worker.sock of this node's daemon
  options.job = argv[2];
  options.group = "engine0";
  options.rank = std::atoi(argv[3]);
  options.world_size = std::atoi(argv[4]);
  const wb::Result<void> served = Serve(options, std::strtoull(argv[5], nullptr, 10));
  if (served.ok()) return 0;
  std::fprintf(stderr, "rollout: %s\n", served.error().ToString().c_str());
  return 1;
}
