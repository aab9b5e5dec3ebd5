#include "planner/solve/balance.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace wb {
namespace {

// A fraction of a second. Jobs with so many parts that this ends the work are even without it.
constexpr std::size_t kMaxLooks = 20'000'000;

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
    if (!step.has_value()) break;
    Apply(*step);
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

// How many rows of `part` to give so that the sender or the receiver comes to the target, or, where
// the receiver has no room below it, both to the same load; 0 when the part may not be split.
std::int64_t Balancer::RowsToGive(const SentPart& part,
                                  std::uint32_t to,
                                  std::uint64_t target) const {
  if (part.bytes() < 2 * kMinPartBytes || load_[to] >= load_[part.sender]) return 0;
  const std::uint64_t half = (load_[part.sender] - load_[to]) / 2;
  const std::uint64_t room = target - std::min(load_[to], target);
  const std::uint64_t give =
      std::min(load_[part.sender] - target, room >= kMinPartBytes ? room : half);
  const auto rows_of = [&](std::uint64_t bytes) {
    return static_cast<std::int64_t>((bytes + part.row_bytes - 1) / part.row_bytes);
  };
  const std::int64_t least = rows_of(kMinPartBytes);
  const std::int64_t most = part.hi - part.lo - least;
  return least > most ? 0 : std::clamp(rows_of(give), least, most);
}

// A step counts that leaves the fuller of its two ends below what the sender has now.
void Balancer::Consider(const Step& step, std::optional<Step>& best) const {
  const std::uint64_t now = best.has_value() ? best->load_after : load_[parts_[step.part].sender];
  if (step.load_after < now) best = step;
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
    Consider({number, receiver, rows, std::nullopt, after}, best);
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
      Consider({mine[i], with, part.hi - part.lo, theirs[j], after}, best);
    }
    (out > in + half ? j : i) += 1;
  }
}

void Balancer::Transfer(std::uint32_t part, std::uint32_t to) {
  std::vector<std::uint32_t>& own = of_sender_[parts_[part].sender];
  own.erase(std::find(own.begin(), own.end(), part));
  load_[parts_[part].sender] -= parts_[part].bytes();
  parts_[part].sender = to;
  load_[to] += parts_[part].bytes();
  of_sender_[to].push_back(part);
}

void Balancer::Apply(const Step& step) {
  if (step.back.has_value()) Transfer(*step.back, parts_[step.part].sender);
  if (step.rows == parts_[step.part].hi - parts_[step.part].lo) {
    Transfer(step.part, step.to);
    return;
  }
  SentPart given = parts_[step.part];
  parts_[step.part].hi -= step.rows;
  given.lo = parts_[step.part].hi;
  given.sender = step.to;
  load_[parts_[step.part].sender] -= given.bytes();
  load_[step.to] += given.bytes();
  of_sender_[step.to].push_back(static_cast<std::uint32_t>(parts_.size()));
  parts_.push_back(given);
}

}  // namespace wb
