#include "daemon/rpc/cluster/parts.h"

#include "absl/strings/str_cat.h"

namespace wb {

absl::Status AddPart(std::uint64_t offset,
                     std::string_view part,
                     std::uint64_t most,
                     std::string& bytes) {
  if (part.empty() || part.size() > kPartBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a part of ", part.size(), " bytes, want 1..", kPartBytes));
  }
  if (offset != bytes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a part from byte ", offset, ", want ",
                                                   bytes.size(),
                                                   ": parts are missing or out of order"));
  }
  if (part.size() > most - bytes.size()) {
    return absl::ResourceExhaustedError(absl::StrCat("parts of ", bytes.size() + part.size(),
                                                     " bytes, at most ", most, " were to come"));
  }
  bytes.append(part);
  return absl::OkStatus();
}

}  // namespace wb
