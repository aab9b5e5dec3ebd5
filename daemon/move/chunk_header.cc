#include "daemon/move/chunk_header.h"

#include <xxhash.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace wb {
namespace {

constexpr std::uint32_t kMagic = 0x314B4257;  // "WBK1"
constexpr std::uint16_t kVersion = 1;
constexpr std::uint8_t kHasChecksum = 1;

// Offsets of the fields. What lies between is zero.
constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kVersionAt = 4;
constexpr std::size_t kKindAt = 6;
constexpr std::size_t kFlagsAt = 7;
constexpr std::size_t kAttemptAt = 8;
constexpr std::size_t kSenderAt = 16;
constexpr std::size_t kStreamAt = 24;
constexpr std::size_t kChunkAt = 28;
constexpr std::size_t kBytesAt = 32;
constexpr std::size_t kChecksumAt = 40;
constexpr std::size_t kSealAt = 56;

template <typename T>
void Put(ChunkHeader::Wire& wire, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    wire[at + i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
}

template <typename T>
T Get(std::span<const std::byte> wire, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<std::uint64_t>(wire[at + i]) << (8 * i);
  }
  return static_cast<T>(value);
}

std::uint64_t Seal(std::span<const std::byte> wire) {
  return XXH3_64bits(wire.data(), kSealAt);
}

}  // namespace

ChunkHeader::Wire EncodeHeader(const ChunkHeader& header) {
  ChunkHeader::Wire wire{};
  Put(wire, kMagicAt, kMagic);
  Put(wire, kVersionAt, kVersion);
  Put(wire, kKindAt, static_cast<std::uint8_t>(header.kind));
  Put(wire, kFlagsAt, header.has_checksum ? kHasChecksum : std::uint8_t{0});
  Put(wire, kAttemptAt, header.attempt.value());
  Put(wire, kSenderAt, header.sender.value());
  Put(wire, kStreamAt, header.stream);
  Put(wire, kChunkAt, header.chunk);
  Put(wire, kBytesAt, header.bytes);
  Put(wire, kChecksumAt, header.checksum);
  Put(wire, kSealAt, Seal(wire));
  return wire;
}

absl::StatusOr<ChunkHeader> DecodeHeader(std::span<const std::byte> wire) {
  if (wire.size() != ChunkHeader::kBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk header: ", wire.size(), " bytes, want ", ChunkHeader::kBytes));
  }
  if (const auto magic = Get<std::uint32_t>(wire, kMagicAt); magic != kMagic) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk header: magic ", absl::Hex(magic), ", want ", absl::Hex(kMagic)));
  }
  if (const auto version = Get<std::uint16_t>(wire, kVersionAt); version != kVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk header: version ", version, ", want ", kVersion));
  }
  if (Get<std::uint64_t>(wire, kSealAt) != Seal(wire)) {
    return absl::InvalidArgumentError("chunk header: damaged, its seal does not fit");
  }
  const auto kind = Get<std::uint8_t>(wire, kKindAt);
  if (kind != static_cast<std::uint8_t>(MessageKind::kHello) &&
      kind != static_cast<std::uint8_t>(MessageKind::kChunk)) {
    return absl::InvalidArgumentError(absl::StrCat("chunk header: unknown kind ", kind));
  }
  const auto flags = Get<std::uint8_t>(wire, kFlagsAt);
  if ((flags & ~kHasChecksum) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("chunk header: unknown flags ", flags));
  }
  ChunkHeader header;
  header.kind = static_cast<MessageKind>(kind);
  header.has_checksum = (flags & kHasChecksum) != 0;
  header.attempt = AttemptId(Get<std::uint64_t>(wire, kAttemptAt));
  header.sender = Incarnation(Get<std::uint64_t>(wire, kSenderAt));
  header.stream = Get<std::uint32_t>(wire, kStreamAt);
  header.chunk = Get<std::uint32_t>(wire, kChunkAt);
  header.bytes = Get<std::uint64_t>(wire, kBytesAt);
  header.checksum = Get<std::uint64_t>(wire, kChecksumAt);
  return header;
}

}  // namespace wb
