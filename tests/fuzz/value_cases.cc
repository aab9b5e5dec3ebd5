// The cases whose input is one value: a chunk's header, a configuration.

#include <algorithm>
#include <array>
#include <cstddef>

#include <xxhash.h>

#include "daemon/move/chunk_header.h"
#include "daemon/options.h"
#include "tests/fuzz/door_cases.h"
#include "tests/fuzz/pieces.h"

namespace wb::test {
namespace {

constexpr std::size_t kSealBytes = 8;  // at the end of a header

bool Accepted(std::span<const std::byte> wire) {
  const absl::StatusOr<ChunkHeader> header = DecodeHeader(wire);
  if (!header.ok()) return false;
  const absl::StatusOr<ChunkHeader> again = DecodeHeader(EncodeHeader(*header));
  RequireInCase(again.ok() && *again == *header,
                "a header changes on its way to the wire and back");
  return true;
}

}  // namespace

int RunChunkHeaderCase(std::span<const std::uint8_t> bytes) {
  int accepted = Accepted(std::as_bytes(bytes)) ? 1 : 0;
  ChunkHeader::Wire wire{};
  constexpr std::size_t kSealed = ChunkHeader::kBytes - kSealBytes;
  std::copy_n(std::as_bytes(bytes).begin(), std::min(bytes.size(), kSealed), wire.begin());
  const XXH64_hash_t seal = XXH3_64bits(wire.data(), kSealed);
  for (std::size_t i = 0; i < kSealBytes; ++i) {
    wire[kSealed + i] = static_cast<std::byte>(seal >> (8 * i));
  }
  if (Accepted(wire)) ++accepted;
  return accepted;
}

int RunOptionsCase(std::span<const std::uint8_t> bytes) {
  const std::string text(bytes.begin(), bytes.end());
  const absl::StatusOr<DaemonOptions> options = ParseOptions(text, "f.yaml", "/run/weightbridge");
  if (!options.ok()) {
    RequireInCase(absl::IsInvalidArgument(options.status()) && !options.status().message().empty(),
                  "a configuration is refused without a reason");
    return 0;
  }
  RequireInCase(!options->node.empty() && !options->run_dir.empty() &&
                    !options->data_interface.empty() && options->limits_workers >= 1 &&
                    options->limits_workers <= 4096 && options->limits_memory_bytes >= 1 &&
                    options->timeouts_peer >= std::chrono::milliseconds(400) &&
                    options->copy_threads >= 1 && options->copy_threads <= 64 &&
                    options->leader_listen.has_value() != options->leader_address.has_value(),
                "a configuration beyond the limits is accepted");
  return 1;
}

}  // namespace wb::test
