#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "transport/copy/copier.h"

namespace wb {

/// The host's copier: threads that copy between memories that the CPU reaches.
class CopyPool final : public Copier {
 public:
  /// With 0 threads Submit runs the job itself. INVALID_ARGUMENT for less than 0 or more than 256.
  static absl::StatusOr<std::unique_ptr<CopyPool>> Create(int threads);
  ~CopyPool() override;
  CopyPool(const CopyPool&) = delete;
  CopyPool& operator=(const CopyPool&) = delete;

  void Submit(CopyJob job) override;
  void TakeDone(std::vector<CopyJob>& done) override;
  int completion_fd() const override;
  std::size_t pending() const override;

 private:
  CopyPool() = default;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wb
