#pragma once

#include <cstdint>

#include "client/src/errors.h"
#include "planner/base/fd_handle.h"

namespace wb::client {

/// A memfd of fixed size (sealed against shrinking, growing and further seals), mapped into this
/// process. Invariant: data() is readable and writable for bytes(). Immutable but for its contents.
/// Shared by the caller's handle and the layouts and sessions that were given it.
class SealedBuffer {
 public:
  static Result<SealedBuffer> Create(std::uint64_t bytes);
  SealedBuffer(SealedBuffer&& other) noexcept;
  SealedBuffer& operator=(SealedBuffer&& other) = delete;
  SealedBuffer(const SealedBuffer&) = delete;
  SealedBuffer& operator=(const SealedBuffer&) = delete;
  ~SealedBuffer();

  void* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }

 private:
  SealedBuffer(FdHandle fd, void* data, std::uint64_t bytes);

  FdHandle fd_;
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace wb::client
