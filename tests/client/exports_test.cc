#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "tests/client/client_fixture.h"
#include "tests/support/catch.h"

extern "C" int wb_test_c_program(void);
extern "C" int wb_test_cpp17_program(const char* socket);

namespace wb::test {
namespace {

std::vector<std::string> LinesOf(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"),
                                                             &::pclose);
  REQUIRE(pipe != nullptr);
  std::vector<std::string> lines;
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), line.size(), pipe.get()) != nullptr)
    lines.emplace_back(line.data());
  return lines;
}

/// The first group of `pattern` in each line that has it, sorted.
std::vector<std::string> Matches(const std::vector<std::string>& lines,
                                 const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (const std::string& line : lines) {
    std::smatch match;
    if (std::regex_search(line, match, regex)) found.push_back(match[1]);
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST_CASE("the library exports what exports.map lists, and nothing else", "[client]") {
  std::ifstream map(WB_EXPORTS_MAP);
  std::vector<std::string> lines;
  for (std::string line; std::getline(map, line);) lines.push_back(line);
  const std::vector<std::string> listed = Matches(lines, "^    (wb_[a-z0-9_]+);$");
  REQUIRE(listed.size() > 20);
  const std::vector<std::string> exported =
      Matches(LinesOf("nm -D --defined-only " WB_CLIENT_LIBRARY), " [A-Za-z] ([^@\\s]+)@@");
  CHECK(exported == listed);
  CHECK(
      Matches(LinesOf("nm -D --defined-only " WB_CLIENT_LIBRARY), " [TWVBDR] ([^@\\s]+)$").empty());
}

TEST_CASE("the library needs protobuf and the C++ runtime, and nothing else", "[client]") {
  const std::vector<std::string> needed =
      Matches(LinesOf("readelf -d " WB_CLIENT_LIBRARY), "NEEDED.*\\[([^\\]]+)\\]");
  REQUIRE_FALSE(needed.empty());
  // The dynamic linker itself gives each thread its last error.
  const std::regex allowed(
      "(libprotobuf|libstdc\\+\\+|libgcc_s|libm|libc|ld-linux-[a-z0-9-]+)\\.so\\.[0-9]+");
  for (const std::string& name : needed) {
    INFO(name);
    CHECK(std::regex_match(name, allowed));
  }
  const std::vector<std::string> soname =
      Matches(LinesOf("readelf -d " WB_CLIENT_LIBRARY), "SONAME.*\\[([^\\]]+)\\]");
  REQUIRE(soname.size() == 1);
  CHECK(std::regex_match(soname[0], std::regex("libweightbridge\\.so\\.[0-9]+")));
}

TEST_CASE("a C11 program and a C++17 program without exceptions can use the library", "[client]") {
  CHECK(wb_test_c_program() == 0);
  CHECK(wb_test_cpp17_program("/nowhere/worker.sock") == WB_UNAVAILABLE);
}

TEST_CASE("the library registers nothing with protobuf: this program has the same messages",
          "[client]") {
  // Two copies of worker.proto in one process would have ended it before main.
  CHECK(v1::ClientMessage::descriptor()->full_name() == "weightbridge.v1.ClientMessage");
  CHECK(std::string(wb_library_version()).size() >= 5);
}

}  // namespace
}  // namespace wb::test
