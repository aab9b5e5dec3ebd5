#include <cstddef>
#include <cstdint>

#include "tests/fuzz/convert_case.h"

// libFuzzer's entry: build/fuzz/bin/convert_fuzz tests/fuzz/corpus/convert
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_cast<void>(wb::test::RunConvertCase({data, size}));
  return 0;
}
