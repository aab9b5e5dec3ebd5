#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wb {

// The direct bound: the least bytes that the most loaded NIC must carry in one direction, whatever
// the plan, as long as trainers send and rollouts only receive.
//
// A slice that some trainer on the destination's node holds costs no NIC anything. Every other
// slice enters its destination's NIC, wherever it comes from: so no plan goes below
//   I = the most such bytes that one destination wants.
// And it leaves the NIC of one of the trainers S that hold it. What only members of a set U of
// trainers hold must leave through |U| NICs, so for every U no plan goes below
//   V(U) / |U|,  V(U) = sum of bytes of slices with S inside U.
// Both hold for every plan, hence direct = max(I, max over U of V(U) / |U|).
//
// It cannot be better. Ask whether bytes may be divided so that nobody sends more than L: a flow
// from each class of slices (capacity: its bytes) through its holders to a sink (capacity: L).
// By max-flow min-cut all bytes flow exactly if no U has V(U) > L |U|. So the second term *is* the
// minimum over fractional routings of the most loaded sender, and a plan that may cut slices
// anywhere reaches the bound. A NIC carries whole bytes: the term is rounded up.
//
// Where of any two sets of holders one holds the other or they are disjoint (laminar), the minimum
// is found by water-filling: the sets from the smallest up, each set's bytes poured over its
// holders so that the least loaded are filled up to one level. This is exact: let m be the highest
// level at the end, and S the last set that raised a sender to it. Nobody in S is above m, and all
// of S came to m, to within the byte that does not divide, when S was poured, or stood there
// already. What they carried by then came from sets no larger than S, which, meeting it, lie
// inside: so V(S) > (m - 1) |S|, and m is no more than V(S) / |S|, rounded up. All four canonical
// deployments are laminar, as all of Megatron's layouts without expert tensor parallelism are:
// within a pipeline stage an expert is held by the ranks r = e (mod EP), a tensor-parallel shard by
// those with r = t (mod TP), and anything else by all; TP divides EP, so that each of the former
// lies inside one of the latter.
//
// Otherwise the best U is found by Newton's method (Dinkelbach, "On nonlinear fractional
// programming", 1967, over minimum cuts): start with L = V(all) / |all|; a minimum cut that leaves
// bytes behind names a U with V(U) > L |U|; go on with L = V(U) / |U|, rounded up, which never
// passes the maximum; stop when all bytes flow. Capacities only grow, so each step goes on from the
// flow of the one before.

/// Bytes that any of `holders` may send. Holders are numbers below the count of senders.
struct EgressClass {
  std::vector<std::uint32_t> holders;  // unique, at least one
  std::uint64_t bytes = 0;
};

/// The least possible maximum over senders, and one way to reach it.
struct EgressOptimum {
  std::uint64_t max_bytes = 0;
  bool laminar = false;  // the classes' holders are
  /// shares[c][i]: bytes of class c that its i-th holder sends.
  std::vector<std::vector<std::uint64_t>> shares;
};

/// The sum of all bytes fits 63 bits.
[[nodiscard]] EgressOptimum MinimizeEgress(std::span<const EgressClass> classes,
                                           std::size_t senders);

}  // namespace wb
