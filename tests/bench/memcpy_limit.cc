// Prints how fast one thread copies BYTES of touched memory with memcpy, in GB/s: the limit that
// other figures of the same run are compared with.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

int main(int argc, char** argv) {
  const unsigned long long bytes = argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (bytes == 0 || bytes > (8ULL << 30)) {
    std::fprintf(stderr, "usage: memcpy_limit BYTES (1 to 8 GiB)\n");
    return 3;
  }
  const std::vector<char> from(bytes, 1);
  std::vector<char> into(bytes, 0);
  const auto start = std::chrono::steady_clock::now();
  std::memcpy(into.data(), from.data(), bytes);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (into.back() != 1) return 1;  // also keeps the copy from being optimised away
  std::printf("%.3f\n", static_cast<double>(bytes) / took.count() / 1e9);
  return 0;
}
