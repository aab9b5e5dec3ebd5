#include "client/wbctl/plan/explanation_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "client/wbctl/plan/readable.h"

namespace wb {
namespace {

constexpr std::size_t kMaxCauses = 3;

// Used once by WriteExplanation.
class Lines {
 public:
  Lines(const ExplainedPlan& explained, std::ostream& out)
      : job_(explained.job), plan_(explained.plan), e_(explained.explanation), out_(out) {}

  void WriteBounds() {
    if (plan_.bound_bytes() == 0) {
      Line("bound", "0 B: nothing has to cross between nodes");
      return;
    }
    const BoundRatio& in_force = e_.bounds.front();
    Line("bound",
         absl::StrFormat("%s (%s), fullest NIC at %.3f of it", ReadableBytes(in_force.bytes),
                         in_force.name, in_force.max_over_bound));
    std::vector<std::string> others;
    for (std::size_t i = 1; i < e_.bounds.size(); ++i) {
      others.push_back(
          absl::StrCat(ReadableBytes(e_.bounds[i].bytes), " (", e_.bounds[i].name, ")"));
    }
    Line("", absl::StrJoin(others, ", "));
    if (e_.binding.has_value()) Line("set by", SetBy(*e_.binding));
  }

  void WriteWireTime(const std::optional<Rates>& rates) {
    if (!e_.wire.has_value()) return;
    const WireTime& wire = *e_.wire;
    Line("wire time", absl::StrFormat("%s, at the bound %s: fullest NIC / %g GB/s of a rail",
                                      ReadableSeconds(wire.seconds()), ReadableSeconds(wire.bound),
                                      rates->rail_gb_per_s));
    if (plan_.intra_node_bytes == 0) return;
    Line("", absl::StrFormat("rails %s; inside nodes %s: fullest GPU / %g GB/s of NVLink",
                             ReadableSeconds(wire.rail), ReadableSeconds(wire.nvlink),
                             rates->nvlink_gb_per_s));
  }

  void WriteNics() {
    Line("NICs out", Range(e_.out));
    Line("NICs in", Range(e_.in));
  }

  void WriteRuns() {
    Line("in one run", absl::StrCat(Percent(e_.survey.source), " of the bytes at their source, ",
                                    Percent(e_.survey.destination), " at their destination"));
  }

  void WriteReplicas() {
    const char* name = "replicas";
    for (const ReplicaUse& use : e_.replicas) {
      Line(name, absl::StrFormat("%s held by %s, sent by %.1f of them, at least %d",
                                 ReadableBytes(use.bytes), Count(use.holders, "trainer"),
                                 use.mean_senders, use.least_senders));
      name = "";
    }
  }

  void WriteBusiest() {
    if (e_.busiest.empty()) return;
    Line("fullest NICs",
         absl::StrCat(Count(e_.full_nics, "NIC"), " at 99% or more of the fullest"));
    std::vector<std::string> told;  // NICs that are as full mostly are so for one reason
    for (const BusyNic& nic : e_.busiest) {
      const bool out = nic.nic.direction == Direction::kOut;
      std::vector<std::string> why = Why(nic);
      out_ << absl::StreamFormat("  %s: %s %s %s of %s%s\n",
                                 job_.layout(nic.nic.worker).name.ToString(),
                                 ReadableBytes(nic.bytes), out ? "out to" : "in from",
                                 Count(nic.peers, out ? "worker" : "trainer"),
                                 Count(nic.groups, "group"), why == told ? ", likewise" : "");
      if (why == told) continue;
      for (const std::string& line : why) out_ << line << '\n';
      told = std::move(why);
    }
  }

 private:
  void Line(const char* name, const std::string& value) { WriteLine(out_, name, value); }

  static std::string CauseLine(std::uint64_t bytes, const std::string& what) {
    return absl::StrFormat("    %10s  %s", ReadableBytes(bytes), what);
  }

  static std::vector<std::string> Why(const BusyNic& nic) {
    const std::size_t shown = std::min(nic.causes.size(), kMaxCauses);
    std::vector<std::string> lines;
    std::uint64_t rest = nic.bytes;
    for (std::size_t i = 0; i < shown; ++i) {
      const Cause& cause = nic.causes[i];
      lines.push_back(CauseLine(
          cause.bytes, absl::StrCat(cause.tensors, ", held by ", Count(cause.holders, "trainer"))));
      rest -= cause.bytes;
    }
    const std::size_t more = nic.causes.size() - shown + nic.other_causes;
    if (more > 0) {
      lines.push_back(CauseLine(rest, absl::StrCat("of ", more, " more kinds of tensors")));
    }
    return lines;
  }

  std::string Names(const std::vector<WorkerIndex>& workers) const {
    std::vector<std::string> names;
    names.reserve(workers.size());
    for (const WorkerIndex worker : workers) names.push_back(job_.layout(worker).name.ToString());
    return FirstOf(names);
  }

  std::string SetBy(const Binding& binding) const {
    switch (binding.kind) {
      case Binding::Kind::kIngress:
        return absl::StrCat("ingress: ", Count(binding.workers.size(), "rollout worker"), " (",
                            Names(binding.workers), ") must get ", ReadableBytes(binding.bytes),
                            binding.workers.size() == 1 ? "" : " each");
      case Binding::Kind::kEgress:
        return absl::StrCat("egress: nobody but ", Count(binding.workers.size(), "trainer"), " (",
                            Names(binding.workers), ") can send ", ReadableBytes(binding.bytes));
      case Binding::Kind::kNothing:
        break;
    }
    return "nothing";
  }

  static std::string Range(const Spread& spread) {
    return absl::StrCat("min ", ReadableBytes(spread.min), ", mean ",
                        ReadableBytes(static_cast<std::uint64_t>(spread.mean)), ", max ",
                        ReadableBytes(spread.max));
  }

  static std::string Percent(const RunShare& share) {
    const auto all = static_cast<double>(share.contiguous_bytes + share.strided_bytes);
    const double part = all == 0 ? 1 : static_cast<double>(share.contiguous_bytes) / all;
    return absl::StrFormat("%.1f%%", 100 * part);
  }

  const Job& job_;
  const Plan& plan_;
  const Explanation& e_;
  std::ostream& out_;
};

}  // namespace

void WriteExplanation(const ExplainedPlan& explained, std::ostream& out) {
  Lines lines(explained, out);
  lines.WriteBounds();
  lines.WriteWireTime(explained.rates);
  lines.WriteNics();
  lines.WriteReplicas();
  lines.WriteRuns();
  lines.WriteBusiest();
}

}  // namespace wb
