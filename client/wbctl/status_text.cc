#include "client/wbctl/status_text.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace wb {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

Json StatusJson(const v1::Status& status) {
  Json details = Json::array();
  for (const std::string& detail : status.details()) details.push_back(detail);
  return {{"code", status.code()}, {"message", status.message()}, {"details", std::move(details)}};
}

Json DeliveryJson(const v1::DeliveryStatus& delivery) {
  Json by_path = Json::object();
  for (const char* path : {"tcp", "shm", "local"}) {
    const auto found = delivery.bytes_by_path().find(path);
    by_path[path] = found == delivery.bytes_by_path().end() ? 0 : found->second;
  }
  return {{"group", delivery.group()},
          {"state", delivery.state()},
          {"status", StatusJson(delivery.status())},
          {"attempt", delivery.attempt()},
          {"bytes_planned", delivery.bytes_planned()},
          {"bytes_by_path", std::move(by_path)},
          {"seconds", delivery.seconds()},
          {"sources", delivery.sources()}};
}

/// Columns as wide as their widest cell, two spaces between them, none after the last.
std::string Table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string VersionText(std::uint64_t version) {
  return version == 0 ? "none" : absl::StrCat(version);
}

/// "" for OK, else "ABORTED: the first line of the message".
std::string Why(const v1::Status& status) {
  if (status.code() == 0) return "";
  const std::string& message = status.message();
  return absl::StrCat(absl::StatusCodeToString(static_cast<absl::StatusCode>(status.code())), ": ",
                      message.substr(0, message.find('\n')));
}

}  // namespace

Json ToJson(const v1::StatusReply& reply) {
  Json waits = Json::array();
  for (const std::string& wait : reply.waits()) waits.push_back(wait);
  Json lanes = Json::array();
  for (const v1::LaneStatus& lane : reply.lanes()) {
    lanes.push_back({{"peer", lane.peer()},
                     {"fabric", lane.fabric()},
                     {"sent_bytes", lane.sent_bytes()},
                     {"received_bytes", lane.received_bytes()},
                     {"connects", lane.connects()}});
  }
  return {{"node", reply.node()},
          {"state", reply.state()},
          {"incarnation", reply.incarnation()},
          {"software", reply.software()},
          {"uptime_seconds", reply.uptime_seconds()},
          {"leader_address", reply.leader_address()},
          {"leader_connected", reply.leader_connected()},
          {"is_leader", reply.is_leader()},
          {"term", reply.term()},
          {"sessions", reply.sessions()},
          {"region_bytes", reply.region_bytes()},
          {"regions", reply.regions()},
          {"leader_sent_bytes", reply.leader_sent_bytes()},
          {"leader_received_bytes", reply.leader_received_bytes()},
          {"leader_sent_messages", reply.leader_sent_messages()},
          {"leader_received_messages", reply.leader_received_messages()},
          {"data_address", reply.data_address()},
          {"waits", std::move(waits)},
          {"lanes", std::move(lanes)}};
}

Json ToJson(const v1::WorkersReply& reply) {
  Json workers = Json::array();
  for (const v1::WorkerStatus& worker : reply.workers()) {
    workers.push_back({{"job", worker.job()},
                       {"group", worker.group()},
                       {"rank", worker.rank()},
                       {"role", worker.role()},
                       {"node", worker.node()},
                       {"session", worker.session()},
                       {"incarnation", worker.incarnation()},
                       {"held_version", worker.held_version()},
                       {"memory", worker.memory()},
                       {"bytes", worker.bytes()}});
  }
  return {{"workers", std::move(workers)}};
}

Json ToJson(const v1::VersionsReply& reply) {
  Json versions = Json::array();
  for (const v1::VersionStatus& version : reply.versions()) {
    Json deliveries = Json::array();
    for (const v1::DeliveryStatus& delivery : version.deliveries()) {
      deliveries.push_back(DeliveryJson(delivery));
    }
    versions.push_back({{"job", version.job()},
                        {"version", version.version()},
                        {"state", version.state()},
                        {"label", version.label()},
                        {"status", StatusJson(version.status())},
                        {"average_stall_ms", version.average_stall_ms()},
                        {"end_to_end_ms", version.end_to_end_ms()},
                        {"bound_bytes", version.bound_bytes()},
                        {"deliveries", std::move(deliveries)}});
  }
  return {{"versions", std::move(versions)}};
}

Json ToJson(const v1::RefusalsReply& reply) {
  Json refusals = Json::array();
  for (const v1::RefusalStatus& refusal : reply.refusals()) {
    refusals.push_back({{"job", refusal.job()},
                        {"group", refusal.group()},
                        {"kind", refusal.kind()},
                        {"tensor", refusal.tensor()},
                        {"worker", refusal.worker()},
                        {"text", refusal.text()}});
  }
  return {{"refusals", std::move(refusals)}, {"total", reply.total()}};
}

std::string ToTable(const v1::StatusReply& reply) {
  const std::string leader =
      absl::StrCat(reply.leader_address(), reply.is_leader() ? " (this daemon)" : "",
                   reply.leader_connected() ? absl::StrCat(", term ", reply.term())
                                            : std::string(", not connected"));
  std::string text = Table({{"node", reply.node()},
                            {"state", reply.state()},
                            {"software", reply.software()},
                            {"up", absl::StrFormat("%.1f s", reply.uptime_seconds())},
                            {"leader", leader},
                            {"data", reply.data_address()},
                            {"sessions", absl::StrCat(reply.sessions())},
                            {"memory", absl::StrCat(reply.region_bytes(), " bytes opened")}});
  if (reply.lanes_size() > 0) {
    std::vector<Row> rows{{"PEER", "FABRIC", "SENT BYTES", "RECEIVED BYTES"}};
    for (const v1::LaneStatus& lane : reply.lanes()) {
      rows.push_back({lane.peer(), lane.fabric(), absl::StrCat(lane.sent_bytes()),
                      absl::StrCat(lane.received_bytes())});
    }
    text += "\n" + Table(rows);
  }
  if (reply.waits_size() > 0) text += "\nwaits\n";
  for (const std::string& wait : reply.waits()) text += "  " + wait + "\n";
  return text;
}

std::string ToTable(const v1::WorkersReply& reply) {
  std::vector<Row> rows{{"JOB", "WORKER", "ROLE", "NODE", "HOLDS", "MEMORY", "BYTES", "SESSION"}};
  for (const v1::WorkerStatus& worker : reply.workers()) {
    rows.push_back({worker.job(), absl::StrCat(worker.group(), "/", worker.rank()), worker.role(),
                    worker.node(), VersionText(worker.held_version()), worker.memory(),
                    absl::StrCat(worker.bytes()), worker.session()});
  }
  return Table(rows);
}

std::string ToTable(const v1::VersionsReply& reply) {
  std::vector<Row> rows{
      {"JOB", "VERSION", "GROUP", "STATE", "BYTES", "STALL MS", "END TO END MS", "LABEL", "WHY"}};
  for (const v1::VersionStatus& version : reply.versions()) {
    rows.push_back({version.job(), absl::StrCat(version.version()), "", version.state(), "",
                    absl::StrFormat("%.1f", version.average_stall_ms()),
                    absl::StrFormat("%.1f", version.end_to_end_ms()), version.label(),
                    Why(version.status())});
    for (const v1::DeliveryStatus& delivery : version.deliveries()) {
      rows.push_back({"", "", delivery.group(), delivery.state(),
                      absl::StrCat(delivery.bytes_planned()), "", "", "", Why(delivery.status())});
    }
  }
  return Table(rows);
}

std::string ToTable(const v1::RefusalsReply& reply) {
  std::vector<Row> rows{{"JOB", "GROUP", "KIND", "TEXT"}};
  for (const v1::RefusalStatus& refusal : reply.refusals()) {
    rows.push_back({refusal.job(), refusal.group().empty() ? "all" : refusal.group(),
                    refusal.kind(), refusal.text()});
  }
  const auto told = static_cast<std::uint64_t>(reply.refusals_size());
  return Table(rows) + (told < reply.total() ? absl::StrCat("and ", reply.total() - told, " more\n")
                                             : std::string());
}

}  // namespace wb
