#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/status.h"

#include "client/wbctl/contents/checkpoint.h"
#include "client/wbctl/contents/fill.h"
#include "client/wbctl/rehearse/result.h"
#include "planner/model/plan.h"
#include "proto/convert.h"

namespace wb {

struct RehearsalOptions {
  Fill fill = Fill::kHash;
  std::uint64_t versions = 3;
  std::uint64_t first_version = 1;
  std::string transport = "tcp";
  bool snapshot = false;                       // at the source; else in place
  std::filesystem::path checkpoint;            // empty: none
  std::filesystem::path export_to;             // empty: no export
  std::filesystem::path dump;                  // empty: no dump
  std::chrono::milliseconds timeout{120'000};  // of any one step
  std::string flip;                            // worker that spoils a bit; empty: none
  bool keep = false;                           // the run directory
  std::filesystem::path daemon_binary;
  std::filesystem::path worker_binary;
  std::function<void(const std::string&)> progress;
};

/// What is rehearsed; all checked, and borrowed for the call.
struct RehearsalInput {
  const LoadedJob& job;
  const Plan& plan;              // of job.job
  const Checkpoint* checkpoint;  // null: none; else it has all of the job's tensors
};

/// The whole system on this machine: a daemon process for each node, a worker process for each
/// layout, every version published, received, and compared byte for byte by every worker. Ends
/// early, and well, after the first version in which bytes differ: `result.differs()`.
///
/// An error names the process or step that failed. Nothing is left behind either way, but the
/// run directory where it is to be kept.
[[nodiscard]] absl::Status Rehearse(const RehearsalInput& input,
                                    const RehearsalOptions& options,
                                    RehearsalResult& result);

}  // namespace wb
