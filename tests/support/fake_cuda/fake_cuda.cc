#include "tests/support/fake_cuda/fake_cuda.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <dlfcn.h>

namespace wb::test {
namespace {

/// Tests call from any thread, where Catch2 may not be asked.
void Require(bool held) {
  if (!held) throw std::runtime_error("fake CUDA: a call of the test's own failed");
}

}  // namespace

FakeCuda::FakeCuda(const std::string& node, const std::optional<std::string>& visible) {
  std::filesystem::copy_file(WB_FAKE_CUDA, library());
  library_ = ::dlopen(library().c_str(), RTLD_NOW | RTLD_LOCAL);
  Require(library_ != nullptr);
  // The driver reads the environment once, when it is initialised.
  Require(::setenv(cuda::kFakeNodeVariable, node.c_str(), 1) == 0);
  if (visible.has_value()) Require(::setenv(cuda::kVisibleVariable, visible->c_str(), 1) == 0);
  static_cast<void>(Find<decltype(cuda::cuInit)>("cuInit")(0));  // CudaApi will hear it again
  ::unsetenv(cuda::kVisibleVariable);
  ::unsetenv(cuda::kFakeNodeVariable);
}

void* FakeCuda::FindSymbol(const char* name) const {
  void* const symbol = ::dlsym(library_, name);
  Require(symbol != nullptr);
  return symbol;
}

int FakeCuda::misuses() const {
  return Find<decltype(cuda::WbFakeCudaMisuses)>("WbFakeCudaMisuses")();
}

void FakeCuda::SetCurrent(int ordinal) const {
  cuda::Context context = nullptr;
  auto* const retain = Find<decltype(cuda::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain");
  Require(retain(&context, ordinal) == cuda::kSuccess);
  Require(Find<decltype(cuda::cuCtxPushCurrent_v2)>("cuCtxPushCurrent_v2")(context) ==
          cuda::kSuccess);
}

cuda::Context FakeCuda::current() const {
  cuda::Context context = nullptr;
  Require(Find<decltype(cuda::cuCtxGetCurrent)>("cuCtxGetCurrent")(&context) == cuda::kSuccess);
  return context;
}

cuda::Address FakeCuda::Allocate(int ordinal, std::size_t bytes) const {
  SetCurrent(ordinal);
  cuda::Address address = 0;
  Require(Find<decltype(cuda::cuMemAlloc_v2)>("cuMemAlloc_v2")(&address, bytes) == cuda::kSuccess);
  cuda::Context popped = nullptr;
  Require(Find<decltype(cuda::cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&popped) ==
          cuda::kSuccess);
  return address;
}

bool FakeCuda::IsActive(int ordinal) const {
  unsigned int flags = 0;
  int active = 0;
  auto* const state =
      Find<decltype(cuda::cuDevicePrimaryCtxGetState)>("cuDevicePrimaryCtxGetState");
  Require(state(ordinal, &flags, &active) == cuda::kSuccess);
  return active != 0;
}

}  // namespace wb::test
