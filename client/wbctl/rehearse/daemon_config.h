#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

namespace wb {

/// What the daemon of a rehearsal's node is told. Plain value.
struct DaemonConfig {
  std::string node;
  std::filesystem::path run_dir;
  std::string leader_address;  // HOST:PORT; empty: this daemon leads, on a port of its choice
  std::string transport;       // as data.transports: "tcp", "shm" or "auto"
  std::size_t workers = 0;     // that will join it
  std::chrono::milliseconds start{0};  // how long the participants of a version may take
};

/// Its configuration file (YAML). Only the loopback interface is used.
[[nodiscard]] std::string ToYaml(const DaemonConfig& config);

}  // namespace wb
