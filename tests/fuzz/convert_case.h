#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wb::test {

/// What the bytes came to, for tests that want to know that a seed still reaches so far.
struct ConvertOutcome {
  bool layout = false;  // they are a layout of the wire that the door accepts
  bool file = false;    // they are a layout file that the door accepts
  bool part = false;    // they are a plan part that the door accepts
  int plans = 0;        // jobs made of them for which the planner gave a plan
};

/// Takes the bytes for a v1::Layout, for a v1::Plan and for a layout file's text; whatever the
/// door accepts must survive the way to the wire and back, and goes on to the planner, whose plan
/// must be valid. Aborts where that is not so: a fuzzer's crash, a test's failure.
ConvertOutcome RunConvertCase(std::span<const std::uint8_t> bytes);

}  // namespace wb::test
