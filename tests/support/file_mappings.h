#pragma once

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>

#include <sys/stat.h>

#include "tests/support/catch.h"

namespace wb::test {

/// How many mappings of the file behind `fd` a process has, as its /proc/PID/maps shows them.
inline std::size_t MappingsOf(int fd, const std::string& pid = "self") {
  struct stat info {};
  REQUIRE(fstat(fd, &info) == 0);
  std::ifstream maps("/proc/" + pid + "/maps");
  REQUIRE(maps.good());
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long inode = 0;
    const bool read = std::sscanf(line.c_str(), "%*x-%*x %*s %*x %*x:%*x %lu", &inode) == 1;
    if (read && inode == info.st_ino) ++count;
  }
  return count;
}

}  // namespace wb::test
