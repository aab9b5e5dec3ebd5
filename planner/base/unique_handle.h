#pragma once

#include <utility>

namespace wb {

/// Owns one handle of a C library or of the kernel, and closes it. `Traits` has `Raw`, the handle's
/// type, `kNull`, the value that owns nothing, and `Close(Raw) noexcept`. Move-only.
template <typename Traits>
class UniqueHandle {
 public:
  using Raw = typename Traits::Raw;

  UniqueHandle() = default;
  explicit UniqueHandle(Raw raw) : raw_(raw) {}
  UniqueHandle(UniqueHandle&& other) noexcept : raw_(other.Release()) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    Reset(other.Release());
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() { Reset(); }

  Raw get() const { return raw_; }
  explicit operator bool() const { return raw_ != Traits::kNull; }
  /// Gives the handle away; it is the caller's to close.
  [[nodiscard]] Raw Release() { return std::exchange(raw_, Traits::kNull); }
  /// Closes what is owned and takes `raw`.
  void Reset(Raw raw = Traits::kNull) {
    const Raw old = std::exchange(raw_, raw);
    if (old != Traits::kNull) Traits::Close(old);
  }

 private:
  Raw raw_ = Traits::kNull;
};

}  // namespace wb
