#include "tests/support/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WB_OWN_NEW 0
#elif defined(__has_feature)
#define WB_OWN_NEW !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define WB_OWN_NEW 1
#endif

namespace {

std::atomic<std::uint64_t> allocations{0};
std::atomic<std::uint64_t> allocated_bytes{0};

}  // namespace

#if WB_OWN_NEW  // a sanitizer has its own, and sees more with it

namespace {

void* Allocate(std::size_t bytes) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return std::malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace

// clang 14 does not declare these two by itself.
void operator delete(void* memory, std::size_t bytes) noexcept;
void operator delete[](void* memory, std::size_t bytes) noexcept;

// Replaced as a set: what they allocate, they free.
void* operator new(std::size_t bytes) {
  void* const memory = Allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t bytes) {
  return operator new(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*nothrow*/) noexcept {
  return Allocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& /*nothrow*/) noexcept {
  return Allocate(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}

#endif

namespace wb::test {

std::uint64_t AllocationCount() {
  return allocations.load(std::memory_order_relaxed);
}

std::uint64_t AllocatedBytes() {
  return allocated_bytes.load(std::memory_order_relaxed);
}

}  // namespace wb::test
