#include "client/wbctl/rehearse/result.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "client/wbctl/json_text.h"

namespace wb {
namespace {

using Json = nlohmann::ordered_json;

Json VersionJson(const VersionResult& version) {
  Json daemons = Json::array();
  for (const Footprint& daemon : version.daemons) {
    daemons.push_back({{"rss_anon_bytes", daemon.rss_anon_bytes},
                       {"descriptors", daemon.descriptors},
                       {"mappings", daemon.mappings}});
  }
  return {{"version", version.version},
          {"bytes_planned", version.bytes_planned},
          {"bytes_moved", version.bytes_moved()},
          {"bytes_by_path", version.bytes_by_path},
          {"average_stall_ms", version.average_stall_ms},
          {"end_to_end_ms", version.end_to_end_ms},
          {"gb_per_s", version.gb_per_s()},
          {"bound_bytes", version.bound_bytes},
          {"verified_bytes", version.verified_bytes},
          {"verified_hole_bytes", version.verified_hole_bytes},
          {"verified_source_bytes", version.verified_source_bytes},
          {"daemons", std::move(daemons)}};
}

Json MismatchJson(const WorkerMismatches& worker, const Mismatch& mismatch) {
  return {{"version", worker.version},
          {"worker", worker.worker},
          {"param", mismatch.param},
          {"tensor", mismatch.tensor},
          {"index", std::vector<std::int64_t>(mismatch.index.begin(), mismatch.index.end())},
          {"got", mismatch.got},
          {"wanted", mismatch.wanted}};
}

std::string Paths(const std::map<std::string, std::uint64_t>& bytes_by_path) {
  return absl::StrJoin(bytes_by_path, ", ", [](std::string* out, const auto& path) {
    absl::StrAppend(out, path.first, " ", path.second);
  });
}

}  // namespace

std::uint64_t VersionResult::bytes_moved() const {
  std::uint64_t bytes = 0;
  for (const auto& [path, moved] : bytes_by_path) bytes += moved;
  return bytes;
}

double VersionResult::gb_per_s() const {
  if (end_to_end_ms <= 0) return 0;
  return static_cast<double>(bytes_moved()) / 1e6 / end_to_end_ms;
}

std::string ToJson(const RehearsalResult& result) {
  Json versions = Json::array();
  for (const VersionResult& version : result.versions) versions.push_back(VersionJson(version));
  Json mismatches = Json::array();
  for (const WorkerMismatches& worker : result.mismatches) {
    for (const Mismatch& mismatch : worker.first) {
      mismatches.push_back(MismatchJson(worker, mismatch));
    }
  }
  const Json json{{"versions", std::move(versions)},
                  {"source", result.source},
                  {"processes", {{"daemons", result.daemon_pids}, {"workers", result.worker_pids}}},
                  {"mismatches", std::move(mismatches)},
                  {"export_differences", result.export_differences}};
  return JsonText(json, 2) + "\n";
}

std::string ToTable(const RehearsalResult& result) {
  std::string table = absl::StrFormat("%-8s %14s %14s %10s %10s %8s %14s %14s  %s\n", "version",
                                      "bytes planned", "bytes moved", "stall ms", "total ms",
                                      "GB/s", "bound bytes", "verified bytes", "by path");
  for (const VersionResult& version : result.versions) {
    absl::StrAppendFormat(&table, "%-8d %14d %14d %10.2f %10.2f %8.3f %14d %14d  %s\n",
                          version.version, version.bytes_planned, version.bytes_moved(),
                          version.average_stall_ms, version.end_to_end_ms, version.gb_per_s(),
                          version.bound_bytes, version.verified_bytes,
                          Paths(version.bytes_by_path));
  }
  absl::StrAppendFormat(&table, "%d daemons, %d workers: ", result.daemon_pids.size(),
                        result.worker_pids.size());
  absl::StrAppend(&table, result.differs() ? "BYTES DIFFER" : "every byte verified",
                  result.exported ? "; exported\n" : "\n");
  return table;
}

std::string DescribeDifferences(const RehearsalResult& result) {
  std::string text;
  for (const WorkerMismatches& worker : result.mismatches) {
    absl::StrAppend(&text, "version ", worker.version, ", worker ", worker.worker, ": ",
                    worker.count, " elements or bytes differ; the first:\n");
    for (const Mismatch& mismatch : worker.first) {
      const std::string where =
          mismatch.tensor.empty()
              ? absl::StrCat("buffer ", mismatch.param, ", outside all pieces, byte ")
              : absl::StrCat("param ", mismatch.param, ", tensor ", mismatch.tensor, ", index ");
      absl::StrAppend(&text, "  ", where, "[", absl::StrJoin(mismatch.index, ","), "]: got ",
                      mismatch.got, ", wanted ", mismatch.wanted, "\n");
    }
  }
  for (const std::string& difference : result.export_differences) {
    absl::StrAppend(&text, "export: ", difference, "\n");
  }
  return text;
}

}  // namespace wb
