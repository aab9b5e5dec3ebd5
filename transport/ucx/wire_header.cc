#include "transport/ucx/wire_header.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_format.h"

namespace wb {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the prefix travels as it lies in memory");
static_assert(sizeof(WirePrefix) == kWirePrefixBytes);

constexpr auto kLastCode = static_cast<std::uint64_t>(absl::StatusCode::kUnauthenticated);

}  // namespace

void WireHeader::Assign(const WirePrefix& prefix, std::span<const std::byte> rest) {
  const std::size_t taken = std::min(rest.size(), bytes_.size() - kWirePrefixBytes);
  std::memcpy(bytes_.data(), &prefix, kWirePrefixBytes);
  std::copy_n(rest.begin(), taken, bytes_.begin() + kWirePrefixBytes);
  size_ = kWirePrefixBytes + taken;
}

absl::StatusOr<ParsedHeader> ParseWireHeader(std::span<const std::byte> bytes) {
  if (bytes.size() < kWirePrefixBytes || bytes.size() > kMaxWireHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrFormat("ucx: a header of %d bytes, want %d to %d",
                                                      bytes.size(), kWirePrefixBytes,
                                                      kMaxWireHeaderBytes));
  }
  ParsedHeader header;
  std::memcpy(&header.prefix, bytes.data(), kWirePrefixBytes);
  header.rest = bytes.subspan(kWirePrefixBytes);
  return header;
}

absl::Status AnswerStatus(const ParsedHeader& answer) {
  const std::uint64_t code = answer.prefix.code;
  if (code == 0) return absl::OkStatus();
  std::string text(std::min(answer.rest.size(), kMaxAnswerTextBytes), '\0');
  std::memcpy(text.data(), answer.rest.data(), text.size());
  return {code <= kLastCode ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
          text};
}

}  // namespace wb
