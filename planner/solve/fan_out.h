#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/solve/balance.h"
#include "planner/solve/pool_rows.h"

namespace wb {

/// Bytes [begin, end) of the row that a group gets from a pool come from the receivers of another
/// group that get the same.
struct RelayedBytes {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t from = 0;  // index into Plan::groups
  friend bool operator==(const RelayedBytes&, const RelayedBytes&) = default;
};

/// By (pool, group): what is relayed of the row, in its order; rows that are not named come from
/// trainers whole.
using Relays = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<RelayedBytes>>;

/// What trainers may send: their loads stay within `limit` if they can.
struct EgressRoom {
  std::span<const Holders> members;     // per pool: numbers of senders
  std::span<const std::uint64_t> load;  // per sender: what kept groups make it carry
  std::uint64_t limit = 0;              // bytes
  bool between_nodes = false;           // whether to relay what trainers have no room for
};

/// Chooses which bytes groups get from each other. Groups are alike whose receivers, turn by turn,
/// have one demand: they get the same rows. Of alike groups, the first takes a row from the pool's
/// trainers; the next may take any byte from an earlier one that nobody has taken it from yet. So
/// no receiver sends more than it gets, and as much as trainers have room for comes from them: the
/// more, the shorter the chains, n groups / copies that trainers send. Never between receivers of
/// one node, and never bytes that come from a trainer of the receiver's node.
///
/// If the plan has `node_sharing`, though, alike groups of the same nodes, turn by turn, are one in
/// this: the others get from the first of them all that would come through a NIC.
///
/// Groups that `kept` names are sources only. Ends fall between slices.
[[nodiscard]] Relays ChooseRelays(const Job& job,
                                  const std::vector<bool>& kept,
                                  const PoolRows& rows,
                                  const EgressRoom& room,
                                  const Plan& plan);

}  // namespace wb
