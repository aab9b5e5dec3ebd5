#include "tests/support/fake_cuda/fake_driver.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <sys/mman.h>

#include "absl/strings/str_split.h"

#include "planner/base/checked_math.h"
#include "transport/memory/cuda/visible_devices.h"

namespace wb::test {
namespace {

std::optional<std::string> Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// The devices of the node that the process sees, in its order.
std::vector<FakeGpu> VisibleGpus() {
  std::vector<FakeGpu> gpus;
  std::vector<DeviceUuid> node;
  const std::string text = Variable(cuda::kFakeNodeVariable).value_or("");
  for (const absl::string_view entry : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::vector<std::string> names = absl::StrSplit(entry, '@');
    node.push_back(DeviceUuid::Parse(names.front()).value());
    gpus.push_back({node.back(), DeviceUuid::Parse(names.back()).value()});
  }
  std::vector<FakeGpu> visible;
  const auto uuids = ParseVisibleDevices(Variable(cuda::kVisibleVariable), node);
  if (!uuids.ok()) return visible;
  for (const DeviceUuid& uuid : *uuids) {
    for (const FakeGpu& gpu : gpus) {
      if (gpu.uuid == uuid) visible.push_back(gpu);
    }
  }
  return visible;
}

}  // namespace

cuda::Result FakeDriver::Init() {
  const MutexLock lock(mu_);
  if (!std::exchange(initialised_, true)) {
    gpus_ = VisibleGpus();
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      contexts_.push_back({static_cast<cuda::Device>(i), 0});
    }
  }
  return gpus_.empty() ? cuda::kNoDevice : cuda::kSuccess;
}

int FakeDriver::device_count() {
  const MutexLock lock(mu_);
  return static_cast<int>(gpus_.size());
}

std::optional<FakeGpu> FakeDriver::FindGpu(cuda::Device device) {
  const MutexLock lock(mu_);
  const auto index = static_cast<std::size_t>(device);
  return index < gpus_.size() ? std::optional(gpus_[index]) : std::nullopt;
}

cuda::Context FakeDriver::FindContext(cuda::Device device) {
  const MutexLock lock(mu_);
  const auto index = static_cast<std::size_t>(device);
  return index < contexts_.size() ? &contexts_[index] : nullptr;
}

cuda::Result FakeDriver::Retain(cuda::Context context) {
  const MutexLock lock(mu_);
  ++context->retained;
  return cuda::kSuccess;
}

cuda::Result FakeDriver::Release(cuda::Context context) {
  const MutexLock lock(mu_);
  if (context->retained == 0) return cuda::kInvalidContext;
  --context->retained;
  return cuda::kSuccess;
}

bool FakeDriver::IsRetained(cuda::Context context) {
  const MutexLock lock(mu_);
  return context->retained > 0;
}

std::vector<cuda::Context>& FakeDriver::Contexts() {
  thread_local std::vector<cuda::Context> contexts;
  return contexts;
}

bool FakeDriver::IsCurrent(cuda::Device device) {
  const std::vector<cuda::Context>& contexts = Contexts();
  const bool current = !contexts.empty() && contexts.back()->device == device;
  if (!current) ++misuses_;
  return current;
}

cuda::Result FakeDriver::Allocate(std::size_t bytes, cuda::Address& address) {
  const MutexLock lock(mu_);
  if (Contexts().empty()) return cuda::kInvalidContext;
  void* const base =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return cuda::kInvalidValue;
  address = reinterpret_cast<cuda::Address>(base);
  allocations_.push_back({Contexts().back()->device, address, std::vector<std::byte>(bytes)});
  return cuda::kSuccess;
}

FakeAllocation* FakeDriver::Holder(cuda::Address address) {
  for (FakeAllocation& allocation : allocations_) {
    if (address - allocation.base < allocation.memory.size()) return &allocation;
  }
  return nullptr;
}

const FakeAllocation* FakeDriver::FindAllocation(cuda::Address address) {
  const MutexLock lock(mu_);
  return Holder(address);
}

cuda::Result FakeDriver::Use(cuda::Address address, const FakeAllocation*& allocation) {
  const MutexLock lock(mu_);
  allocation = Holder(address);
  if (allocation == nullptr) return cuda::kInvalidValue;
  return IsCurrent(allocation->device) ? cuda::kSuccess : cuda::kInvalidContext;
}

cuda::Result FakeDriver::Resolve(cuda::Address address, std::size_t bytes, std::byte*& memory) {
  FakeAllocation* const holder = Holder(address);
  if (holder == nullptr) {
    memory = reinterpret_cast<std::byte*>(address);
    return cuda::kSuccess;
  }
  if (!IsCurrent(holder->device)) return cuda::kInvalidContext;
  const std::size_t offset = address - holder->base;
  if (!InRange(offset, bytes, holder->memory.size())) return cuda::kInvalidValue;
  memory = holder->memory.data() + offset;
  return cuda::kSuccess;
}

cuda::Result FakeDriver::Copy(cuda::Address to, cuda::Address from, std::size_t bytes) {
  std::byte* target = nullptr;
  std::byte* source = nullptr;
  {
    const MutexLock lock(mu_);
    for (const auto& [address, memory] : {std::pair(to, &target), std::pair(from, &source)}) {
      const cuda::Result result = Resolve(address, bytes, *memory);
      if (result != cuda::kSuccess) return result;
    }
  }
  std::memcpy(target, source, bytes);
  return cuda::kSuccess;
}

int FakeDriver::misuses() {
  const MutexLock lock(mu_);
  return misuses_;
}

}  // namespace wb::test
