#include "planner/base/strong_id.h"

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"

#include "tests/support/catch.h"

namespace wb {
namespace {

using AppleId = StrongId<struct AppleTag>;
using PearId = StrongId<struct PearTag>;
using SmallId = StrongId<struct SmallTag, std::uint32_t>;

// What must not compile.
static_assert(!std::is_convertible_v<AppleId, PearId>);
static_assert(!std::is_constructible_v<AppleId, PearId>);
static_assert(!std::is_convertible_v<std::uint64_t, AppleId>);
static_assert(!std::is_convertible_v<AppleId, std::uint64_t>);
static_assert(!std::equality_comparable_with<AppleId, PearId>);
static_assert(std::totally_ordered<AppleId>);
static_assert(sizeof(SmallId) == sizeof(std::uint32_t));

TEST_CASE("A strong id is its number and nothing else", "[base]") {
  CHECK(AppleId(7).value() == 7);
  CHECK(AppleId().value() == 0);
  CHECK(AppleId(1) < AppleId(2));
  CHECK(AppleId(2) == AppleId(2));
}

TEST_CASE("Strong ids are keys of hash tables, and equal ids hash alike", "[base]") {
  const absl::flat_hash_set<AppleId> apples = {AppleId(1), AppleId(2), AppleId(1)};
  CHECK(apples.size() == 2);
  CHECK(apples.contains(AppleId(2)));
  CHECK_FALSE(apples.contains(AppleId(3)));
  CHECK(absl::HashOf(SmallId(9)) == absl::HashOf(SmallId(9)));
}

}  // namespace
}  // namespace wb
