// What a copy could reach: GB/s of memcpy over as many bytes as a benchmark moves, each thread its
// own part, both buffers touched before.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  const unsigned long long bytes = argc == 3 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const unsigned long long threads = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (bytes == 0 || bytes > (8ULL << 30) || threads == 0 || threads > 64) {
    std::fprintf(stderr, "usage: memcpy_limit BYTES (1 to 8 GiB) THREADS (1 to 64)\n");
    return 3;
  }
  const std::vector<char> from(bytes, 1);
  std::vector<char> into(bytes, 0);
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> running;
  for (unsigned long long i = 0; i < threads; ++i) {
    const unsigned long long begin = bytes * i / threads;
    const unsigned long long end = bytes * (i + 1) / threads;
    running.emplace_back([&, begin, end] { std::memcpy(&into[begin], &from[begin], end - begin); });
  }
  for (std::thread& thread : running) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (into.back() != 1) return 1;  // also keeps the copy from being optimised away
  std::printf("%.3f\n", static_cast<double>(bytes) / took.count() / 1e9);
  return 0;
}
