#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "planner/model/layout.h"

namespace wb {

/// What the elements of a tensor hold: a pure function of the tensor and the element's row-major
/// index in it, so that every worker knows the right bytes of every element by itself.
class Contents {
 public:
  virtual ~Contents() = default;
  /// Writes elements [begin, begin + count) of `tensor`, little endian, to `out`, which is
  /// count * DtypeBytes(tensor.dtype) bytes long.
  virtual void Write(const Tensor& tensor,
                     std::uint64_t begin,
                     std::uint64_t count,
                     std::span<std::byte> out) const = 0;
};

/// How a rehearsal numbers the elements.
enum class Fill : std::uint8_t {
  kHash,   // low bytes of XXH3_64bits_withSeed(tensor name, index * 0x9E3779B97F4A7C15 + version)
  kRow,    // first index of the element + version, in the tensor's dtype
  kIndex,  // row-major index of the element + version, in the tensor's dtype
};

/// Elements that differ from version to version. `kRow` and `kIndex` are exact in every dtype:
/// integers modulo 2^bits, floats the value modulo 2^p (p: bits of the significand), BOOL modulo 2.
class FillContents final : public Contents {
 public:
  FillContents(Fill fill, std::uint64_t version) : fill_(fill), version_(version) {}
  void Write(const Tensor& tensor,
             std::uint64_t begin,
             std::uint64_t count,
             std::span<std::byte> out) const override;

 private:
  Fill fill_;
  std::uint64_t version_;
};

}  // namespace wb
