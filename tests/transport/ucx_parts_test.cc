#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/seed.h"
#include "transport/ucx/slot_table.h"
#include "transport/ucx/wire_header.h"

namespace wb::test {
namespace {

using Bytes = std::vector<std::byte>;

TEST_CASE("a wire header survives the wire", "[transport][ucx]") {
  const std::size_t size = GENERATE(std::size_t{0}, 1, 256);
  const Bytes rest(size, std::byte{7});
  WireHeader header;
  header.Assign({11, 22, 9}, rest);
  const ParsedHeader parsed = ParseWireHeader(header.bytes()).value();
  REQUIRE(parsed.prefix.nonce == 11);
  REQUIRE(parsed.prefix.message == 22);
  REQUIRE(parsed.prefix.code == 9);
  REQUIRE(Bytes(parsed.rest.begin(), parsed.rest.end()) == rest);
}

TEST_CASE("headers of a wrong length are refused", "[transport][ucx]") {
  const Bytes bytes(kMaxWireHeaderBytes + 1);
  for (const std::size_t size : {std::size_t{0}, kWirePrefixBytes - 1, kMaxWireHeaderBytes + 1}) {
    REQUIRE(ParseWireHeader(std::span(bytes).first(size)).status().code() ==
            absl::StatusCode::kInvalidArgument);
  }
  REQUIRE(ParseWireHeader(std::span(bytes).first(kMaxWireHeaderBytes)).ok());
}

TEST_CASE("an answer carries a status, and a code that is none is UNKNOWN", "[transport][ucx]") {
  const std::string text(300, 'x');
  const auto status_of = [&](std::uint64_t code) {
    WireHeader header;
    header.Assign({0, 0, code}, std::as_bytes(std::span(text)));
    return AnswerStatus(ParseWireHeader(header.bytes()).value());
  };
  REQUIRE(status_of(0).ok());
  REQUIRE(status_of(9).code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(status_of(9).message().size() == kMaxAnswerTextBytes);
  REQUIRE(status_of(17).code() == absl::StatusCode::kUnknown);
  REQUIRE(status_of(~std::uint64_t{0}).code() == absl::StatusCode::kUnknown);
}

TEST_CASE("a slot table never gives a number twice, and finds only what is taken",
          "[transport][ucx][property]") {
  INFO("WB_TEST_SEED=" << RunSeed());
  std::mt19937_64 rng = TestRng(0);
  SlotTable<std::uint64_t> table;
  std::vector<std::uint64_t> taken;
  std::vector<std::uint64_t> gone;
  for (int step = 0; step < 2000; ++step) {
    if (taken.empty() || rng() % 2 == 0) {
      const auto [id, object] = table.Take();
      object = id;
      for (const std::uint64_t old : gone) REQUIRE(old != id);
      taken.push_back(id);
    } else {
      std::swap(taken[rng() % taken.size()], taken.back());
      table.Give(taken.back());
      gone.push_back(taken.back());
      taken.pop_back();
    }
    if (gone.size() > 50) gone.erase(gone.begin());
    REQUIRE(table.size() == taken.size());
  }
  for (const std::uint64_t id : taken) REQUIRE(*table.Find(id) == id);
  for (const std::uint64_t id : gone) REQUIRE(table.Find(id) == nullptr);
  REQUIRE(table.Find(0) == nullptr);
  REQUIRE(table.Find(~std::uint64_t{0}) == nullptr);
  std::size_t visited = 0;
  table.ForEach([&](std::uint64_t id, std::uint64_t& object) {
    REQUIRE(object == id);
    ++visited;
    table.Give(id);
  });
  REQUIRE(visited == taken.size());
  REQUIRE(table.size() == 0);
}

}  // namespace
}  // namespace wb::test
