#include "client/wbctl/contents/safetensors.h"

#include <string>
#include <variant>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/temp_folder.h"

namespace wb {
namespace {

using test::SafetensorsBytes;
using test::TempFolder;

std::vector<SafetensorsEntry> Accepted(const std::string& header, std::uint64_t data_bytes) {
  auto parsed = ParseSafetensorsHeader(header, data_bytes, "f");
  if (const auto* refusals = std::get_if<Refusals>(&parsed)) FAIL(refusals->front().text);
  return std::get<std::vector<SafetensorsEntry>>(parsed);
}

std::string Refused(const std::string& header, std::uint64_t data_bytes) {
  const auto parsed = ParseSafetensorsHeader(header, data_bytes, "f");
  REQUIRE(std::holds_alternative<Refusals>(parsed));
  std::string text;
  for (const Refusal& refusal : std::get<Refusals>(parsed)) text += refusal.text + "\n";
  return text;
}

std::string RefusedFile(const std::string& bytes) {
  const TempFolder scratch;
  const auto opened = SafetensorsFile::Open(scratch.Write("m.safetensors", bytes));
  REQUIRE(std::holds_alternative<Refusals>(opened));
  return std::get<Refusals>(opened).front().text;
}

const char* const kGood =
    R"({"__metadata__":{"format":"pt"},
        "w":{"dtype":"F32","shape":[2,3],"data_offsets":[2,26]},
        "s":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},
        "e":{"dtype":"I8","shape":[0,4],"data_offsets":[26,26]}}   )";

TEST_CASE("a header's tensors come in the order of their bytes", "[wbctl]") {
  const std::vector<SafetensorsEntry> entries = Accepted(kGood, 26);
  REQUIRE(entries ==
          std::vector<SafetensorsEntry>{
              {.name = "s", .dtype = Dtype::kBf16, .shape = {}, .begin = 0, .end = 2},
              {.name = "w", .dtype = Dtype::kFp32, .shape = {2, 3}, .begin = 2, .end = 26},
              {.name = "e", .dtype = Dtype::kInt8, .shape = {0, 4}, .begin = 26, .end = 26}});
}

TEST_CASE("every dtype of a layout is read by its name in a checkpoint", "[wbctl]") {
  const auto [name, dtype] = GENERATE(table<std::string, Dtype>({{"F64", Dtype::kFp64},
                                                                 {"F32", Dtype::kFp32},
                                                                 {"F16", Dtype::kFp16},
                                                                 {"BF16", Dtype::kBf16},
                                                                 {"F8_E4M3", Dtype::kFp8E4m3},
                                                                 {"F8_E5M2", Dtype::kFp8E5m2},
                                                                 {"I64", Dtype::kInt64},
                                                                 {"I32", Dtype::kInt32},
                                                                 {"I16", Dtype::kInt16},
                                                                 {"I8", Dtype::kInt8},
                                                                 {"U8", Dtype::kUint8},
                                                                 {"BOOL", Dtype::kBool}}));
  const auto bytes = static_cast<std::uint64_t>(3 * DtypeBytes(dtype));
  const std::string header = R"({"t":{"dtype":")" + name + R"(","shape":[3],"data_offsets":[0,)" +
                             std::to_string(bytes) + "]}}";
  REQUIRE(Accepted(header, bytes).front().dtype == dtype);
}

TEST_CASE("a damaged header is refused with the tensor, the value and what was wanted", "[wbctl]") {
  struct Damage {
    std::string header;
    std::uint64_t data_bytes;
    std::string text;
  };
  const auto damage = GENERATE(values<Damage>({
      {R"([1])", 0, "the header does not begin with '{'"},
      {R"({"a":)", 0, "of the header is not JSON"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} x)", 4, "is not JSON"},
      {R"({"a":{"dtype":"U16","shape":[1],"data_offsets":[0,2]}})", 2,
       "tensor a: dtype U16 is unknown, want one of F64 F32"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
           "a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "key a occurs twice"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4,
       "tensor a, dtype: key dtype occurs twice"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "tensor a: has no dtype, shape or data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, "unknown key x"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4,
       "tensor a, shape: -1 found"},
      {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, "1.5 found"},
      {R"({"a":{"dtype":4,"shape":[1],"data_offsets":[0,4]}})", 4, "tensor a, dtype: 4 found"},
      {R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4, "a list found"},
      {R"({"a":{"dtype":"F32","shape":null,"data_offsets":[0,4]}})", 4, "null found"},
      {R"({"a":7})", 0, "header, at a: 7 found, want an object for each tensor"},
      {R"({"__metadata__":{"n":1}})", 0, "__metadata__: 1 found, want strings only"},
      {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4,
       "tensor a, shape: more than 8 numbers"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4,
       "tensor a, data_offsets: more than 2 numbers"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4,
       "tensor a: data_offsets hold 1 numbers, want 2"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8,
       "tensor a: data_offsets [8, 0) end before they begin"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7,
       "tensor a: data_offsets [0, 8) are out of range: the file holds 7 bytes of data"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8,
       "tensor a: data_offsets [0, 8) are 8 bytes, want 12 for F32 and shape [3]"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", 8,
       "tensor a: shape [4294967296,4294967296] has more bytes than fit 63 bits"},
      {R"({"a":{"dtype":"I8","shape":[18446744073709551615],"data_offsets":[0,8]}})", 8,
       "tensor a: extent 18446744073709551615 does not fit 63 bits"},
      {R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},
           "b":{"dtype":"I8","shape":[4],"data_offsets":[3,7]}})",
       7, "tensor b: data_offsets [3, 7) overlap those of a, [0, 4)"},
      {R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},
           "b":{"dtype":"I8","shape":[2],"data_offsets":[6,8]}})",
       8, "bytes [4, 6) before tensor b belong to no tensor"},
      {R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}})", 6,
       "bytes [4, 6) at the end of the data belong to no tensor"},
      {R"({})", 1, "bytes [0, 1) at the end of the data belong to no tensor"},
  }));
  CAPTURE(damage.header);
  REQUIRE_THAT(Refused(damage.header, damage.data_bytes), Catch::Contains(damage.text));
}

TEST_CASE("every damaged tensor of a header is named, not the first alone", "[wbctl]") {
  const std::string text = Refused(
      R"({"a":{"dtype":"U64","shape":[1],"data_offsets":[0,8]},
          "b":{"dtype":"I8","shape":[4],"data_offsets":[8,99]}})",
      12);
  REQUIRE_THAT(text, Catch::Contains("tensor a: dtype U64") && Catch::Contains("tensor b: data"));
}

TEST_CASE("a header nested without end is refused where it leaves the format", "[wbctl]") {
  REQUIRE_THAT(Refused(R"({"a":{"shape":)" + std::string(1'000'000, '['), 0),
               Catch::Contains("tensor a, shape: a list found"));
}

TEST_CASE("a file is mapped whole, with its head as it is", "[wbctl]") {
  const TempFolder scratch;
  const std::string bytes = SafetensorsBytes(kGood, std::string(2, 's') + std::string(24, 'w'));
  const auto opened = SafetensorsFile::Open(scratch.Write("m.safetensors", bytes));
  REQUIRE(std::holds_alternative<SafetensorsFile>(opened));
  const SafetensorsFile& file = std::get<SafetensorsFile>(opened);
  REQUIRE(file.head().size() == bytes.size() - 26);
  REQUIRE(file.elements(file.entries()[1]).size() == 24);
  REQUIRE(file.elements(file.entries()[1])[0] == std::byte{'w'});
}

TEST_CASE("a truncated file is refused, wherever it ends", "[wbctl]") {
  const std::string whole = SafetensorsBytes(kGood, std::string(26, 'x'));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    CAPTURE(bytes);
    REQUIRE_THAT(RefusedFile(whole.substr(0, bytes)), Catch::Contains("truncated"));
  }
}

TEST_CASE("a header longer than the format allows is refused without reading it", "[wbctl]") {
  std::string bytes("\xFF\xE0\xF5\x05\0\0\0\0{}", 10);  // 99,999,999 + 256
  REQUIRE_THAT(RefusedFile(bytes), Catch::Contains("bytes long"));
  bytes.replace(0, 8, std::string(8, '\xFF'));
  REQUIRE_THAT(RefusedFile(bytes), Catch::Contains("want at most 100000000"));
}

TEST_CASE("what is no regular file is refused by its name", "[wbctl]") {
  const auto missing = SafetensorsFile::Open("/nonexistent/m.safetensors");
  REQUIRE_THAT(std::get<Refusals>(missing).front().text,
               Catch::Contains("cannot open /nonexistent/m.safetensors"));
  const auto device = SafetensorsFile::Open("/dev/null");
  REQUIRE_THAT(std::get<Refusals>(device).front().text,
               Catch::Contains("no regular file") || Catch::Contains("not a regular"));
}

}  // namespace
}  // namespace wb
