#include "tests/support/cut_job.h"

#include <string>
#include <utility>

#include "tests/support/job_builder.h"

namespace wb::test {
namespace {

std::string TensorName(std::int64_t number) {
  std::string digits = std::to_string(number);
  return "tensor." + std::string(7 - digits.size(), '0') + digits;
}

// The part of rank `rank` of `ranks` of every tensor, for the worker added last.
void HoldPart(JobBuilder& builder,
              const CutJobOptions& options,
              RankCut cut,
              std::int64_t rank,
              std::int64_t ranks) {
  Index lo{0, 0};
  Index hi{options.rows, options.columns};
  if (cut != RankCut::kReplicated) {
    const std::size_t dim = cut == RankCut::kRows ? 0 : 1;
    const std::int64_t extent = hi[dim];
    lo[dim] = extent * rank / ranks;
    hi[dim] = extent * (rank + 1) / ranks;
  }
  for (std::int64_t t = 0; t < options.tensors; ++t) builder.Holds(TensorName(t), lo, hi);
}

}  // namespace

Job CutJob(const CutJobOptions& options) {
  JobBuilder builder("cut");
  for (std::int64_t t = 0; t < options.tensors; ++t) {
    builder.AddTensor(TensorName(t), Dtype::kBf16, {options.rows, options.columns});
  }
  for (std::int64_t r = 0; r < options.trainers; ++r) {
    builder.Trainer(static_cast<int>(r), "trainers");
    HoldPart(builder, options, options.trainer_cut, r, options.trainers);
  }
  for (std::int64_t r = 0; r < options.rollouts; ++r) {
    builder.Rollout("engine0", static_cast<int>(r), "rollouts");
    HoldPart(builder, options, options.rollout_cut, r, options.rollouts);
  }
  return builder.Build();
}

}  // namespace wb::test
