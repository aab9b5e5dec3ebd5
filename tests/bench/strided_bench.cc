// What chunks cost one thread, against memcpy of as many bytes: 64 MiB gathered from runs that are
// as far apart as they are long, and summed. Prints a line each: what it is, then GB/s of it and of
// the memcpy beside it, medians of pairs that take turns, with tabs between.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "transport/copy/byte_runs.h"
#include "transport/copy/checksum.h"

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

void Print(const std::string& name, const std::function<void()>& work) {
  const std::vector<std::byte> from(kBytes, std::byte{1});
  std::vector<std::byte> to(kBytes, std::byte{2});
  std::array<double, kRounds> worked{};
  std::array<double, kRounds> copied{};
  for (std::size_t round = 0; round < kRounds; ++round) {
    worked[round] = RateOf(work);
    copied[round] = RateOf([&] { std::memcpy(to.data(), from.data(), kBytes); });
  }
  std::printf("%s\t%.3f\t%.3f\n", name.c_str(), Median(worked), Median(copied));
}

void PrintGather(std::uint64_t run) {
  const std::vector<std::byte> memory(2 * kBytes, std::byte{1});
  std::vector<std::byte> packed(kBytes);
  const ByteBlock block{0, run, {{kBytes / run, 2 * run}}};
  Print("gather, runs of " + std::to_string(run) + " B", [&] { Gather(memory, block, 0, packed); });
}

void PrintChecksum() {
  const std::vector<std::byte> memory(kBytes, std::byte{1});
  std::uint64_t sum = 0;
  Print("checksum", [&] { sum += Checksum(memory); });
  if (sum == 0) std::abort();  // keeps it from being optimised away
}

}  // namespace
}  // namespace wb

int main() {
  for (const std::uint64_t run : {128, 1024, 8192, 65536, 1 << 20}) wb::PrintGather(run);
  wb::PrintChecksum();
  return 0;
}
