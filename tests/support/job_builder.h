#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "planner/model/layout.h"

namespace wb::test {

/// A piece as a layout file writes it. `axes` empty: the last local dimensions, in order.
struct PieceSpec {
  std::string tensor = {};
  Index lo = {};
  Index hi = {};
  Index at = {};
  Index axes = {};
};

/// A param as a layout file writes it. `strides` empty: row-major; `buffer` empty: its own.
struct ParamSpec {
  std::string name = {};
  Index shape = {};
  std::vector<PieceSpec> pieces = {};
  Index strides = {};
  std::string buffer = {};
  std::uint64_t offset_bytes = 0;
  bool local = false;
  std::string dtype = {};  // for the JSON only; default: left out
};

/// Builds Job values by hand, in any order; Build() puts the tables in the door's order and drops
/// empty boxes. It checks nothing: tests that are about bad layouts go through the door, with
/// Json().
class JobBuilder {
 public:
  explicit JobBuilder(std::string name = "job") { job_.name = std::move(name); }

  JobBuilder& AddTensor(const std::string& name, Dtype dtype, Index shape, bool identical = false);
  /// Params that follow are this worker's.
  JobBuilder& Trainer(int rank, const std::string& node) {
    return Worker(Role::kTrainer, "policy", rank, node);
  }
  JobBuilder& Rollout(const std::string& group, int rank, const std::string& node) {
    return Worker(Role::kRollout, group, rank, node);
  }
  JobBuilder& AddParam(ParamSpec param);
  /// A param that is exactly the box [lo, hi) of `tensor`.
  JobBuilder& Holds(const std::string& tensor, Index lo, Index hi);

  /// For the JSON only.
  JobBuilder& AddAlias(const std::string& alias, const std::string& target);

  [[nodiscard]] Job Build() const;
  /// The layout file that says the same, to be loaded or spoilt.
  [[nodiscard]] nlohmann::ordered_json Json() const;

 private:
  struct WorkerSpec {
    Layout layout;
    std::vector<ParamSpec> params;
  };
  JobBuilder& Worker(Role role, const std::string& group, int rank, const std::string& node);
  [[nodiscard]] Layout BuildLayout(const WorkerSpec& worker,
                                   const std::vector<Tensor>& tensors) const;

  Job job_;
  std::vector<std::pair<std::string, std::string>> aliases_;
  std::vector<WorkerSpec> workers_;
};

/// Row-major strides of a shape, in elements.
[[nodiscard]] Index RowMajor(const Index& shape);
/// The tensor of that name; the test fails if there is none.
[[nodiscard]] TensorId TensorNamed(const Job& job, const std::string& name);
/// The worker "group/rank"; the test fails if there is none.
[[nodiscard]] WorkerIndex WorkerNamed(const Job& job, const std::string& name);

}  // namespace wb::test
