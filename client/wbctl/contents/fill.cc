#include "client/wbctl/contents/fill.h"

// The hash is called once an element with the same short name: only inlined is it fast enough.
#define XXH_INLINE_ALL
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include <xxhash.h>

namespace wb {
namespace {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;

/// The bits of `value` (< 2^(mantissa_bits + 1)) in a binary float format, always exact.
constexpr std::uint32_t SmallFloatBits(std::uint32_t value, int mantissa_bits, int bias) {
  if (value == 0) return 0;
  const int exponent = static_cast<int>(std::bit_width(value)) - 1;
  const std::uint32_t mantissa =
      (value << (mantissa_bits - exponent)) & ((1U << mantissa_bits) - 1);
  return (static_cast<std::uint32_t>(exponent + bias) << mantissa_bits) | mantissa;
}

/// All values of a float format with fewer than 16 bits, by value.
template <typename Bits, int kMantissaBits, int kBias>
constexpr std::array<Bits, std::size_t{2} << kMantissaBits> FloatTable() {
  std::array<Bits, std::size_t{2} << kMantissaBits> table{};
  for (std::uint32_t value = 0; value < table.size(); ++value) {
    table[value] = static_cast<Bits>(SmallFloatBits(value, kMantissaBits, kBias));
  }
  return table;
}

constexpr auto kFp16Table = FloatTable<std::uint16_t, 10, 15>();
constexpr auto kE4m3Table = FloatTable<std::uint8_t, 3, 7>();
constexpr auto kE5m2Table = FloatTable<std::uint8_t, 2, 15>();

// One encoder per dtype: the element that stands for a whole number.
struct Fp64Encoder {
  using Bits = std::uint64_t;
  static Bits Encode(std::uint64_t v) {
    constexpr std::uint64_t kMask = (std::uint64_t{1} << 53) - 1;
    return std::bit_cast<Bits>(static_cast<double>(v & kMask));
  }
};
struct Fp32Encoder {
  using Bits = std::uint32_t;
  static Bits Encode(std::uint64_t v) {
    return std::bit_cast<Bits>(static_cast<float>(static_cast<std::uint32_t>(v) & 0xFFFFFFU));
  }
};
struct Bf16Encoder {
  using Bits = std::uint16_t;
  static Bits Encode(std::uint64_t v) {
    const auto value = static_cast<float>(static_cast<std::uint32_t>(v) & 0xFFU);
    return static_cast<Bits>(std::bit_cast<std::uint32_t>(value) >> 16);
  }
};
struct Fp16Encoder {
  using Bits = std::uint16_t;
  static Bits Encode(std::uint64_t v) { return kFp16Table[v % kFp16Table.size()]; }
};
struct E4m3Encoder {
  using Bits = std::uint8_t;
  static Bits Encode(std::uint64_t v) { return kE4m3Table[v % kE4m3Table.size()]; }
};
struct E5m2Encoder {
  using Bits = std::uint8_t;
  static Bits Encode(std::uint64_t v) { return kE5m2Table[v % kE5m2Table.size()]; }
};
template <typename T>
struct IntegerEncoder {
  using Bits = T;
  static Bits Encode(std::uint64_t v) { return static_cast<Bits>(v); }
};
struct BoolEncoder {
  using Bits = std::uint8_t;
  static Bits Encode(std::uint64_t v) { return static_cast<Bits>(v & 1); }
};

template <typename Bits>
void Put(std::byte* out, std::uint64_t i, Bits bits) {
  std::memcpy(out + i * sizeof(Bits), &bits, sizeof(Bits));
}

/// A stretch of neighbouring elements of a tensor.
struct Stretch {
  const Tensor& tensor;
  std::uint64_t begin;
  std::uint64_t count;
};

template <typename Encoder>
void WriteIndex(const Stretch& run, std::uint64_t version, std::byte* out) {
  for (std::uint64_t i = 0; i < run.count; ++i) {
    Put(out, i, Encoder::Encode(run.begin + version + i));
  }
}

template <typename Encoder>
void WriteRow(const Stretch& run, std::uint64_t version, std::byte* out) {
  std::uint64_t row_elements = 1;
  for (std::size_t d = 1; d < run.tensor.shape.size(); ++d) {
    row_elements *= static_cast<std::uint64_t>(run.tensor.shape[d]);
  }
  std::uint64_t i = 0;
  while (i < run.count) {
    const std::uint64_t row = (run.begin + i) / row_elements;
    const std::uint64_t end = std::min(run.count, (row + 1) * row_elements - run.begin);
    const typename Encoder::Bits bits = Encoder::Encode(row + version);
    for (; i < end; ++i) Put(out, i, bits);
  }
}

template <typename Encoder>
void WriteHash(const Stretch& run, std::uint64_t version, std::byte* out) {
  const std::string name = run.tensor.name;
  for (std::uint64_t i = 0; i < run.count; ++i) {
    const std::uint64_t seed = (run.begin + i) * kGolden + version;
    const std::uint64_t hash = XXH3_64bits_withSeed(name.data(), name.size(), seed);
    Put(out, i, static_cast<typename Encoder::Bits>(hash));
  }
}

template <typename Encoder>
void WriteAs(Fill fill, const Stretch& run, std::uint64_t version, std::byte* out) {
  switch (fill) {
    case Fill::kHash:
      // Any bits will do for a number, but a BOOL has two values only.
      if constexpr (std::is_same_v<Encoder, BoolEncoder>) {
        WriteHash<Encoder>(run, version, out);
        for (std::uint64_t i = 0; i < run.count; ++i) out[i] &= std::byte{1};
        return;
      }
      return WriteHash<Encoder>(run, version, out);
    case Fill::kRow:
      return WriteRow<Encoder>(run, version, out);
    case Fill::kIndex:
      return WriteIndex<Encoder>(run, version, out);
  }
}

}  // namespace

void FillContents::Write(const Tensor& tensor,
                         std::uint64_t begin,
                         std::uint64_t count,
                         std::span<std::byte> out) const {
  static_assert(std::endian::native == std::endian::little, "elements are written as they are");
  const Stretch run{tensor, begin, count};
  switch (tensor.dtype) {
    case Dtype::kFp64:
      return WriteAs<Fp64Encoder>(fill_, run, version_, out.data());
    case Dtype::kFp32:
      return WriteAs<Fp32Encoder>(fill_, run, version_, out.data());
    case Dtype::kFp16:
      return WriteAs<Fp16Encoder>(fill_, run, version_, out.data());
    case Dtype::kBf16:
      return WriteAs<Bf16Encoder>(fill_, run, version_, out.data());
    case Dtype::kFp8E4m3:
      return WriteAs<E4m3Encoder>(fill_, run, version_, out.data());
    case Dtype::kFp8E5m2:
      return WriteAs<E5m2Encoder>(fill_, run, version_, out.data());
    case Dtype::kInt64:
      return WriteAs<IntegerEncoder<std::uint64_t>>(fill_, run, version_, out.data());
    case Dtype::kInt32:
      return WriteAs<IntegerEncoder<std::uint32_t>>(fill_, run, version_, out.data());
    case Dtype::kInt16:
      return WriteAs<IntegerEncoder<std::uint16_t>>(fill_, run, version_, out.data());
    case Dtype::kInt8:
    case Dtype::kUint8:
      return WriteAs<IntegerEncoder<std::uint8_t>>(fill_, run, version_, out.data());
    case Dtype::kBool:
      return WriteAs<BoolEncoder>(fill_, run, version_, out.data());
  }
}

}  // namespace wb
