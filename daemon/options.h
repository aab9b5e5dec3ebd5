#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "daemon/rpc/tcp_address.h"
#include "daemon/rpc/tls/tls_identity.h"

namespace wb {

/// The configuration of one weightbridged, read from its YAML file; deploy/weightbridged.yaml
/// explains every key. Plain value, checked by ParseOptions.
struct DaemonOptions {
  std::string node;
  std::string run_dir;
  std::optional<TcpAddress> control_listen;
  std::optional<TcpAddress> leader_listen;   // this daemon is the leader: exactly one of
  std::optional<TcpAddress> leader_address;  // these two is set
  std::uint32_t leader_min_groups = 1;       // a version that fewer groups are ready for fails
  std::uint32_t leader_retire_after = 3;     // restarts of a rollout group; 0: never
  TlsFiles tls;                              // all three paths are set, or none
  std::string tls_leader_name;               // empty: the IP address of leader.address
  std::string data_interface;
  std::string data_transports = "tcp";                 // "tcp", "shm", or "auto" for both
  bool data_insecure = false;                          // a public address may carry weights
  std::uint64_t limits_memory_bytes = 1ULL << 40;      // opened memory of all workers
  std::uint32_t limits_workers = 64;                   // sessions at a time
  std::uint64_t limits_message_bytes = 256ULL << 20;   // a layout, a plan part
  std::chrono::milliseconds timeouts_drain{5'000};     // from SIGTERM to the end
  std::chrono::milliseconds timeouts_start{10'000};    // participants of a version to be ready
  std::chrono::milliseconds timeouts_peer{5'000};      // a silent daemon counts as dead
  std::chrono::milliseconds timeouts_rejoin{10'000};   // ranks to come back after a leader's death
  std::chrono::milliseconds timeouts_decision{5'000};  // a staged Receive without leader
  bool integrity_wire = true;                          // sum every chunk
  int copy_threads = 1;
  std::string log_level = "info";
  bool log_json = false;

  bool has_tls() const { return !tls.cert.empty(); }
};

/// The options in `yaml`, or INVALID_ARGUMENT with every reason, one a line, each with `file`, the
/// line and the key's path. `default_run_dir` is used where the file names none. Stateless.
[[nodiscard]] absl::StatusOr<DaemonOptions> ParseOptions(std::string_view yaml,
                                                         const std::string& file,
                                                         const std::string& default_run_dir);

/// As ParseOptions, from the file itself.
[[nodiscard]] absl::StatusOr<DaemonOptions> LoadOptions(const std::string& file,
                                                        const std::string& default_run_dir);

}  // namespace wb
