#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/checkpoint_file.h"
#include "tests/support/layout_file.h"
#include "tests/support/npy_file.h"
#include "tests/support/run_to_end.h"
#include "tests/support/temp_folder.h"

namespace wb::test {

struct RehearseOptions {
  std::string fill = "row";
  std::uint64_t versions = 3;
  CheckpointFile checkpoint = {};  // not empty: instead of `fill`
  std::uint64_t first_version = 1;
  std::string transport = "tcp";
};

/// What a version of a rehearsal came to.
struct RehearsedVersion {
  std::uint64_t version = 0;
  std::uint64_t bytes_planned = 0;
  std::uint64_t bytes_moved = 0;
  std::map<std::string, std::uint64_t> bytes_by_path;
  std::uint64_t verified_bytes = 0;
};

/// A rehearsal through the real programs (wbctl, and with it weightbridged), run to its end. Its
/// dump is there as long as this object.
class Rehearsal {
 public:
  Rehearsal(const LayoutFileSpec& file, const RehearseOptions& options);

  const ProgramEnd& run() const { return run_; }
  /// Exit 0, and nothing left in the folder where the programs put their sockets and logs.
  bool passed() const { return run_.exit_code == 0 && left_behind_.empty(); }
  /// What a failed one should show.
  std::string story() const;
  const std::vector<RehearsedVersion>& versions() const { return versions_; }
  /// A rollout's param as the rollout process itself wrote it after the last version.
  NpyFile Dumped(const std::string& group, std::int32_t rank, const std::string& param) const;
  /// All of those, as they were written, by file name.
  std::map<std::string, std::string> Dumps() const;

 private:
  TempFolder folder_;
  ProgramEnd run_;
  std::vector<RehearsedVersion> versions_;
  std::vector<std::string> left_behind_;
};

/// `wbctl plan` on the file, run to its end.
[[nodiscard]] ProgramEnd PlanFile(const LayoutFileSpec& file);

}  // namespace wb::test
