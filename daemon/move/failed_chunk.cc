#include "daemon/move/failed_chunk.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace wb {
namespace {

constexpr absl::string_view kPayload = "weightbridge.chunk";  // "stream/chunk"

}  // namespace

absl::Status WithFailedChunk(absl::Status status, const FailedChunk& chunk) {
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(chunk.stream, "/", chunk.chunk)));
  return status;
}

std::pair<absl::Status, std::optional<FailedChunk>> TakeFailedChunk(absl::Status status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return {std::move(status), std::nullopt};
  const std::vector<std::string> numbers = absl::StrSplit(std::string(*payload), '/');
  FailedChunk chunk;
  const bool read = numbers.size() == 2 && absl::SimpleAtoi(numbers[0], &chunk.stream) &&
                    absl::SimpleAtoi(numbers[1], &chunk.chunk);
  status.ErasePayload(kPayload);
  return {std::move(status), read ? std::optional(chunk) : std::nullopt};
}

}  // namespace wb
