#include <cstddef>
#include <cstdint>

#include "tests/fuzz/convert_case.h"
#include "tests/fuzz/door_cases.h"

// libFuzzer's entry to the case that this program is compiled for:
// build/fuzz/bin/convert_fuzz tests/fuzz/corpus/convert
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_cast<void>(wb::test::WB_FUZZ_CASE({data, size}));
  return 0;
}
