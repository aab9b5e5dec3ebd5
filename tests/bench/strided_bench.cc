// Strided copy on one thread against memcpy of as many bytes: 64 MiB gathered from runs that are as
// far apart as they are long. Prints a line per length of a run: its bytes, then GB/s of the copy
// and of the memcpy beside it, medians of pairs that take turns.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "transport/copy/byte_runs.h"

namespace wb {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{64} << 20;  // far more than a cache holds
constexpr std::size_t kRounds = 9;

double RateOf(const std::function<void()>& copy) {
  const auto start = std::chrono::steady_clock::now();
  copy();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return static_cast<double>(kBytes) / took.count() / 1e9;
}

double Median(std::array<double, kRounds> values) {
  std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
  return values[kRounds / 2];
}

void Print(std::uint64_t run) {
  const std::vector<std::byte> memory(2 * kBytes, std::byte{1});
  std::vector<std::byte> packed(kBytes);
  const ByteBlock block{0, run, {{kBytes / run, 2 * run}}};
  std::array<double, kRounds> gathered{};
  std::array<double, kRounds> copied{};
  for (std::size_t round = 0; round < kRounds; ++round) {
    gathered[round] = RateOf([&] { Gather(memory, block, 0, packed); });
    copied[round] = RateOf([&] { std::memcpy(packed.data(), memory.data(), kBytes); });
  }
  std::printf("%llu %.3f %.3f\n", static_cast<unsigned long long>(run), Median(gathered),
              Median(copied));
}

}  // namespace
}  // namespace wb

int main() {
  for (std::uint64_t run = 128; run <= (std::uint64_t{16} << 20); run *= 8) {
    wb::Print(run);
  }
  wb::Print(std::uint64_t{16} << 20);
  return 0;
}
