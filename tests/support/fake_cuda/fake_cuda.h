#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tests/support/fake_cuda/fake_cuda_driver.h"
#include "tests/support/temp_folder.h"

namespace wb::test {

/// One process with a fake libcuda.so.1, as far as the driver can tell: a copy of the library, with
/// a state of its own. Plays what the process's own code calls.
class FakeCuda {
 public:
  /// `node` and `visible` as the process's environment has them (kFakeNodeVariable,
  /// kVisibleVariable). Made while no other thread looks at the environment.
  explicit FakeCuda(const std::string& node, const std::optional<std::string>& visible = {});

  /// The path for CudaApi::Load.
  std::string library() const { return folder_.File("libcuda.so.1"); }
  /// A function of the driver: Find<decltype(cuda::cuInit)>("cuInit").
  template <typename Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(FindSymbol(name));
  }
  int misuses() const;

  /// Memory of the device of that ordinal.
  cuda::Address Allocate(int ordinal, std::size_t bytes) const;
  /// Makes a device current on this thread for good, as CUDA's runtime does at a thread's first
  /// call.
  void SetCurrent(int ordinal) const;
  /// Of this thread; nullptr: none.
  cuda::Context current() const;
  /// Whether anybody in the process has retained its primary context.
  bool IsActive(int ordinal) const;

 private:
  void* FindSymbol(const char* name) const;

  TempFolder folder_;
  void* library_ = nullptr;  // stays loaded, as CudaApi leaves it
};

}  // namespace wb::test
