#include "client/wbctl/contents/fill.h"

#include <cstring>
#include <string>
#include <vector>

#include <xxhash.h>

#include "tests/support/catch.h"

namespace wb {
namespace {

/// Elements [begin, begin + count), each as an unsigned number of its bits.
std::vector<std::uint64_t> Written(const Contents& contents,
                                   const Tensor& tensor,
                                   std::uint64_t begin,
                                   std::uint64_t count) {
  const auto element = static_cast<std::size_t>(DtypeBytes(tensor.dtype));
  std::vector<std::byte> bytes(count * element, std::byte{0xEE});
  contents.Write(tensor, begin, count, bytes);
  std::vector<std::uint64_t> bits(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(&bits[i], bytes.data() + i * element, element);
  }
  return bits;
}

using Bits = std::vector<std::uint64_t>;

TEST_CASE("an index is exact in every dtype, up to where its numbers wrap", "[wbctl]") {
  struct Row {
    Dtype dtype;
    std::uint64_t begin;  // version 0: the first value
    Bits bits;
  };
  const auto row = GENERATE(values<Row>({
      // 0.0, 1.0, 2.0, 3.0, 4.0
      {Dtype::kFp64, 0, {0, 0x3FF0000000000000, 0x4000000000000000, 0x4008000000000000}},
      {Dtype::kFp32, 0, {0, 0x3F800000, 0x40000000, 0x40400000, 0x40800000}},
      {Dtype::kFp16, 0, {0, 0x3C00, 0x4000, 0x4200, 0x4400}},
      {Dtype::kBf16, 0, {0, 0x3F80, 0x4000, 0x4040, 0x4080}},
      {Dtype::kFp8E4m3, 0, {0, 0x38, 0x40, 0x44, 0x48, 0x4A, 0x4C, 0x4E, 0x50}},
      {Dtype::kFp8E5m2, 0, {0, 0x3C, 0x40, 0x42, 0x44, 0x45, 0x46, 0x47, 0}},
      // the largest, then zero again
      {Dtype::kFp64, (1ULL << 53) - 1, {0x433FFFFFFFFFFFFF, 0}},
      {Dtype::kFp32, (1ULL << 24) - 1, {0x4B7FFFFF, 0, 0x3F800000}},
      {Dtype::kFp16, 2047, {0x67FF, 0}},
      {Dtype::kBf16, 254, {0x437E, 0x437F, 0, 0x3F80}},
      {Dtype::kFp8E4m3, 15, {0x57, 0, 0x38}},
      {Dtype::kInt64, 0xFFFFFFFF, {0xFFFFFFFF, 0x100000000}},
      {Dtype::kInt32, 0xFFFFFFFF, {0xFFFFFFFF, 0, 1}},
      {Dtype::kInt16, 0x7FFF, {0x7FFF, 0x8000}},
      {Dtype::kInt8, 127, {0x7F, 0x80}},
      {Dtype::kUint8, 255, {0xFF, 0, 1}},
      {Dtype::kBool, 0, {0, 1, 0, 1}},
  }));
  const Tensor tensor{.name = "t", .dtype = row.dtype, .shape = {std::int64_t{1} << 60}};
  CAPTURE(std::string(DtypeName(row.dtype)));
  REQUIRE(Written(FillContents(Fill::kIndex, 0), tensor, row.begin, row.bits.size()) == row.bits);
}

TEST_CASE("a version is added to an index", "[wbctl]") {
  const Tensor tensor{.name = "t", .dtype = Dtype::kInt32, .shape = {2, 3}};
  REQUIRE(Written(FillContents(Fill::kIndex, 7), tensor, 0, 6) == Bits{7, 8, 9, 10, 11, 12});
}

TEST_CASE("a row's elements hold its first index and the version", "[wbctl]") {
  const Tensor tensor{.name = "t", .dtype = Dtype::kInt16, .shape = {3, 2, 2}};
  REQUIRE(Written(FillContents(Fill::kRow, 2), tensor, 0, 12) ==
          Bits{2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4});
  // from the middle of a row to the middle of another
  REQUIRE(Written(FillContents(Fill::kRow, 2), tensor, 3, 6) == Bits{2, 3, 3, 3, 3, 4});
}

TEST_CASE("a row of a 1-D tensor is one element", "[wbctl]") {
  const Tensor tensor{.name = "t", .dtype = Dtype::kBf16, .shape = {4}};
  REQUIRE(Written(FillContents(Fill::kRow, 0), tensor, 1, 3) == Bits{0x3F80, 0x4000, 0x4040});
}

TEST_CASE("a hash is the low bytes of XXH3 of the name, seeded by index and version", "[wbctl]") {
  const std::string name = GENERATE(as<std::string>{}, "w", "model.layers.0.mlp.gate_proj.weight",
                                    std::string(300, 'n'));
  const auto [dtype, mask] = GENERATE(table<Dtype, std::uint64_t>({{Dtype::kFp64, ~0ULL},
                                                                   {Dtype::kInt32, 0xFFFFFFFF},
                                                                   {Dtype::kBf16, 0xFFFF},
                                                                   {Dtype::kFp8E4m3, 0xFF},
                                                                   {Dtype::kBool, 1}}));
  const Tensor tensor{.name = name, .dtype = dtype, .shape = {100, 100}};
  Bits wanted;
  for (std::uint64_t index = 9990; index < 10000; ++index) {
    const std::uint64_t seed = index * 0x9E3779B97F4A7C15 + 3;
    wanted.push_back(XXH3_64bits_withSeed(name.data(), name.size(), seed) & mask);
  }
  REQUIRE(Written(FillContents(Fill::kHash, 3), tensor, 9990, 10) == wanted);
}

TEST_CASE("a run gives the same elements as its halves", "[wbctl]") {
  const Fill fill = GENERATE(Fill::kHash, Fill::kRow, Fill::kIndex);
  const Tensor tensor{.name = "t", .dtype = Dtype::kFp16, .shape = {7, 11}};
  const FillContents contents(fill, 5);
  const Bits whole = Written(contents, tensor, 0, 77);
  Bits halves = Written(contents, tensor, 0, 30);
  for (const std::uint64_t bits : Written(contents, tensor, 30, 47)) halves.push_back(bits);
  REQUIRE(whole == halves);
}

}  // namespace
}  // namespace wb
