#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

#include "planner/model/ids.h"

namespace wb {

enum class MessageKind : std::uint8_t {
  kHello = 1,  // opens a lane: wires the connection up before the first chunk, carries nothing
  kChunk = 2,
};

/// What travels in front of each payload between movers. Plain value.
///
/// On the wire: kBytes bytes, little endian, sealed with a hash, so that a damaged header is
/// refused before anything is believed. The seal is no protection against a peer that lies: whoever
/// receives checks every field against what the attempt expects.
struct ChunkHeader {
  static constexpr std::size_t kBytes = 64;
  using Wire = std::array<std::byte, kBytes>;

  MessageKind kind = MessageKind::kChunk;
  bool has_checksum = false;
  AttemptId attempt;
  Incarnation sender;
  std::uint32_t stream = 0;
  std::uint32_t chunk = 0;
  std::uint64_t bytes = 0;  // of the payload
  std::uint64_t checksum = 0;
  friend bool operator==(const ChunkHeader&, const ChunkHeader&) = default;
};

[[nodiscard]] ChunkHeader::Wire EncodeHeader(const ChunkHeader& header);

/// INVALID_ARGUMENT names the field that is not as this version writes it.
[[nodiscard]] absl::StatusOr<ChunkHeader> DecodeHeader(std::span<const std::byte> wire);

}  // namespace wb
