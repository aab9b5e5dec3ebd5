#include "transport/ucx/host_identity.h"

#include <fstream>
#include <span>
#include <string>

#include <sys/stat.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "planner/base/status_macros.h"
#include "transport/copy/checksum.h"

namespace wb {
namespace {

constexpr char kBootId[] = "/proc/sys/kernel/random/boot_id";

/// Device and inode of a namespace: its identity within a boot.
absl::StatusOr<std::string> NamespaceOf(const char* path) {
  struct stat status {};
  if (stat(path, &status) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("host identity: cannot read ", path));
  }
  return absl::StrCat(status.st_dev, "/", status.st_ino);
}

}  // namespace

absl::StatusOr<std::uint64_t> HostIdentity() {
  std::string boot;
  if (!std::getline(std::ifstream(kBootId), boot) || boot.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("host identity: cannot read ", kBootId));
  }
  WB_ASSIGN_OR_RETURN(const std::string ipc, NamespaceOf("/proc/self/ns/ipc"));
  WB_ASSIGN_OR_RETURN(const std::string pid, NamespaceOf("/proc/self/ns/pid"));
  const std::string all = absl::StrCat(boot, " ", ipc, " ", pid);
  const std::uint64_t identity = Checksum(std::as_bytes(std::span(all.data(), all.size())));
  return identity == 0 ? 1 : identity;
}

}  // namespace wb
