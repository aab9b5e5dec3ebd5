#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace wb {

/// A slice is never split into parts smaller than this.
inline constexpr std::uint64_t kMinPartBytes = std::uint64_t{1} << 20;

/// Loads within a 1024th of the target are as good as at it.
[[nodiscard]] inline bool NearTarget(std::uint64_t load, std::uint64_t target) {
  return load <= target + target / 1024;
}

/// Senders of which each may send some parts, ascending.
using Holders = std::vector<std::uint32_t>;

/// Rows [lo, hi) of dimension 0 of what one receiver gets, at the trainer that sends them.
struct SentPart {
  std::uint32_t item = 0;     // a slice on the way to one receiver
  std::uint32_t holders = 0;  // index into the list of holders
  std::uint32_t sender = 0;   // sender number
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(hi - lo) * row_bytes; }
};

/// Lowers the most loaded sender step by step: gives one of its parts, or some rows of it, to
/// another holder; exchanges two parts; or has it give rows to one that gives as much on to a
/// third, and so forth, where those that hold what it has are full themselves. Goes on as long as
/// that lowers it and it is not near `target`, for a bounded number of looks at parts.
/// Deterministic. Used once, by Route.
class Balancer {
 public:
  /// `load`: what each sender carries besides the parts, bytes.
  Balancer(std::span<const Holders> holders,
           std::vector<std::uint64_t> load,
           std::vector<SentPart> parts);

  std::vector<SentPart> Run(std::uint64_t target) &&;

 private:
  // Moves `rows` rows of part `part` to `to`.
  struct Hop {
    std::uint32_t part = 0;
    std::uint32_t to = 0;
    std::int64_t rows = 0;
  };
  struct Step {
    absl::InlinedVector<Hop, 2> hops;  // each of another part
    std::uint64_t load_after = 0;      // of the fullest whose load it changes
  };
  // From which sender, and by giving rows of which part, a chain comes to a sender.
  struct Link {
    std::uint32_t from = 0;
    std::uint32_t part = 0;
  };
  std::uint32_t Fullest() const;
  std::optional<Step> BestGift(std::uint32_t from, std::uint64_t target);
  std::optional<Step> BestExchange(std::uint32_t from);
  std::optional<Step> BestChain(std::uint32_t from, std::uint64_t target);
  std::vector<std::optional<Link>> Links(std::uint32_t from);
  void Reach(const Link& link,
             std::vector<std::optional<Link>>& links,
             std::vector<std::uint32_t>& reached);
  void AddLink(const Link& link, std::optional<Link>& best) const;
  std::optional<Step> Chain(std::span<const std::optional<Link>> links,
                            std::uint32_t from,
                            std::uint32_t end,
                            std::uint64_t target) const;
  void Consider(Step step, std::uint32_t from, std::optional<Step>& best) const;
  void ConsiderExchanges(std::uint32_t from, std::uint32_t with, std::optional<Step>& best);
  std::optional<std::uint32_t> Lightest(std::uint32_t holders, std::uint32_t but) const;
  std::uint64_t BytesToGive(std::uint32_t from, std::uint32_t to, std::uint64_t target) const;
  std::int64_t RowsToGive(const SentPart& part, std::uint32_t to, std::uint64_t target) const;
  std::vector<std::uint32_t> Movable(std::uint32_t owner, std::uint32_t other) const;
  void Apply(const Hop& hop);
  void Transfer(std::uint32_t part, std::uint32_t to);

  std::span<const Holders> holders_;
  std::vector<SentPart> parts_;
  std::vector<std::uint64_t> load_;                    // per sender, bytes
  std::vector<std::vector<std::uint32_t>> of_sender_;  // per sender: its parts
  std::size_t looks_ = 0;                              // at parts, so far
};

}  // namespace wb
