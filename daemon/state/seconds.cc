#include "daemon/state/seconds.h"

#include "absl/strings/str_format.h"

namespace wb {

std::string Seconds(std::chrono::steady_clock::duration duration) {
  return absl::StrFormat("%.1f s", std::chrono::duration<double>(duration).count());
}

}  // namespace wb
