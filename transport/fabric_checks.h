#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "transport/fabric.h"
#include "transport/memory/region.h"

namespace wb {

// The checks that every fabric makes of its callers' arguments, and their texts. Pure.

/// INVALID_ARGUMENT when header or payload are longer than `traits` allow.
absl::Status CheckSendSizes(const FabricTraits& traits,
                            std::uint64_t header_bytes,
                            std::uint64_t payload_bytes);

/// The bytes to send; nothing is looked up for an empty payload.
absl::StatusOr<std::span<const std::byte>> ResolvePayload(const RegionTable& regions,
                                                          const MemoryRef& payload);

/// The bytes that `announced` bytes land in; nothing is looked up for no bytes.
absl::StatusOr<std::span<std::byte>> ResolveLanding(const RegionTable& regions,
                                                    const Landing& landing,
                                                    std::uint64_t announced);

/// NOT_FOUND: what Accept and Refuse answer when there is no such announcement to decide.
absl::Status NotHeld(AnnouncementId id);

}  // namespace wb
