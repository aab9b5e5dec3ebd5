#include "client/wbctl/process/footprint.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace wb {

absl::StatusOr<Footprint> FootprintOf(pid_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  Footprint footprint;
  bool found = false;
  std::ifstream status(folder + "/status");
  for (std::string name; status >> name;) {
    if (name == "RssAnon:") {
      std::uint64_t kib = 0;
      found = static_cast<bool>(status >> kib);
      footprint.rss_anon_bytes = kib * 1024;
      break;
    }
    std::getline(status, name);
  }
  std::ifstream maps(folder + "/maps");
  for (std::string range, mode, offset, device, inode, rest;
       maps >> range >> mode >> offset >> device >> inode && std::getline(maps, rest);) {
    if (inode != "0") ++footprint.mappings;
  }
  std::error_code error;
  const std::filesystem::directory_iterator descriptors(folder + "/fd", error);
  if (!found || error) {
    return absl::NotFoundError(absl::StrCat("process ", pid, " cannot be looked at in /proc"));
  }
  footprint.descriptors =
      static_cast<std::uint64_t>(std::distance(descriptors, std::filesystem::directory_iterator()));
  return footprint;
}

}  // namespace wb
