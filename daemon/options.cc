#include "daemon/options.h"

#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "daemon/rpc/run_dir.h"
#include "daemon/rpc/small_file.h"
#include "daemon/state/members.h"
#include "planner/base/status_macros.h"
#include "planner/yaml/yaml_file.h"

namespace wb {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;
constexpr std::uint64_t kLeastMessageBytes = 65'536;
constexpr std::uint64_t kMostMessageBytes = 2'000'000'000;  // protobuf ends below 2 GiB

// ---- readers of one value ----

constexpr std::uint64_t kLeastMs = 100;
/// Below it, the pings between daemons could not keep what timeouts.peer promises.
constexpr std::uint64_t kLeastPeerMs = 400;

absl::StatusOr<std::chrono::milliseconds> ReadDuration(const YAML::Node& value,
                                                       std::uint64_t least_ms = kLeastMs) {
  constexpr std::uint64_t kMostMs = 3'600'000;
  WB_ASSIGN_OR_RETURN(const std::string text, ReadText(value));
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const bool known = unit == "ms" || unit == "s";
  const std::uint64_t scale = unit == "s" ? 1000 : 1;
  if (error != std::errc() || !known || number > kMostMs / scale || number * scale < least_ms) {
    return Want(text, absl::StrCat("a time from ", least_ms, "ms to 3600s, as 500ms or 10s"));
  }
  return std::chrono::milliseconds(number * scale);
}

absl::StatusOr<TcpAddress> ReadAddress(const YAML::Node& value) {
  WB_ASSIGN_OR_RETURN(const std::string text, ReadText(value));
  return ParseTcpAddress(text);
}

absl::Status NotInThisBuild(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(absl::string_view(what.data(), what.size()), " is not in this build"));
}

/// A list of what may be used, or one word: auto is both.
absl::Status ReadTransports(const YAML::Node& value, std::string& transports) {
  if (!value.IsSequence()) {
    WB_ASSIGN_OR_RETURN(transports, ReadOneOf(value, {"tcp", "shm", "auto"}));
    return absl::OkStatus();
  }
  std::set<std::string> listed;
  for (const YAML::Node& one : value) {
    WB_ASSIGN_OR_RETURN(std::string name, ReadOneOf(one, {"tcp", "shm"}));
    listed.insert(std::move(name));
  }
  if (listed.empty()) return absl::InvalidArgumentError("is empty, want tcp, shm or both");
  transports = listed.size() == 2 ? "auto" : *listed.begin();
  return absl::OkStatus();
}

YamlReaders ReadersInto(DaemonOptions& o) {
  using YAML::Node;
  constexpr std::uint64_t kAny = std::numeric_limits<std::int64_t>::max();
  return {
      {"node", [&o](const Node& v) { return Assign(o.node, ReadName(v)); }},
      {"run_dir", [&o](const Node& v) { return Assign(o.run_dir, ReadText(v)); }},
      {"control.listen", [&o](const Node& v) { return Assign(o.control_listen, ReadAddress(v)); }},
      {"leader.listen", [&o](const Node& v) { return Assign(o.leader_listen, ReadAddress(v)); }},
      {"leader.address", [&o](const Node& v) { return Assign(o.leader_address, ReadAddress(v)); }},
      {"leader.min_groups",
       [&o](const Node& v) { return Assign(o.leader_min_groups, ReadInteger(v, 1, 65'536)); }},
      {"leader.retire_after",
       [&o](const Node& v) { return Assign(o.leader_retire_after, ReadInteger(v, 0, 1'000'000)); }},
      {"data.interface", [&o](const Node& v) { return Assign(o.data_interface, ReadText(v)); }},
      {"data.transports", [&o](const Node& v) { return ReadTransports(v, o.data_transports); }},
      {"data.insecure", [&o](const Node& v) { return Assign(o.data_insecure, ReadBool(v)); }},
      {"tls.cert", [&o](const Node& v) { return Assign(o.tls.cert, ReadText(v)); }},
      {"tls.key", [&o](const Node& v) { return Assign(o.tls.key, ReadText(v)); }},
      {"tls.ca", [&o](const Node& v) { return Assign(o.tls.ca, ReadText(v)); }},
      {"tls.leader_name", [&o](const Node& v) { return Assign(o.tls_leader_name, ReadText(v)); }},
      {"limits.memory_bytes",
       [&o](const Node& v) { return Assign(o.limits_memory_bytes, ReadInteger(v, 1, kAny)); }},
      {"limits.workers",
       [&o](const Node& v) { return Assign(o.limits_workers, ReadInteger(v, 1, kMaxSessions)); }},
      {"limits.message_bytes",
       [&o](const Node& v) {
         return Assign(o.limits_message_bytes,
                       ReadInteger(v, kLeastMessageBytes, kMostMessageBytes));
       }},
      {"timeouts.drain", [&o](const Node& v) { return Assign(o.timeouts_drain, ReadDuration(v)); }},
      {"timeouts.start", [&o](const Node& v) { return Assign(o.timeouts_start, ReadDuration(v)); }},
      {"timeouts.peer",
       [&o](const Node& v) { return Assign(o.timeouts_peer, ReadDuration(v, kLeastPeerMs)); }},
      {"timeouts.rejoin",
       [&o](const Node& v) { return Assign(o.timeouts_rejoin, ReadDuration(v)); }},
      {"timeouts.decision",
       [&o](const Node& v) { return Assign(o.timeouts_decision, ReadDuration(v)); }},
      {"integrity",
       [&o](const Node& v) {
         const absl::StatusOr<std::string> read = ReadOneOf(v, {"off", "wire"});
         if (read.ok()) o.integrity_wire = *read == "wire";
         return read.status();
       }},
      {"copy_threads",
       [&o](const Node& v) { return Assign(o.copy_threads, ReadInteger(v, 1, 64)); }},
      {"log.level",
       [&o](const Node& v) {
         return Assign(o.log_level, ReadOneOf(v, {"trace", "debug", "info", "warn", "error"}));
       }},
      {"log.format",
       [&o](const Node& v) {
         const absl::StatusOr<std::string> read = ReadOneOf(v, {"text", "json"});
         if (read.ok()) o.log_json = *read == "json";
         return read.status();
       }},
      {"metrics.listen", [](const Node& /*v*/) { return NotInThisBuild("/metrics"); }},
  };
}

/// All of tls.{cert,key,ca} or none; without them nothing but this node is spoken to.
void CheckTls(const DaemonOptions& options, YamlFile& file) {
  std::vector<std::string> missing;
  for (const auto& [name, path] :
       {std::pair("cert", &options.tls.cert), {"key", &options.tls.key}, {"ca", &options.tls.ca}}) {
    if (path->empty()) missing.emplace_back(name);
  }
  if (missing.empty()) return;
  if (missing.size() < 3 || !options.tls_leader_name.empty()) {
    file.Refuse("tls", absl::StrCat("has no ", absl::StrJoin(missing, " and no "),
                                    ", want cert, key and ca, or no tls at all"));
    return;
  }
  for (const auto& [key, address] : {std::pair("leader.listen", &options.leader_listen),
                                     {"leader.address", &options.leader_address},
                                     {"control.listen", &options.control_listen}}) {
    if (!address->has_value() || IsLoopback(**address)) continue;
    file.Refuse(key, absl::StrCat("'", (*address)->ToString(),
                                  "', want a loopback address (127.0.0.0/8, [::1], localhost): "
                                  "without tls.cert, tls.key and tls.ca no other is listened on "
                                  "or dialled"));
  }
}

void CheckWhole(const DaemonOptions& options, YamlFile& file) {
  if (options.node.empty()) file.Refuse("node", "is missing, want this node's name");
  if (options.data_interface.empty()) {
    file.Refuse("data.interface", "is missing, want the network interface that carries weights");
  }
  if (options.leader_listen.has_value() == options.leader_address.has_value()) {
    file.Refuse("leader", options.leader_listen.has_value()
                              ? "has listen and address, want one of them"
                              : "has neither listen nor address, want one of them");
  }
  if (options.leader_address.has_value() && options.leader_address->port == 0) {
    file.Refuse("leader.address", "has port 0, want the port that the leader listens on");
  }
  if (options.leader_address.has_value() && IsWildcard(*options.leader_address)) {
    file.Refuse("leader.address",
                absl::StrCat("'", options.leader_address->ToString(),
                             "' is every address of a node, want one of the leader's"));
  }
  if (options.control_listen.has_value() && options.control_listen == options.leader_listen &&
      options.control_listen->port != 0) {
    file.Refuse("control.listen", absl::StrCat("'", options.control_listen->ToString(),
                                               "' is leader.listen as well, want another port"));
  }
  if (options.run_dir.size() > RunDir::kMaxPathBytes) {
    file.Refuse("run_dir", absl::StrCat("has ", options.run_dir.size(), " bytes, want at most ",
                                        RunDir::kMaxPathBytes, " for a path of sockets"));
  }
  CheckTls(options, file);
}

}  // namespace

absl::StatusOr<DaemonOptions> ParseOptions(std::string_view yaml,
                                           const std::string& file,
                                           const std::string& default_run_dir) {
  DaemonOptions options;
  options.run_dir = default_run_dir;
  YamlFile read(file);
  read.Read(yaml, [&](const YAML::Node& root) {
    read.Walk(root, "", ReadersInto(options), "this file");
  });
  if (read.reasons().empty()) CheckWhole(options, read);
  WB_RETURN_IF_ERROR(read.status());
  return options;
}

absl::StatusOr<DaemonOptions> LoadOptions(const std::string& file,
                                          const std::string& default_run_dir) {
  const absl::StatusOr<SmallFile> read = ReadSmallFile(file, kMaxFileBytes);
  if (!read.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": ", read.status().message()));
  }
  return ParseOptions(read->text, file, default_run_dir);
}

}  // namespace wb
