#include "client/wbctl/plan/diff_output.h"

#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "client/wbctl/json_text.h"
#include "client/wbctl/plan/readable.h"
#include "planner/explain/nic_loads.h"
#include "planner/explain/wire_time.h"

namespace wb {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

// `loads` are the plan's.
std::optional<double> WireSeconds(const PlannedJob& planned, const std::vector<NicLoad>& loads) {
  if (!planned.rates.has_value()) return std::nullopt;
  return PredictWireTime(planned.plan, loads, *planned.rates).seconds();
}

// "1 added (engine8)".
std::string Changes(const Names& names, const char* what) {
  std::string count = absl::StrCat(names.size(), " ", what);
  return names.empty() ? count : absl::StrCat(count, " (", FirstOf(names), ")");
}

void WriteTable(const PlannedJob& before,
                const PlannedJob& after,
                const PlanDiff& diff,
                std::ostream& out) {
  const auto line = [&](const char* name, const std::string& value) {
    WriteLine(out, name, value);
  };
  const auto sizes = [](std::uint64_t was, std::uint64_t is) {
    return absl::StrCat(ReadableBytes(was), " -> ", ReadableBytes(is));
  };
  line("job", absl::StrCat(before.loaded.job.name, " -> ", after.loaded.job.name));
  line("groups", absl::StrCat(Changes(diff.groups_added, "added"), ", ",
                              Changes(diff.groups_removed, "removed"), ", ",
                              Changes(diff.groups_changed, "changed"), ", ",
                              diff.groups_unchanged.size(), " unchanged"));
  line("workers", absl::StrCat(Changes(diff.workers_added, "added"), ", ",
                               Changes(diff.workers_removed, "removed")));
  line("tensors", absl::StrCat(Changes(diff.tensors_added, "added"), ", ",
                               Changes(diff.tensors_removed, "removed"), ", ",
                               Changes(diff.tensors_changed, "changed")));
  line("bytes", sizes(before.plan.bytes, after.plan.bytes));
  line("bound", sizes(before.plan.bound_bytes(), after.plan.bound_bytes()));
  line("fullest NIC", sizes(before.plan.max_nic_bytes(), after.plan.max_nic_bytes()));
  const std::optional<double> was = WireSeconds(before, diff.loads_before);
  const std::optional<double> is = WireSeconds(after, diff.loads_after);
  if (was.has_value() && is.has_value()) {
    line("wire time", absl::StrCat(ReadableSeconds(*was), " -> ", ReadableSeconds(*is)));
  }
  line("NICs", absl::StrCat(diff.nics_changed, " carry more or less one way",
                            diff.nics.empty() ? "" : "; most of all:"));
  for (const NicChange& nic : diff.nics) {
    out << absl::StreamFormat("  %s %s: %s\n", nic.worker.ToString(), NameOf(nic.direction),
                              sizes(nic.before, nic.after));
  }
}

Json Side(const PlannedJob& planned, const std::vector<NicLoad>& loads) {
  const Plan& plan = planned.plan;
  const std::optional<double> seconds = WireSeconds(planned, loads);
  return {{"job", planned.loaded.job.name},
          {"bytes", plan.bytes},
          {"max_egress_bytes", plan.max_egress_bytes},
          {"max_ingress_bytes", plan.max_ingress_bytes},
          {"bound_bytes", plan.bound_bytes()},
          {"intra_node_bytes", plan.intra_node_bytes},
          {"wire_seconds", seconds.has_value() ? Json(*seconds) : Json(nullptr)},
          {"fingerprint", absl::StrCat(absl::Hex(plan.fingerprint.value(), absl::kZeroPad16))}};
}

void WriteJson(const PlannedJob& before,
               const PlannedJob& after,
               const PlanDiff& diff,
               std::ostream& out) {
  Json nics = Json::array();
  for (const NicChange& nic : diff.nics) {
    nics.push_back({{"worker", nic.worker.ToString()},
                    {"direction", NameOf(nic.direction)},
                    {"before", nic.before},
                    {"after", nic.after}});
  }
  const Json json{{"before", Side(before, diff.loads_before)},
                  {"after", Side(after, diff.loads_after)},
                  {"groups",
                   {{"added", diff.groups_added},
                    {"removed", diff.groups_removed},
                    {"changed", diff.groups_changed},
                    {"unchanged", diff.groups_unchanged}}},
                  {"workers", {{"added", diff.workers_added}, {"removed", diff.workers_removed}}},
                  {"tensors",
                   {{"added", diff.tensors_added},
                    {"removed", diff.tensors_removed},
                    {"changed", diff.tensors_changed}}},
                  {"nics_changed", diff.nics_changed},
                  {"nics", std::move(nics)}};
  out << JsonText(Json{{"diff", json}}, 1) << '\n';
}

}  // namespace

void WriteDiff(const PlannedJob& before,
               const PlannedJob& after,
               const PlanDiff& diff,
               OutputFormat format,
               std::ostream& out) {
  if (format == OutputFormat::kJson) {
    WriteJson(before, after, diff, out);
  } else {
    WriteTable(before, after, diff, out);
  }
}

}  // namespace wb
