#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"

#include "planner/model/plan.h"

namespace wb {

/// The rows of slices that groups get from each pool; see PlanGroup. The plan outlives this.
class PoolRows {
 public:
  explicit PoolRows(const Plan& plan);

  /// A group, and the bytes of the row that it gets from a pool.
  struct Row {
    std::uint32_t group = 0;  // index into Plan::groups
    std::uint64_t bytes = 0;
  };
  /// The pool's rows, by group; none is empty.
  std::span<const Row> rows(std::uint32_t pool) const { return rows_[pool]; }
  /// Adds to each pool's `bytes` those of its row for one group, without what comes from mates.
  void AddBytesOf(std::uint32_t group, std::span<std::uint64_t> bytes) const;
  /// Visits each slice of the row, in order.
  void ForEachSlice(std::uint32_t pool,
                    std::uint32_t group,
                    absl::FunctionRef<void(const Slice&)> visit) const;
  /// What one receiver with the demand gets through its NIC.
  std::uint64_t nic_bytes(std::uint32_t demand) const { return demands_[demand].nic_bytes; }

 private:
  // slices[begin of entry, begin of the next) of a demand come from the entry's pool.
  struct Entry {
    std::uint32_t pool = 0;
    std::uint32_t begin = 0;
    std::uint64_t bytes = 0;
  };
  struct ByPool {
    std::vector<std::uint32_t> slices;  // indices into Plan::slices
    std::vector<Entry> entries;         // ordered by pool
    std::uint64_t nic_bytes = 0;
  };
  static ByPool Sort(const Plan& plan, const Demand& demand);
  void AddRows(std::uint32_t group, std::vector<std::uint64_t>& bytes);

  const Plan& plan_;
  std::vector<ByPool> demands_;                      // per demand
  std::vector<std::vector<std::uint32_t>> by_turn_;  // per group: demands of its receivers
  std::vector<std::vector<Row>> rows_;               // per pool
};

}  // namespace wb
