#include "planner/solve/route.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"

#include "planner/solve/balance.h"
#include "planner/solve/bound.h"
#include "planner/solve/fan_out.h"
#include "planner/solve/water_filling.h"

namespace wb {
namespace {

// With more slices than this on the way, no single one keeps the load from being even.
constexpr std::size_t kMaxBalancedParts = 1'000'000;

using Bytes = std::vector<std::uint64_t>;

// What one sender is to send of a pool's row to a group.
struct Due {
  std::uint32_t member = 0;  // index into the pool's senders
  std::int64_t bytes = 0;    // none, or less, if it has sent more than its share already
};

// What a member of a pool sends of a row in one go.
struct Dealt {
  std::uint32_t member = 0;
  std::uint64_t bytes = 0;
};

// Deals the slices of one row: most due first, each takes slices until the next would be more above
// its due than below it.
class Dealer {
 public:
  explicit Dealer(std::vector<Due> due) : due_(std::move(due)) {
    std::stable_sort(due_.begin(), due_.end(),
                     [](const Due& a, const Due& b) { return a.bytes > b.bytes; });
  }

  void Take(std::uint64_t bytes) {
    const bool full = taken_ > 0 && static_cast<std::int64_t>(taken_ + bytes / 2) > Now().bytes;
    if (full && at_ + 1 < due_.size()) {
      ++at_;
      taken_ = 0;
    }
    if (taken_ == 0) dealt_.push_back({Now().member, 0});
    taken_ += bytes;
    dealt_.back().bytes += bytes;
  }
  std::vector<Dealt> Finish() && { return std::move(dealt_); }

 private:
  const Due& Now() const { return due_[at_]; }

  std::vector<Due> due_;
  std::vector<Dealt> dealt_;
  std::size_t at_ = 0;
  std::uint64_t taken_ = 0;  // by the one whose turn it is
};

// Used once by Route.
class Router {
 public:
  Router(const Job& job,
         const std::vector<WorkerIndex>& senders,
         const std::vector<bool>& kept,
         const PoolRows& rows,
         Plan& plan)
      : job_(job), senders_(senders), kept_(kept), rows_(rows), plan_(plan) {
    for (std::uint32_t s = 0; s < senders.size(); ++s) number_[senders[s]] = s;
    for (const Pool& pool : plan.pools) {
      Holders& members = members_.emplace_back();
      for (const WorkerIndex member : pool.members) members.push_back(number_[member]);
      std::sort(members.begin(), members.end());
    }
  }

  void Run() && {
    ChooseWhatIsRelayed();
    const std::uint64_t most = Deal(false);
    Deal(true);
    for (PlanGroup& group : plan_.groups) {
      std::stable_sort(group.quotas.begin(), group.quotas.end(),
                       [](const Quota& a, const Quota& b) { return a.pool < b.pool; });
    }
    Balance(std::max(most, plan_.bound_bytes()));
  }

 private:
  // What of a row is relayed to the group.
  std::span<const RelayedBytes> Relayed(std::uint32_t pool, std::uint32_t group) const {
    const auto found = relays_.find({pool, group});
    return found == relays_.end() ? std::span<const RelayedBytes>() : std::span(found->second);
  }

  // What trainers send of a row.
  std::uint64_t DirectBytes(std::uint32_t pool, const PoolRows::Row& row) const {
    std::uint64_t bytes = row.bytes;
    for (const RelayedBytes& part : Relayed(pool, row.group)) bytes -= part.end - part.begin;
    return bytes;
  }

  // What trainers send of the pool's rows that are to be routed.
  std::uint64_t BytesToRoute(std::uint32_t pool) const {
    std::uint64_t bytes = 0;
    for (const PoolRows::Row& row : rows_.rows(pool)) {
      if (!kept_[row.group]) bytes += DirectBytes(pool, row);
    }
    return bytes;
  }

  void ChooseWhatIsRelayed() {
    if (!plan_.fan_out && !plan_.node_sharing) return;
    const Bytes load = Load(false);
    // What little could be gained is not worth that one node waits for another.
    const bool between = plan_.fan_out && !NearLimit(plan_.bounds.direct, plan_.bound_bytes());
    relays_ =
        ChooseRelays(job_, kept_, rows_, {members_, load, plan_.bound_bytes(), between}, plan_);
  }

  // Within 1 %.
  static bool NearLimit(std::uint64_t bytes, std::uint64_t limit) {
    return bytes - std::min(bytes, limit) <= limit / 100;
  }

  // What the quotas so far make each sender carry, within nodes or between them.
  Bytes Load(bool local) const {
    Bytes load(senders_.size(), 0);
    for (const PlanGroup& group : plan_.groups) AddLoad(group, local, load);
    return load;
  }

  void AddLoad(const PlanGroup& group, bool local, Bytes& load) const {
    for (const Quota& quota : group.quotas) {
      if (quota.relay.has_value() || plan_.pools[quota.pool].local != local) continue;
      load[number_.find(quota.src)->second] += quota.bytes;
    }
  }

  // Deals what is to be routed of the pools of one kind, on top of what is kept; returns what the
  // most loaded sender would carry at best.
  std::uint64_t Deal(bool local) {
    std::vector<EgressClass> classes;
    std::vector<std::uint32_t> pools;
    for (std::uint32_t pool = 0; pool < members_.size(); ++pool) {
      if (plan_.pools[pool].local != local || plan_.pools[pool].mate.has_value()) continue;
      const std::uint64_t bytes = BytesToRoute(pool);
      if (bytes == 0) {
        DealRelayed(pool);
        continue;
      }
      classes.push_back({members_[pool], bytes});
      pools.push_back(pool);
    }
    Bytes load = Load(local);
    for (std::uint32_t s = 0; s < load.size(); ++s) {
      if (load[s] > 0) classes.push_back({{s}, load[s]});
    }
    const EgressOptimum optimum = MinimizeEgress(classes, senders_.size());
    for (std::size_t i = 0; i < pools.size(); ++i) {
      DealPool(pools[i],
               optimum.laminar ? Poured(pools[i], classes[i].bytes, load) : optimum.shares[i],
               load);
    }
    return optimum.max_bytes;
  }

  // What the optimum does, but on top of what smaller pools came to in whole slices: pools of many
  // members and small slices even that out.
  Bytes Poured(std::uint32_t pool, std::uint64_t bytes, const Bytes& load) const {
    Bytes levels;
    for (const std::uint32_t member : members_[pool]) levels.push_back(load[member]);
    return Pour(levels, bytes);
  }

  void DealPool(std::uint32_t pool, const Bytes& shares, Bytes& load) {
    const std::uint64_t whole = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
    Bytes sent(shares.size(), 0);
    std::uint64_t part = 0;
    for (const PoolRows::Row& row : rows_.rows(pool)) {
      if (kept_[row.group]) continue;
      const std::uint64_t direct = DirectBytes(pool, row);
      part += direct;
      std::vector<Dealt> dealt;
      if (direct > 0) dealt = DealRow(pool, row, DueOf(shares, sent, part, whole));
      for (const Dealt& of_member : dealt) {
        sent[of_member.member] += of_member.bytes;
        load[members_[pool][of_member.member]] += of_member.bytes;
      }
      AddQuotas(pool, row, std::move(dealt));
    }
  }

  // The rows of a pool of which trainers send nothing.
  void DealRelayed(std::uint32_t pool) {
    for (const PoolRows::Row& row : rows_.rows(pool)) {
      if (!kept_[row.group]) AddQuotas(pool, row, {});
    }
  }

  // Of its share, what a member is to have sent after `part` bytes of `whole`, less what it has.
  static std::vector<Due> DueOf(const Bytes& shares,
                                const Bytes& sent,
                                std::uint64_t part,
                                std::uint64_t whole) {
    std::vector<Due> due;
    for (std::uint32_t i = 0; i < sent.size(); ++i) {
      const absl::uint128 now =
          whole == 0 ? absl::uint128(0) : absl::uint128(shares[i]) * part / whole;
      due.push_back({i, static_cast<std::int64_t>(absl::Uint128Low64(now)) -
                            static_cast<std::int64_t>(sent[i])});
    }
    return due;
  }

  std::vector<Dealt> DealRow(std::uint32_t pool,
                             const PoolRows::Row& row,
                             std::vector<Due> due) const {
    if (due.size() == 1) return {{0, DirectBytes(pool, row)}};
    Dealer dealer(std::move(due));
    std::span<const RelayedBytes> relayed = Relayed(pool, row.group);
    std::uint64_t at = 0;
    rows_.ForEachSlice(pool, row.group, [&](const Slice& slice) {
      while (!relayed.empty() && relayed.front().end <= at) relayed = relayed.subspan(1);
      if (relayed.empty() || at < relayed.front().begin) dealer.Take(slice.bytes);
      at += slice.bytes;
    });
    return std::move(dealer).Finish();
  }

  // What members send, between what is relayed.
  void AddQuotas(std::uint32_t pool, const PoolRows::Row& row, std::vector<Dealt> dealt) {
    std::span<Dealt> left(dealt);
    std::uint64_t at = 0;
    for (const RelayedBytes& part : Relayed(pool, row.group)) {
      AddDirect(pool, row.group, part.begin - at, left);
      AddQuota(row.group, {pool, WorkerIndex(0), part.end - part.begin, part.from});
      at = part.end;
    }
    AddDirect(pool, row.group, row.bytes - at, left);
  }

  // The next so many bytes of what is dealt.
  void AddDirect(std::uint32_t pool,
                 std::uint32_t group,
                 std::uint64_t bytes,
                 std::span<Dealt>& dealt) {
    while (bytes > 0) {
      Dealt& next = dealt.front();
      const std::uint64_t now = std::min(bytes, next.bytes);
      AddQuota(group, {pool, senders_[members_[pool][next.member]], now, {}});
      bytes -= now;
      next.bytes -= now;
      if (next.bytes == 0) dealt = dealt.subspan(1);
    }
  }

  // One of the same source as the last becomes one with it.
  void AddQuota(std::uint32_t group, const Quota& quota) {
    std::vector<Quota>& quotas = plan_.groups[group].quotas;
    if (!quotas.empty() && quotas.back().pool == quota.pool && quotas.back().src == quota.src &&
        quotas.back().relay == quota.relay) {
      quotas.back().bytes += quota.bytes;
    } else {
      quotas.push_back(quota);
    }
  }

  // Whether a slice of the pool could as well be sent by another.
  bool IsOpen(std::uint32_t pool) const {
    return !plan_.pools[pool].local && members_[pool].size() > 1;
  }

  void Balance(std::uint64_t target) {
    Bytes load = Load(false);
    if (load.empty() || NearTarget(*std::max_element(load.begin(), load.end()), target)) return;
    std::vector<SentPart> parts = OpenParts();
    if (parts.size() > kMaxBalancedParts) return;
    for (const SentPart& part : parts) load[part.sender] -= part.bytes();
    parts = Balancer(members_, std::move(load), std::move(parts)).Run(target);
    std::sort(parts.begin(), parts.end(), [](const SentPart& a, const SentPart& b) {
      return std::pair(a.item, a.lo) < std::pair(b.item, b.lo);
    });
    Replace(parts);
  }

  // The parts that may go elsewhere: of open pools, pool by pool, to groups that are not kept.
  // Items count up. No more than one above the most that are balanced.
  std::vector<SentPart> OpenParts() const {
    std::vector<std::size_t> next(plan_.groups.size(), 0);  // per group: quotas behind us
    std::vector<SentPart> parts;
    for (std::uint32_t pool = 0; pool < members_.size(); ++pool) {
      for (const PoolRows::Row& row : rows_.rows(pool)) {
        if (!kept_[row.group]) AddRow(pool, row.group, next[row.group], parts);
      }
    }
    return parts;
  }

  // Goes on from quota `at` of the group to the first one behind the row's.
  void AddRow(std::uint32_t pool,
              std::uint32_t group,
              std::size_t& at,
              std::vector<SentPart>& parts) const {
    const std::vector<Quota>& quotas = plan_.groups[group].quotas;
    const bool has_quotas = at < quotas.size() && quotas[at].pool == pool;  // a mate's has none
    if (has_quotas && IsOpen(pool) && parts.size() <= kMaxBalancedParts) {
      AddParts(group, std::span(quotas).subspan(at), parts);
    }
    at = EndOfRow(quotas, at, pool);
  }

  // `quotas` start with those of the row; none of them ends inside a slice yet.
  void AddParts(std::uint32_t group,
                std::span<const Quota> quotas,
                std::vector<SentPart>& parts) const {
    const std::uint32_t pool = quotas.front().pool;
    std::size_t at = 0;
    std::uint64_t left = quotas.front().bytes;
    rows_.ForEachSlice(pool, group, [&](const Slice& slice) {
      if (left == 0) left = quotas[++at].bytes;
      left -= slice.bytes;
      if (quotas[at].relay.has_value()) return;
      parts.push_back({static_cast<std::uint32_t>(parts.size()), pool,
                       number_.find(quotas[at].src)->second, slice.box.lo()[0], slice.box.hi()[0],
                       slice.row_bytes()});
    });
  }

  // Makes quotas of balanced parts, which stand in the order of OpenParts.
  void Replace(std::span<const SentPart> parts) {
    std::vector<std::vector<Quota>> dealt(plan_.groups.size());
    for (std::size_t g = 0; g < dealt.size(); ++g) {
      if (!kept_[g]) dealt[g] = std::exchange(plan_.groups[g].quotas, {});
    }
    std::vector<std::size_t> next(dealt.size(), 0);
    for (std::uint32_t pool = 0; pool < members_.size(); ++pool) {
      for (const PoolRows::Row& row : rows_.rows(pool)) {
        std::size_t& at = next[row.group];
        const std::size_t end = EndOfRow(dealt[row.group], at, pool);
        ReplaceRow(row.group, std::span(dealt[row.group]).subspan(at, end - at), parts);
        at = end;
      }
    }
  }

  // From `at` on, the first quota of another pool.
  static std::size_t EndOfRow(std::span<const Quota> quotas, std::size_t at, std::uint32_t pool) {
    while (at < quotas.size() && quotas[at].pool == pool) ++at;
    return at;
  }

  void ReplaceRow(std::uint32_t group,
                  std::span<const Quota> quotas,
                  std::span<const SentPart>& parts) {
    for (const Quota& quota : quotas) ReplaceQuota(group, quota, parts);
  }

  void ReplaceQuota(std::uint32_t group, const Quota& quota, std::span<const SentPart>& parts) {
    if (!IsOpen(quota.pool) || quota.relay.has_value()) {
      AddQuota(group, quota);
      return;
    }
    for (std::uint64_t left = quota.bytes; left > 0;) {
      const std::uint64_t bytes = parts.front().bytes();
      AddQuota(group, {quota.pool, senders_[parts.front().sender], bytes, {}});
      left -= bytes;
      parts = parts.subspan(1);
    }
  }

  const Job& job_;
  const std::vector<WorkerIndex>& senders_;
  const std::vector<bool>& kept_;
  const PoolRows& rows_;
  Plan& plan_;
  absl::flat_hash_map<WorkerIndex, std::uint32_t> number_;  // place among the senders
  std::vector<Holders> members_;                            // per pool
  Relays relays_;
};

}  // namespace

void Route(const Job& job,
           const std::vector<WorkerIndex>& senders,
           const std::vector<bool>& kept,
           const PoolRows& rows,
           Plan& plan) {
  Router(job, senders, kept, rows, plan).Run();
}

}  // namespace wb
