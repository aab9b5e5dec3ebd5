#include "planner/explain/busy_nics.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "planner/explain/part_pools.h"
#include "planner/model/plan_moves.h"

namespace wb {
namespace {

constexpr std::size_t kCauses = 8;

std::vector<BusyNic> Fullest(std::span<const NicLoad> loads, std::size_t count) {
  std::vector<BusyNic> nics;
  for (std::uint32_t w = 0; w < loads.size(); ++w) {
    for (const Direction direction : {Direction::kOut, Direction::kIn}) {
      const std::uint64_t bytes = BytesOf(loads[w], direction);
      if (bytes > 0) nics.push_back({{WorkerIndex(w), direction}, bytes, 0, 0, {}, 0, 0});
    }
  }
  std::stable_sort(nics.begin(), nics.end(),
                   [](const BusyNic& a, const BusyNic& b) { return a.bytes > b.bytes; });
  if (nics.size() > count) nics.resize(count);
  return nics;
}

// Collects what passes some NICs. Used once by BusiestNics.
class Causes {
 public:
  Causes(const Job& job, const Plan& plan, std::vector<BusyNic> nics)
      : job_(job),
        plan_(plan),
        nodes_(NodeNumbers(job)),
        nics_(std::move(nics)),
        seen_(nics_.size()) {
    for (std::size_t n = 0; n < nics_.size(); ++n) numbers_[nics_[n].nic] = n;
  }

  std::vector<BusyNic> Find() && {
    for (const PlanGroup& group : plan_.groups) AddGroup(group);
    for (std::size_t n = 0; n < nics_.size(); ++n) Fill(seen_[n], nics_[n]);
    return std::move(nics_);
  }

 private:
  struct Seen {
    absl::flat_hash_map<std::pair<TensorId, std::size_t>, std::uint64_t> bytes;  // by holders
    std::set<WorkerIndex> peers;
    std::set<const PlanGroup*> groups;
  };

  void AddGroup(const PlanGroup& group) {
    const PartPools pools(plan_, group);
    ForEachPart(plan_, group, [&](const SlicePart& part) {
      const auto out = numbers_.find({part.src, Direction::kOut});
      const auto in = numbers_.find({part.dst, Direction::kIn});
      if (out == numbers_.end() && in == numbers_.end()) return;
      if (nodes_[part.src.value()] == nodes_[part.dst.value()]) return;
      const Pool& pool = plan_.pools[pools.PoolOf(part)];
      if (out != numbers_.end()) Add(group, part, part.dst, pool, seen_[out->second]);
      if (in != numbers_.end()) Add(group, part, part.src, pool, seen_[in->second]);
    });
  }

  static void Add(const PlanGroup& group,
                  const SlicePart& part,
                  WorkerIndex peer,
                  const Pool& pool,
                  Seen& seen) {
    seen.bytes[{part.slice->tensor, pool.members.size()}] += part.bytes();
    seen.peers.insert(peer);
    seen.groups.insert(&group);
  }

  void Fill(const Seen& seen, BusyNic& nic) const {
    nic.peers = seen.peers.size();
    nic.groups = seen.groups.size();
    std::map<std::pair<std::string, std::size_t>, std::uint64_t> families;
    for (const auto& [key, bytes] : seen.bytes) {
      families[{TensorFamily(job_.tensor(key.first).name), key.second}] += bytes;
    }
    for (const auto& [key, bytes] : families) nic.causes.push_back({key.first, key.second, bytes});
    std::stable_sort(nic.causes.begin(), nic.causes.end(),
                     [](const Cause& a, const Cause& b) { return a.bytes > b.bytes; });
    for (; nic.causes.size() > kCauses; nic.causes.pop_back()) {
      ++nic.other_causes;
      nic.other_bytes += nic.causes.back().bytes;
    }
  }

  const Job& job_;
  const Plan& plan_;
  std::vector<std::uint32_t> nodes_;  // per worker
  std::vector<BusyNic> nics_;
  std::vector<Seen> seen_;  // per NIC
  std::map<NicWay, std::size_t> numbers_;
};

}  // namespace

std::string TensorFamily(const std::string& name) {
  constexpr const char* kProjection = "_proj";
  std::vector<std::string> parts = absl::StrSplit(name, '.');
  for (std::string& part : parts) {
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    if (number) part = "*";
    if (part.ends_with(kProjection)) part = absl::StrCat("*", kProjection);
  }
  return absl::StrJoin(parts, ".");
}

std::vector<BusyNic> BusiestNics(const Job& job,
                                 const Plan& plan,
                                 std::span<const NicLoad> loads,
                                 std::size_t count) {
  return Causes(job, plan, Fullest(loads, count)).Find();
}

}  // namespace wb
