// A trainer rank: publishes versions 1 to VERSIONS of one tensor, w [8, 1024] in FP32. The ranks of
// the trainer group, WORLD_SIZE of them, hold its rows, each its share.
#include <cstdio>
#include <cstdlib>

#include "weightbridge/client.h"

namespace wb = weightbridge;

wb::Result<void> Train(const wb::JoinOptions& options, std::uint64_t versions) {
  const std::int64_t first = 8 * *options.rank / options.world_size;  // rows [first, end) of w
  const std::int64_t end = 8 * (*options.rank + 1) / options.world_size;
  const std::int64_t elements = (end - first) * 1024;

  auto memory = wb::SharedBuffer::Create(elements * sizeof(float));  // a daemon can open it
  if (!memory.ok()) return memory.error();
  wb::Layout layout;                                           // what lies where in it: said once
  wb::Param param("w", {end - first, 1024});                   // our part of w
  param.AddPiece({"w", {first, 0}, {end, 1024}, {0, 0}, {}});  // tensor, from, to; where in param
  auto added = layout.AddTensor("w", wb::Dtype::kFp32, {8, 1024});  // all of w
  if (added.ok()) added = layout.AddParam(param);
  if (added.ok()) added = layout.SetBuffer("w", *memory);
  if (!added.ok()) return added;

  auto trainer = wb::Trainer::Join(options, layout);
  if (!trainer.ok()) return trainer.error();
  for (std::uint64_t version = 1; version <= versions; ++version) {
    auto* w = static_cast<float*>(memory->data());  // a training step writes the weights
    for (std::int64_t i = 0; i < elements; ++i) w[i] = float(first * 1024 + i + version);
    auto report = trainer->Publish(version, {});  // once it returns they may be written again
    if (!report.ok()) return report.error();
    std::printf("version %d: %d bytes sent in %.1f ms\n", int(version), int(report->bytes_sent),
                report->total_seconds * 1e3);
  }
  return {};
}

int main(int argc, char** argv) {
  if (argc != 6) {
    std::puts("usage: trainer SOCKET JOB RANK WORLD_SIZE VERSIONS");
    return 3;
  }
  wb::JoinOptions options;
  options.socket = argv[1];  // the worker.sock of this node's daemon
  options.job = argv[2];
  options.group = "policy";
  options.rank = std::atoi(argv[3]);
  options.world_size = std::atoi(argv[4]);
  const wb::Result<void> trained = Train(options, std::strtoull(argv[5], nullptr, 10));
  if (trained.ok()) return 0;
  std::fprintf(stderr, "trainer: %s\n", trained.error().ToString().c_str());
  return 1;
}
