#include "client/wbctl/rehearse/daemon_config.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace wb {
namespace {

constexpr std::size_t kLeastWorkers = 64;
constexpr std::int64_t kMostMs = 3'600'000;  // the daemon's limit of a time
/// All processes share this machine's cores: a daemon that waits for one is not dead. One that is
/// dead shows in its process, not here.
constexpr char kPeer[] = "30s";

/// A double-quoted YAML scalar.
std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted + "\"";
}

}  // namespace

std::string ToYaml(const DaemonConfig& config) {
  const std::string leader = config.leader_address.empty()
                                 ? "  listen: \"127.0.0.1:0\"\n"
                                 : absl::StrCat("  address: ", Quote(config.leader_address), "\n");
  const std::int64_t start_ms = std::min<std::int64_t>(config.start.count(), kMostMs);
  return absl::StrCat("node: ", Quote(config.node), "\nrun_dir: ", Quote(config.run_dir.string()),
                      "\nleader:\n", leader,
                      "data:\n  interface: lo\n  transports: ", config.transport,
                      "\nlimits:\n  workers: ", std::max(config.workers, kLeastWorkers),
                      "\ntimeouts:\n  start: ", start_ms, "ms\n  peer: ", kPeer, "\n");
}

}  // namespace wb
