#include "daemon/leader/refused_offers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tests/support/catch.h"

namespace wb {
namespace {

/// `count` reasons of `bytes` each in their text, "0", "1", ...
Refusals Reasons(std::size_t count, std::size_t bytes = 0) {
  Refusals all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back({"dtype", absl::StrCat(i), "engine0/0", std::string(bytes, 'x')});
  }
  return all;
}

Offering Refused(Refusals refusals) {
  Offering offering;
  offering.refusals = std::move(refusals);
  return offering;
}

TEST_CASE("reasons against all groups and against some are listed, the first ones if less is asked",
          "[control][leader]") {
  RefusedOffers offers;
  REQUIRE(offers.List("", 0).total == 0);
  Offering offering;
  offering.misfits = {{"bad", Reasons(2)}, {"worse", Reasons(1)}};
  offers.Note("a", offering);
  offers.Note("b", Refused(Reasons(1)));
  const RefusalsSnapshot all = offers.List("", 0);
  REQUIRE(all.total == 4);
  REQUIRE(all.refusals == std::vector<OfferRefusal>{{"b", "", Reasons(1)[0]},
                                                    {"a", "bad", Reasons(1)[0]},
                                                    {"a", "bad", Reasons(2)[1]},
                                                    {"a", "worse", Reasons(1)[0]}});
  REQUIRE(offers.List("a", 0).total == 3);
  REQUIRE(offers.List("a", 0).refusals.size() == 3);
  REQUIRE(offers.List("c", 0).total == 0);
  for (const std::uint32_t limit : {1U, 2U, 4U, 5U, kMaxRefusals}) {
    REQUIRE(offers.List("", limit).total == 4);
    REQUIRE(offers.List("", limit).refusals.size() == std::min<std::size_t>(limit, 4));
  }
}

TEST_CASE("the next offer of a job takes the place of the one before", "[control][leader]") {
  RefusedOffers offers;
  offers.Note("a", Refused(Reasons(3)));
  offers.Note("b", Refused(Reasons(1)));
  offers.Note("a", Refused(Reasons(2)));
  REQUIRE(offers.List("", 0).total == 3);
  REQUIRE(offers.List("", 1).refusals.at(0).job == "a");
  offers.Note("a", Offering());  // all is well
  REQUIRE(offers.List("a", 0).total == 0);
  REQUIRE(offers.List("", 0).total == 1);
}

TEST_CASE("of too many reasons the first are kept, and all are counted", "[control][leader]") {
  RefusedOffers offers;
  offers.Note("a", Refused(Reasons(kMaxRefusals + 5)));
  REQUIRE(offers.List("", 0).refusals.size() == kMaxRefusals);
  REQUIRE(offers.List("", 0).total == kMaxRefusals + 5);
  const std::size_t large = RefusedOffers::kMostBytes / 4;
  offers.Note("a", Refused(Reasons(5, large)));
  REQUIRE(offers.List("", 0).refusals.size() == 3);  // names beside the texts
  REQUIRE(offers.List("", 0).total == 5);
}

TEST_CASE("the jobs that were offered longest ago make way for new reasons", "[control][leader]") {
  RefusedOffers offers;
  offers.Note("a", Refused(Reasons(1)));
  offers.Note("b", Refused(Reasons(1)));
  offers.Note("c", Refused(Reasons(kMaxRefusals - 1)));
  REQUIRE(offers.List("a", 0).total == 0);
  REQUIRE(offers.List("b", 0).total == 1);
  REQUIRE(offers.List("c", 0).refusals.size() == kMaxRefusals - 1);
  const std::size_t large = RefusedOffers::kMostBytes - 1024;
  offers.Note("d", Refused(Reasons(1, large)));
  REQUIRE(offers.List("", 0).refusals.size() == 1);
  REQUIRE(offers.List("d", 0).total == 1);
}

}  // namespace
}  // namespace wb
