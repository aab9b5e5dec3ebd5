// Updates under random failures: `system_chaos --seconds N [--seed S]` (scripts/chaos builds and
// runs it). Prints the seed first and one line of result last; exits 0 only if all was as promised.

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <random>
#include <string>

#include <CLI/CLI.hpp>

#include "tests/system/failures/chaos_run.h"

namespace {

int Chaos(std::uint64_t seed, std::chrono::seconds length) {
  std::cout << "chaos: seed " << seed << std::endl;
  wb::test::ChaosRun run(seed);
  const std::string fault = run.Run(length);
  if (!fault.empty()) {
    std::cout << fault << "\nchaos: NOT CLEAN: seed " << seed << ": "
              << fault.substr(0, fault.find('\n')) << "; " << run.Summary() << std::endl;
    return 1;
  }
  std::cout << "chaos: clean: seed " << seed << ", " << length.count() << " s: " << run.Summary()
            << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"updates under random failures"};
  std::int64_t seconds = 0;
  std::optional<std::uint64_t> seed;
  app.add_option("--seconds", seconds, "how long")->required()->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "repeats the faults of a run");
  CLI11_PARSE(app, argc, argv);
  try {
    return Chaos(seed.value_or(std::random_device{}()), std::chrono::seconds(seconds));
  } catch (const std::exception& error) {
    std::cout << "chaos: NOT CLEAN: " << error.what() << std::endl;
    return 1;
  }
}
