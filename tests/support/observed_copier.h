#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "transport/copy/copier.h"

namespace wb::test {

/// Another copier that counts what it is given.
class ObservedCopier final : public Copier {
 public:
  explicit ObservedCopier(std::unique_ptr<Copier> inner) : inner_(std::move(inner)) {}

  std::uint64_t jobs() const { return jobs_; }
  std::uint64_t copied_bytes() const { return copied_bytes_; }
  std::uint64_t summed_bytes() const { return summed_bytes_; }

  void Submit(CopyJob job) override {
    ++jobs_;
    for (const CopyStep& step : job.steps) copied_bytes_ += step.bytes;
    summed_bytes_ += job.summed.size();
    inner_->Submit(std::move(job));
  }
  void TakeDone(std::vector<CopyJob>& done) override { inner_->TakeDone(done); }
  int completion_fd() const override { return inner_->completion_fd(); }
  std::size_t pending() const override { return inner_->pending(); }

 private:
  std::unique_ptr<Copier> inner_;
  std::uint64_t jobs_ = 0;
  std::uint64_t copied_bytes_ = 0;
  std::uint64_t summed_bytes_ = 0;
};

}  // namespace wb::test
