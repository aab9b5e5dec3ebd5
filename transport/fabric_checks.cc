#include "transport/fabric_checks.h"

#include "absl/strings/str_format.h"

namespace wb {

absl::Status CheckSendSizes(const FabricTraits& traits,
                            std::uint64_t header_bytes,
                            std::uint64_t payload_bytes) {
  if (header_bytes > traits.max_header_bytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "fabric: the header has %d bytes, want at most %d", header_bytes, traits.max_header_bytes));
  }
  if (payload_bytes > traits.max_message_bytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("fabric: the payload has %d bytes, want at most %d", payload_bytes,
                        traits.max_message_bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::span<const std::byte>> ResolvePayload(const RegionTable& regions,
                                                          const MemoryRef& payload) {
  if (payload.bytes == 0) return std::span<const std::byte>();
  return regions.Resolve(payload);
}

absl::StatusOr<std::span<std::byte>> ResolveLanding(const RegionTable& regions,
                                                    const Landing& landing,
                                                    std::uint64_t announced) {
  if (landing.memory.bytes != announced) {
    return absl::InvalidArgumentError(
        absl::StrFormat("fabric: the landing has %d bytes, want the announced %d",
                        landing.memory.bytes, announced));
  }
  if (announced == 0) return std::span<std::byte>();
  return regions.ResolveWritable(landing.memory);
}

absl::Status NotHeld(AnnouncementId id) {
  return absl::NotFoundError(absl::StrFormat(
      "fabric: announcement %d is not held, or ended with its endpoint", id.value()));
}

}  // namespace wb
