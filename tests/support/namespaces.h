#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include <sys/mount.h>

#include <sched.h>

#include "tests/support/catch.h"
#include "tests/support/in_child.h"

namespace wb::test {

/// Whether this process may make namespaces of these kinds (CLONE_NEWPID, ...), with mounts of
/// their own where CLONE_NEWNS is among them. Where it may not (no root, a container without the
/// capability, a root folder that is no mount), a warning says why the test is skipped.
inline bool MayMakeNamespaces(int kinds) {
  const std::string refused = InChild([kinds] {
    const bool made = ::unshare(kinds) == 0;
    const bool own = made && ((kinds & CLONE_NEWNS) == 0 ||
                              ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
    return std::string(own ? "" : std::strerror(errno));
  });
  if (refused.empty()) return true;
  WARN("skipped: no such namespaces can be made here: " << refused);
  return false;
}

}  // namespace wb::test
