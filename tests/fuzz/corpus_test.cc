#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/convert_case.h"
#include "tests/support/catch.h"

// Replays what the fuzzer starts from and what it has found. A case that goes wrong aborts: the
// last name printed is the culprit's.

namespace wb {
namespace {

std::vector<std::filesystem::path> Cases() {
  std::vector<std::filesystem::path> cases;
  for (const auto& entry : std::filesystem::directory_iterator(WB_CORPUS_DIR "/convert")) {
    cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

test::ConvertOutcome Replay(const std::filesystem::path& path) {
  UNSCOPED_INFO(path.filename().string());
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> read{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::uint8_t> bytes(read.begin(), read.end());
  return test::RunConvertCase(bytes);
}

TEST_CASE("Every case of the corpus is refused or gives a valid plan", "[fuzz]") {
  const std::vector<std::filesystem::path> cases = Cases();
  REQUIRE(cases.size() >= 20);
  for (const std::filesystem::path& path : cases) static_cast<void>(Replay(path));
}

TEST_CASE("The corpus reaches every door and the planner behind them", "[fuzz]") {
  test::ConvertOutcome reached;
  for (const std::filesystem::path& path : Cases()) {
    const test::ConvertOutcome outcome = Replay(path);
    reached.layout = reached.layout || outcome.layout;
    reached.file = reached.file || outcome.file;
    reached.part = reached.part || outcome.part;
    reached.plans += outcome.plans;
  }
  CHECK(reached.layout);
  CHECK(reached.file);
  CHECK(reached.part);
  CHECK(reached.plans >= 5);
}

TEST_CASE("The complete example of the design, cut anywhere, is refused or passes", "[fuzz]") {
  std::ifstream file(WB_CORPUS_DIR "/convert/gqa.json", std::ios::binary);
  const std::vector<char> read{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::uint8_t> bytes(read.begin(), read.end());
  REQUIRE(bytes.size() > 1000);
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    CHECK_FALSE(test::RunConvertCase(std::span(bytes).first(size)).file);
  }
}

}  // namespace
}  // namespace wb
