#include "daemon/move/chunk_header.h"

#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

ChunkHeader Example() {
  ChunkHeader header;
  header.has_checksum = true;
  header.attempt = AttemptId(0x0123456789ABCDEF);
  header.sender = Incarnation(0xFEDCBA9876543210);
  header.stream = 0x00030007;
  header.chunk = 41;
  header.bytes = 1 << 20;
  header.checksum = 0xAABBCCDDEEFF0011;
  return header;
}

TEST_CASE("a chunk header survives the wire", "[move]") {
  ChunkHeader header = Example();
  REQUIRE(DecodeHeader(EncodeHeader(header)).value() == header);
  header.kind = MessageKind::kHello;
  header.has_checksum = false;
  REQUIRE(DecodeHeader(EncodeHeader(header)).value() == header);
}

TEST_CASE("a chunk header is little endian on the wire, whatever the host", "[move]") {
  const ChunkHeader::Wire wire = EncodeHeader(Example());
  REQUIRE(wire[0] == std::byte{'W'});
  REQUIRE(wire[1] == std::byte{'B'});
  REQUIRE(wire[8] == std::byte{0xEF});
  REQUIRE(wire[15] == std::byte{0x01});
  REQUIRE(wire[28] == std::byte{41});
}

TEST_CASE("any flipped bit of a chunk header is found", "[move]") {
  for (std::size_t bit = 0; bit < 8 * ChunkHeader::kBytes; ++bit) {
    ChunkHeader::Wire wire = EncodeHeader(Example());
    wire[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    INFO("bit " << bit);
    REQUIRE(DecodeHeader(wire).status().code() == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("a chunk header of another size or of random bytes is refused", "[move]") {
  const ChunkHeader::Wire wire = EncodeHeader(Example());
  const std::span<const std::byte> whole(wire);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    REQUIRE_FALSE(DecodeHeader(whole.first(size)).ok());
  }
  INFO("WB_TEST_SEED=" << test::RunSeed());
  std::mt19937_64 rng = test::TestRng(0);
  for (int round = 0; round < 1000; ++round) {
    std::vector<std::byte> garbage(rng() % 130);
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(rng() & 0xFF);
    REQUIRE_FALSE(DecodeHeader(garbage).ok());
  }
}

}  // namespace
}  // namespace wb
