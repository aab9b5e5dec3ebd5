#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "planner/model/layout.h"

namespace wb::test {

/// What RandomJob may draw.
struct JobLimits {
  int tensors = 6;
  int trainers = 6;
  int engines = 2;
  int ranks = 4;                  // of an engine, at most
  std::int64_t extent = 12;       // of a dimension, at most
  bool overlap_identical = true;  // trainers whose boxes overlap, under IDENTICAL
  bool tied = true;               // destinations that hold elements in several params
};

/// A job that Solve accepts. Trainers and engines cut every tensor in their own way: rows, columns,
/// 2-D grids, uneven and empty shards, one owner, interleaved blocks, fewer parts than ranks
/// (replicas, as KV heads). Params are transposed, padded, strided, stacked or views of one buffer;
/// workers share nodes or not.
[[nodiscard]] Job RandomJob(std::mt19937_64& rng, const JobLimits& limits);
[[nodiscard]] inline Job RandomJob(std::mt19937_64& rng) {
  return RandomJob(rng, JobLimits{});
}

/// The same job with its tables of tensors and layouts in random order.
[[nodiscard]] Job ShuffleTables(const Job& job, std::mt19937_64& rng);

/// The same job in which the ranks of each group are dealt out anew: worker "g/i" holds what
/// "g/renamed[i]" held, node included.
[[nodiscard]] Job ExchangeRanks(const Job& job, std::mt19937_64& rng);

/// A number in [low, high].
[[nodiscard]] std::int64_t Draw(std::mt19937_64& rng, std::int64_t low, std::int64_t high);

}  // namespace wb::test
