#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "transport/fabric.h"

namespace wb {

/// The active messages of a UCX fabric. A kMessage carries what Send was given; the receiving
/// fabric answers each with a kAnswer once it has taken or refused it, so that a refusal reaches
/// the sender by whatever protocol UCX moved the payload, and a window of sends bounds what the
/// receiver holds. A kProbe is a fabric's own, to itself.
enum class WireKind : unsigned { kMessage = 1, kAnswer = 2, kProbe = 3 };

/// Before the caller's header in a kMessage, and before the text in a kAnswer.
struct WirePrefix {
  std::uint64_t nonce = 0;    // of the fabric that was connected to, both ways
  std::uint64_t message = 0;  // the sender's number of the message
  std::uint64_t code = 0;     // absl::StatusCode of an answer; 0 in a message
};

inline constexpr std::size_t kWirePrefixBytes = 24;
inline constexpr std::size_t kMaxAnswerTextBytes = 128;
inline constexpr std::size_t kMaxWireHeaderBytes = kWirePrefixBytes + kMaxHeaderBytes;
static_assert(kMaxAnswerTextBytes <= kMaxHeaderBytes);

/// A prefix with what follows it, as it goes to UCX, which reads it until the message has gone.
class WireHeader {
 public:
  /// `rest` is cut to what fits.
  void Assign(const WirePrefix& prefix, std::span<const std::byte> rest);
  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }

 private:
  std::array<std::byte, kMaxWireHeaderBytes> bytes_{};
  std::size_t size_ = 0;
};

/// What arrived: `rest` lies in the bytes that were parsed.
struct ParsedHeader {
  WirePrefix prefix;
  std::span<const std::byte> rest;
};

/// INVALID_ARGUMENT for bytes that no fabric of this version can have sent.
absl::StatusOr<ParsedHeader> ParseWireHeader(std::span<const std::byte> bytes);

/// The status that an answer carries; INVALID_ARGUMENT's kind of trouble (an unknown code) is
/// UNKNOWN.
absl::Status AnswerStatus(const ParsedHeader& answer);

}  // namespace wb
