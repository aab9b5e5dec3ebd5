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
#include "planner/solve/fan_out_bound.h"
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
  Router(const std::vector<WorkerIndex>& senders,
         const std::vector<bool>& kept,
         const PoolRows& rows,
         Plan& plan)
      : senders_(senders), kept_(kept), rows_(rows), plan_(plan) {
    for (std::uint32_t s = 0; s < senders.size(); ++s) number_[senders[s]] = s;
    for (const Pool& pool : plan.pools) {
      Holders& members = members_.emplace_back();
      for (const WorkerIndex member : pool.members) members.push_back(number_[member]);
      std::sort(members.begin(), members.end());
    }
  }

  void Run() && {
    plan_.bounds.direct = std::max(LeastEgress(), MostIngress());
    plan_.bounds.fan_out = FanOutBound(plan_, rows_, senders_.size());
    const std::uint64_t most = Deal(false);
    Deal(true);
    for (PlanGroup& group : plan_.groups) {
      std::stable_sort(group.quotas.begin(), group.quotas.end(),
                       [](const Quota& a, const Quota& b) { return a.pool < b.pool; });
    }
    Balance(std::max(most, plan_.bounds.direct));
  }

 private:
  std::uint64_t BytesOf(std::uint32_t pool, bool with_kept) const {
    std::uint64_t bytes = 0;
    for (const PoolRows::Row& row : rows_.rows(pool)) {
      if (with_kept || !kept_[row.group]) bytes += row.bytes;
    }
    return bytes;
  }

  std::uint64_t LeastEgress() const {
    std::vector<EgressClass> classes;
    for (std::uint32_t pool = 0; pool < members_.size(); ++pool) {
      if (!plan_.pools[pool].local) classes.push_back({members_[pool], BytesOf(pool, true)});
    }
    return MinimizeEgress(classes, senders_.size()).max_bytes;
  }

  std::uint64_t MostIngress() const {
    std::uint64_t most = 0;
    for (const PlanGroup& group : plan_.groups) {
      for (const PlanReceiver& receiver : group.receivers) {
        most = std::max(most, rows_.nic_bytes(receiver.demand));
      }
    }
    return most;
  }

  // What the quotas so far make each sender carry, within nodes or between them.
  Bytes Load(bool local) const {
    Bytes load(senders_.size(), 0);
    for (const PlanGroup& group : plan_.groups) {
      for (const Quota& quota : group.quotas) {
        if (plan_.pools[quota.pool].local == local) {
          load[number_.find(quota.src)->second] += quota.bytes;
        }
      }
    }
    return load;
  }

  // Deals what is to be routed of the pools of one kind, on top of what is kept; returns what the
  // most loaded sender would carry at best.
  std::uint64_t Deal(bool local) {
    std::vector<EgressClass> classes;
    std::vector<std::uint32_t> pools;
    for (std::uint32_t pool = 0; pool < members_.size(); ++pool) {
      const std::uint64_t bytes = plan_.pools[pool].local == local ? BytesOf(pool, false) : 0;
      if (bytes == 0) continue;
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
      part += row.bytes;
      for (const Dealt& dealt : DealRow(pool, row, DueOf(shares, sent, part, whole))) {
        const std::uint32_t sender = members_[pool][dealt.member];
        sent[dealt.member] += dealt.bytes;
        load[sender] += dealt.bytes;
        AddQuota(row.group, pool, sender, dealt.bytes);
      }
    }
  }

  // Of its share, what a member is to have sent after `part` bytes of `whole`, less what it has.
  static std::vector<Due> DueOf(const Bytes& shares,
                                const Bytes& sent,
                                std::uint64_t part,
                                std::uint64_t whole) {
    std::vector<Due> due;
    for (std::uint32_t i = 0; i < sent.size(); ++i) {
      const absl::uint128 now = absl::uint128(shares[i]) * part / whole;
      due.push_back({i, static_cast<std::int64_t>(absl::Uint128Low64(now)) -
                            static_cast<std::int64_t>(sent[i])});
    }
    return due;
  }

  std::vector<Dealt> DealRow(std::uint32_t pool,
                             const PoolRows::Row& row,
                             std::vector<Due> due) const {
    if (due.size() == 1) return {{0, row.bytes}};
    Dealer dealer(std::move(due));
    rows_.ForEachSlice(pool, row.group, [&](const Slice& slice) { dealer.Take(slice.bytes); });
    return std::move(dealer).Finish();
  }

  void AddQuota(std::uint32_t group,
                std::uint32_t pool,
                std::uint32_t sender,
                std::uint64_t bytes) {
    std::vector<Quota>& quotas = plan_.groups[group].quotas;
    const WorkerIndex src = senders_[sender];
    if (!quotas.empty() && quotas.back().pool == pool && quotas.back().src == src) {
      quotas.back().bytes += bytes;
    } else {
      quotas.push_back({pool, src, bytes});
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
        if (kept_[row.group]) continue;
        const std::vector<Quota>& quotas = plan_.groups[row.group].quotas;
        std::size_t& at = next[row.group];
        if (IsOpen(pool) && parts.size() <= kMaxBalancedParts) {
          AddParts(row.group, std::span(quotas).subspan(at), parts);
        }
        while (at < quotas.size() && quotas[at].pool == pool) ++at;
      }
    }
    return parts;
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
      parts.push_back({static_cast<std::uint32_t>(parts.size()), pool,
                       number_.find(quotas[at].src)->second, slice.box.lo()[0], slice.box.hi()[0],
                       slice.bytes / static_cast<std::uint64_t>(slice.box.extent(0))});
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
        if (kept_[row.group]) continue;
        std::size_t& at = next[row.group];
        for (; at < dealt[row.group].size() && dealt[row.group][at].pool == pool; ++at) {
          if (!IsOpen(pool)) plan_.groups[row.group].quotas.push_back(dealt[row.group][at]);
        }
        for (std::uint64_t left = IsOpen(pool) ? row.bytes : 0; left > 0;) {
          AddQuota(row.group, pool, parts.front().sender, parts.front().bytes());
          left -= parts.front().bytes();
          parts = parts.subspan(1);
        }
      }
    }
  }

  const std::vector<WorkerIndex>& senders_;
  const std::vector<bool>& kept_;
  const PoolRows& rows_;
  Plan& plan_;
  absl::flat_hash_map<WorkerIndex, std::uint32_t> number_;  // place among the senders
  std::vector<Holders> members_;                            // per pool
};

}  // namespace

void Route(const std::vector<WorkerIndex>& senders,
           const std::vector<bool>& kept,
           const PoolRows& rows,
           Plan& plan) {
  Router(senders, kept, rows, plan).Run();
}

}  // namespace wb
