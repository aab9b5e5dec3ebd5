#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "client/wbctl/contents/worker_memory.h"
#include "client/wbctl/process/footprint.h"

namespace wb {

/// What one version of a rehearsal came to. Bytes and times are the leader's counters, as far as
/// they are not about checking.
struct VersionResult {
  std::uint64_t version = 0;
  std::uint64_t bytes_planned = 0;
  std::map<std::string, std::uint64_t> bytes_by_path;  // "tcp", "shm", "local"
  double average_stall_ms = 0;
  double end_to_end_ms = 0;
  std::uint64_t bound_bytes = 0;
  std::uint64_t verified_bytes = 0;         // elements of rollouts, compared
  std::uint64_t verified_hole_bytes = 0;    // outside all pieces, of rollouts and trainers
  std::uint64_t verified_source_bytes = 0;  // elements of trainers, compared after the move
  std::vector<Footprint> daemons;           // after it, as RehearsalResult::daemon_pids

  std::uint64_t bytes_moved() const;
  /// Bytes moved over the end-to-end time; 0 when there is no time.
  double gb_per_s() const;
};

/// Where the bytes of a worker differ.
struct WorkerMismatches {
  std::string worker;
  std::uint64_t version = 0;
  std::uint64_t count = 0;
  std::vector<Mismatch> first;
};

/// What a rehearsal came to.
struct RehearsalResult {
  std::string source;  // "in_place", "snapshot"
  std::vector<VersionResult> versions;
  std::vector<pid_t> daemon_pids;
  std::vector<pid_t> worker_pids;
  std::vector<WorkerMismatches> mismatches;
  std::vector<std::string> export_differences;  // sentences
  bool exported = false;
  std::filesystem::path kept;  // the run directory, where it was to be kept

  bool differs() const { return !mismatches.empty() || !export_differences.empty(); }
};

/// The JSON that programs read (its names are a contract), with "processes", and "mismatches" where
/// there are any.
[[nodiscard]] std::string ToJson(const RehearsalResult& result);
/// The same for people, a line a version.
[[nodiscard]] std::string ToTable(const RehearsalResult& result);
/// A line for each mismatch that is known in full and for each difference of the export; "" when
/// there is none.
[[nodiscard]] std::string DescribeDifferences(const RehearsalResult& result);

}  // namespace wb
