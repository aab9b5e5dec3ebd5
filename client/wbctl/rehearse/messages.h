#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/wbctl/contents/fill.h"
#include "client/wbctl/contents/worker_memory.h"

namespace wb {

/// What a worker process is told at its start, in a file (JSON).
struct WorkerSpec {
  std::string layout;  // path of its serialised weightbridge.v1.Layout
  std::string socket;  // its daemon's worker.sock
  std::int32_t world_size = 0;
  std::int64_t timeout_ms = 0;              // of any one step
  Fill fill = Fill::kHash;                  // if there is no checkpoint
  std::string checkpoint;                   // path; empty: none
  std::map<std::string, std::string> ties;  // tensor -> the one whose contents it holds
  bool flip = false;                        // spoil one bit, to prove that the check sees it
  bool snapshot = false;  // trainers publish from one, and write the next version meanwhile
};

/// The steps of a rehearsal. All workers take a step before any takes the next.
enum class Step : std::uint8_t {
  kJoin,     // not ordered: what every worker does first
  kPrepare,  // trainers fill their elements, rollouts blank theirs
  kMove,     // trainers publish, rollouts receive; all wait for the end
  kCheck,    // every byte is compared
  kDump,     // rollouts write their params to the folder `paths[0]`
  kExport,   // rollouts write their elements into the checkpoint's copies `paths`
  kLeave,    // the process ends
};
/// "join", "prepare", ...
[[nodiscard]] const char* StepName(Step step);

/// What the rehearsal tells a worker, over the control channel.
struct Order {
  Step step = Step::kPrepare;
  std::uint64_t version = 0;
  std::vector<std::string> paths;
};

/// What a worker answers, once for each order.
struct StepReport {
  Step step = Step::kJoin;
  std::string error;  // empty: done
  CheckResult check;  // of kCheck
};

// JSON texts of the above. FromJson is INVALID_ARGUMENT for anything else.
[[nodiscard]] std::string ToJson(const WorkerSpec& spec);
[[nodiscard]] std::string ToJson(const Order& order);
/// Texts are cut so that the message fits a control channel.
[[nodiscard]] std::string ToJson(const StepReport& report);
[[nodiscard]] absl::StatusOr<WorkerSpec> WorkerSpecFromJson(const std::string& text);
[[nodiscard]] absl::StatusOr<Order> OrderFromJson(const std::string& text);
[[nodiscard]] absl::StatusOr<StepReport> StepReportFromJson(const std::string& text);

}  // namespace wb
