#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/fuzz/convert_case.h"
#include "tests/fuzz/door_cases.h"
#include "tests/support/catch.h"
#include "tests/support/seed.h"

// Replays what the fuzzer starts from and what it has found. A case that goes wrong aborts: the
// last name printed is the culprit's.

namespace wb {
namespace {

std::vector<std::filesystem::path> Cases(const std::string& target) {
  std::vector<std::filesystem::path> cases;
  for (const auto& entry : std::filesystem::directory_iterator(WB_CORPUS_DIR "/" + target)) {
    cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

std::vector<std::uint8_t> BytesOf(const std::filesystem::path& path) {
  UNSCOPED_INFO(path.filename().string());
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> read{std::istreambuf_iterator<char>(file), {}};
  return {read.begin(), read.end()};
}

test::ConvertOutcome Replay(const std::filesystem::path& path) {
  return test::RunConvertCase(BytesOf(path));
}

struct Target {
  std::string name;
  int (*run)(std::span<const std::uint8_t>);
  std::string deepest;  // the seed that reaches farthest
  int accepted;         // of it, at least
};

TEST_CASE("Every case at the doors is refused or accepted whole, and seeds still reach far",
          "[fuzz]") {
  const auto [name, run, deepest, accepted] =
      GENERATE(values<Target>({{"chunk_header", &test::RunChunkHeaderCase, "chunk", 2},
                               {"cluster", &test::RunClusterCase, "offered", 6},
                               {"cluster", &test::RunClusterCase, "replies", 7},
                               {"options", &test::RunOptionsCase, "whole.yaml", 1},
                               {"worker_door", &test::RunWorkerDoorCase, "rollout", 4}}));
  CAPTURE(name, deepest);
  for (const std::filesystem::path& path : Cases(name)) {
    const int reached = run(BytesOf(path));
    if (path.filename() == deepest) CHECK(reached >= accepted);
  }
}

/// A seed with a few bytes changed, cut out, or repeated.
std::vector<std::uint8_t> Changed(std::vector<std::uint8_t> bytes, std::mt19937_64& rng) {
  for (std::uint64_t change = rng() % 4 + 1; change > 0 && !bytes.empty(); --change) {
    const std::size_t at = rng() % bytes.size();
    const std::size_t length = std::min<std::size_t>(rng() % 40 + 1, bytes.size() - at);
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto to = from + static_cast<std::ptrdiff_t>(length);
    if (rng() % 4 == 0) {
      bytes.erase(from, to);
    } else if (rng() % 4 == 0) {
      const std::vector<std::uint8_t> again(from, to);
      bytes.insert(from, again.begin(), again.end());
    } else {
      bytes[at] = static_cast<std::uint8_t>(rng());
    }
  }
  return bytes;
}

TEST_CASE("Seeds that are changed at random are refused or accepted whole", "[fuzz][property]") {
  const auto [name, run] = GENERATE(table<std::string, int (*)(std::span<const std::uint8_t>)>(
      {{"chunk_header", &test::RunChunkHeaderCase},
       {"cluster", &test::RunClusterCase},
       {"options", &test::RunOptionsCase},
       {"worker_door", &test::RunWorkerDoorCase}}));
  const std::vector<std::filesystem::path> cases = Cases(name);
  for (int round = 0; round < 200; ++round) {
    INFO("WB_TEST_SEED=" << test::RunSeed() << " " << name << " round " << round);
    std::mt19937_64 rng = test::TestRng(round);
    static_cast<void>(run(Changed(BytesOf(cases[rng() % cases.size()]), rng)));
  }
}

TEST_CASE("Every case of the corpus is refused or gives a valid plan", "[fuzz]") {
  const std::vector<std::filesystem::path> cases = Cases("convert");
  REQUIRE(cases.size() >= 20);
  for (const std::filesystem::path& path : cases) static_cast<void>(Replay(path));
}

TEST_CASE("The corpus reaches every door and the planner behind them", "[fuzz]") {
  test::ConvertOutcome reached;
  for (const std::filesystem::path& path : Cases("convert")) {
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
