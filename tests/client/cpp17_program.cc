// client.h as a C++17 program without exceptions uses it: this file has to compile.
#include "weightbridge/client.h"

namespace {

weightbridge::Result<std::uint64_t> ServeOnce(const weightbridge::JoinOptions& options) {
  weightbridge::Result<weightbridge::SharedBuffer> memory = weightbridge::SharedBuffer::Create(64);
  if (!memory.ok()) return memory.error();
  weightbridge::Layout layout;
  weightbridge::Param param("w", {4, 4});
  param.AddPiece({"w", {0, 0}, {4, 4}, {0, 0}, {}});
  weightbridge::Result<void> added = layout.AddTensor("w", weightbridge::Dtype::kFp32, {4, 4});
  if (added.ok()) added = layout.AddParam(param);
  if (added.ok()) added = layout.SetBuffer("w", *memory);
  if (!added.ok()) return added.error();
  weightbridge::Result<weightbridge::Rollout> rollout =
      weightbridge::Rollout::Join(options, layout);
  if (!rollout.ok()) return rollout.error();
  weightbridge::Result<std::uint64_t> version =
      rollout->WaitForVersion(rollout->held_version() + 1, std::chrono::seconds(1));
  if (!version.ok()) return version;
  weightbridge::Result<weightbridge::ReceiveReport> report = rollout->Receive(*version, {});
  if (!report.ok()) return report.error();
  return report->version;
}

}  // namespace

extern "C" int wb_test_cpp17_program(const char* socket);

extern "C" int wb_test_cpp17_program(const char* socket) {
  weightbridge::JoinOptions options;
  options.socket = socket;
  options.job = "run1";
  options.group = "engine0";
  options.rank = 0;
  options.world_size = 1;
  const weightbridge::Result<std::uint64_t> served = ServeOnce(options);
  return served.ok() ? WB_OK : served.error().code;
}
