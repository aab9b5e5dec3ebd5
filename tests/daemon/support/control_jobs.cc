#include "tests/daemon/support/control_jobs.h"

#include "tests/support/job_builder.h"

namespace wb::test {
namespace {

constexpr std::int64_t kSide = 8;

Registration OnlyWorker(JobBuilder& builder) {
  const Job job = builder.Build();
  return {job.name, job.tensors, job.layouts.front()};
}

}  // namespace

Registration TrainerRank(int rank, int ranks, const std::string& node) {
  JobBuilder builder("gqa");
  builder.AddTensor("w", Dtype::kFp32, {kSide, kSide}).Trainer(rank, node);
  builder.Holds("w", {rank * kSide / ranks, 0}, {(rank + 1) * kSide / ranks, kSide});
  return OnlyWorker(builder);
}

Registration RolloutRank(const std::string& group, int rank, int ranks, const std::string& node) {
  JobBuilder builder("gqa");
  builder.AddTensor("w", Dtype::kFp32, {kSide, kSide}).Rollout(group, rank, node);
  builder.Holds("w", {0, rank * kSide / ranks}, {kSide, (rank + 1) * kSide / ranks});
  return OnlyWorker(builder);
}

}  // namespace wb::test
