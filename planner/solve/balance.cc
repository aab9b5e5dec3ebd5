#include "planner/solve/balance.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "planner/base/divide_up.h"

namespace wb {
namespace {

// A fraction of a second. Jobs with so many parts that this ends the work are even without it.
constexpr std::size_t kMaxLooks = 20'000'000;

// The rows of `part` that come closest to `bytes`, rounded up, and leave parts that are large
// enough; 0 when it may not be split.
std::int64_t RowsNear(const SentPart& part, std::uint64_t bytes) {
  if (part.bytes() < 2 * kMinPartBytes) return 0;
  const auto rows_of = [&](std::uint64_t count) {
    return static_cast<std::int64_t>(DivideUp(count, part.row_bytes));
  };
  const std::int64_t least = rows_of(kMinPartBytes);
  const std::int64_t most = part.hi - part.lo - least;
  return least > most ? 0 : std::clamp(rows_of(bytes), least, most);
}

}  // namespace

Balancer::Balancer(std::span<const Holders> holders,
                   std::vector<std::uint64_t> load,
                   std::vector<SentPart> parts)
    : holders_(holders),
      parts_(std::move(parts)),
      load_(std::move(load)),
      of_sender_(load_.size()) {
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    load_[parts_[i].sender] += parts_[i].bytes();
    of_sender_[parts_[i].sender].push_back(i);
  }
}

std::vector<SentPart> Balancer::Run(std::uint64_t target) && {
  while (looks_ < kMaxLooks && !load_.empty()) {
    const std::uint32_t from = Fullest();
    if (NearTarget(load_[from], target)) break;
    std::optional<Step> step = BestGift(from, target);
    if (!step.has_value()) step = BestExchange(from);
    if (!step.has_value()) step = BestChain(from, target);
    if (!step.has_value()) break;
    for (const Hop& hop : step->hops) Apply(hop);
  }
  return std::move(parts_);
}

std::uint32_t Balancer::Fullest() const {
  return static_cast<std::uint32_t>(std::max_element(load_.begin(), load_.end()) - load_.begin());
}

std::optional<std::uint32_t> Balancer::Lightest(std::uint32_t holders, std::uint32_t but) const {
  std::optional<std::uint32_t> lightest;
  for (const std::uint32_t holder : holders_[holders]) {
    if (holder == but) continue;
    if (!lightest.has_value() || load_[holder] < load_[*lightest]) lightest = holder;
  }
  return lightest;
}

// How much to give so that the sender or the receiver comes to the target, or, where the receiver
// has no room below it, both to the same load.
std::uint64_t Balancer::BytesToGive(std::uint32_t from,
                                    std::uint32_t to,
                                    std::uint64_t target) const {
  const std::uint64_t half = (load_[from] - load_[to]) / 2;
  const std::uint64_t room = target - std::min(load_[to], target);
  return std::min(load_[from] - target, room >= kMinPartBytes ? room : half);
}

// 0 when the part may not be split.
std::int64_t Balancer::RowsToGive(const SentPart& part,
                                  std::uint32_t to,
                                  std::uint64_t target) const {
  if (load_[to] >= load_[part.sender]) return 0;
  return RowsNear(part, BytesToGive(part.sender, to, target));
}

// A step counts that leaves all whose load it changes below what the sender has now.
void Balancer::Consider(Step step, std::uint32_t from, std::optional<Step>& best) const {
  if (step.load_after < (best.has_value() ? best->load_after : load_[from])) best = std::move(step);
}

std::optional<Balancer::Step> Balancer::BestGift(std::uint32_t from, std::uint64_t target) {
  looks_ += 2 * of_sender_[from].size() + load_.size();
  absl::flat_hash_map<std::uint32_t, std::optional<std::uint32_t>> lightest;  // per holders
  std::optional<Step> best;
  const auto consider = [&](std::uint32_t number, bool whole) {
    const SentPart& part = parts_[number];
    const auto [to, fresh] = lightest.try_emplace(part.holders);
    if (fresh) to->second = Lightest(part.holders, from);
    if (!to->second.has_value()) return;
    const std::uint32_t receiver = *to->second;
    const std::int64_t rows = whole ? part.hi - part.lo : RowsToGive(part, receiver, target);
    if (rows == 0) return;
    const std::uint64_t bytes = static_cast<std::uint64_t>(rows) * part.row_bytes;
    // Anything below the target is as good as the target.
    const std::uint64_t after = std::max({load_[from] - bytes, load_[receiver] + bytes, target});
    Consider({{{number, receiver, rows}}, after}, from, best);
  };
  // Whole parts first: of two steps as good, the one that splits nothing.
  for (const std::uint32_t part : of_sender_[from]) consider(part, true);
  for (const std::uint32_t part : of_sender_[from]) consider(part, false);
  return best;
}

std::optional<Balancer::Step> Balancer::BestExchange(std::uint32_t from) {
  std::optional<Step> best;
  for (std::uint32_t with = 0; with < load_.size() && looks_ < kMaxLooks; ++with) {
    if (load_[with] < load_[from]) ConsiderExchanges(from, with, best);
  }
  return best;
}

// The parts of `owner` that `other` could send as well, fewest bytes first.
std::vector<std::uint32_t> Balancer::Movable(std::uint32_t owner, std::uint32_t other) const {
  std::vector<std::uint32_t> movable;
  for (const std::uint32_t part : of_sender_[owner]) {
    const Holders& holders = holders_[parts_[part].holders];
    if (std::binary_search(holders.begin(), holders.end(), other)) movable.push_back(part);
  }
  std::stable_sort(movable.begin(), movable.end(), [&](std::uint32_t a, std::uint32_t b) {
    return parts_[a].bytes() < parts_[b].bytes();
  });
  return movable;
}

// Of all pairs of parts that either side may send, those whose difference in bytes comes closest
// to half the difference in load.
void Balancer::ConsiderExchanges(std::uint32_t from,
                                 std::uint32_t with,
                                 std::optional<Step>& best) {
  looks_ += of_sender_[from].size() + of_sender_[with].size();
  const std::vector<std::uint32_t> mine = Movable(from, with);
  const std::vector<std::uint32_t> theirs = Movable(with, from);
  const std::uint64_t half = (load_[from] - load_[with]) / 2;
  for (std::size_t i = 0, j = 0; i < mine.size() && j < theirs.size();) {
    const SentPart& part = parts_[mine[i]];
    const std::uint64_t out = part.bytes();
    const std::uint64_t in = parts_[theirs[j]].bytes();
    if (out > in) {
      const std::uint64_t after = std::max(load_[from] - (out - in), load_[with] + (out - in));
      const SentPart& back = parts_[theirs[j]];
      Consider({{{mine[i], with, part.hi - part.lo}, {theirs[j], from, back.hi - back.lo}}, after},
               from, best);
    }
    (out > in + half ? j : i) += 1;
  }
}

// Of the shortest chains to each sender, the best.
std::optional<Balancer::Step> Balancer::BestChain(std::uint32_t from, std::uint64_t target) {
  const std::vector<std::optional<Link>> links = Links(from);
  std::optional<Step> best;
  for (std::uint32_t end = 0; end < links.size(); ++end) {
    if (!links[end].has_value() || load_[end] >= load_[from]) continue;
    std::optional<Step> chain = Chain(links, from, end, target);
    if (chain.has_value()) Consider(*std::move(chain), from, best);
  }
  return best;
}

// Breadth first over whom a sender may give rows to. Of the parts that a link could give, the one
// of most bytes.
std::vector<std::optional<Balancer::Link>> Balancer::Links(std::uint32_t from) {
  std::vector<std::optional<Link>> links(load_.size());
  std::vector<std::uint32_t> reached{from};
  for (std::size_t at = 0; at < reached.size() && looks_ < kMaxLooks; ++at) {
    const std::uint32_t giver = reached[at];
    looks_ += of_sender_[giver].size();
    for (const std::uint32_t part : of_sender_[giver]) {
      if (parts_[part].bytes() >= 2 * kMinPartBytes) Reach({giver, part}, links, reached);
    }
  }
  return links;
}

// Those who may send the link's part; `reached` begins with the one at which all chains start.
void Balancer::Reach(const Link& link,
                     std::vector<std::optional<Link>>& links,
                     std::vector<std::uint32_t>& reached) {
  const Holders& holders = holders_[parts_[link.part].holders];
  looks_ += holders.size();
  for (const std::uint32_t holder : holders) {
    if (holder == reached.front()) continue;
    if (!links[holder].has_value()) reached.push_back(holder);
    AddLink(link, links[holder]);
  }
}

void Balancer::AddLink(const Link& link, std::optional<Link>& best) const {
  const bool better = !best.has_value() || (best->from == link.from &&
                                            parts_[best->part].bytes() < parts_[link.part].bytes());
  if (better) best = link;
}

// Each gives on what it gets, to within a row.
std::optional<Balancer::Step> Balancer::Chain(std::span<const std::optional<Link>> links,
                                              std::uint32_t from,
                                              std::uint32_t end,
                                              std::uint64_t target) const {
  Step chain;
  const std::uint64_t wanted = BytesToGive(from, end, target);
  std::uint64_t taken = 0;  // by the one behind
  for (std::uint32_t at = end; at != from; at = links[at]->from) {
    const SentPart& part = parts_[links[at]->part];
    const std::int64_t rows = RowsNear(part, wanted);
    if (rows == 0) return std::nullopt;
    const std::uint64_t bytes = static_cast<std::uint64_t>(rows) * part.row_bytes;
    chain.hops.push_back({links[at]->part, at, rows});
    // Who gives on what it gets may be as full as the first.
    if (bytes > taken) chain.load_after = std::max(chain.load_after, load_[at] + bytes - taken);
    taken = bytes;
  }
  // Anything below the target is as good as the target.
  chain.load_after = std::max({chain.load_after, load_[from] - taken, target});
  return chain;
}

void Balancer::Transfer(std::uint32_t part, std::uint32_t to) {
  std::vector<std::uint32_t>& own = of_sender_[parts_[part].sender];
  own.erase(std::find(own.begin(), own.end(), part));
  load_[parts_[part].sender] -= parts_[part].bytes();
  parts_[part].sender = to;
  load_[to] += parts_[part].bytes();
  of_sender_[to].push_back(part);
}

void Balancer::Apply(const Hop& hop) {
  if (hop.rows == parts_[hop.part].hi - parts_[hop.part].lo) {
    Transfer(hop.part, hop.to);
    return;
  }
  SentPart given = parts_[hop.part];
  parts_[hop.part].hi -= hop.rows;
  given.lo = parts_[hop.part].hi;
  given.sender = hop.to;
  load_[parts_[hop.part].sender] -= given.bytes();
  load_[hop.to] += given.bytes();
  of_sender_[hop.to].push_back(static_cast<std::uint32_t>(parts_.size()));
  parts_.push_back(given);
}

}  // namespace wb
