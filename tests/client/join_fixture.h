#pragma once

#include <optional>
#include <string>

#include "tests/client/client_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/in_child.h"

namespace wb::test {

inline constexpr auto kGrant = [](FakePeer& peer, int) {
  peer.GrantJoin();
  peer.StaySilent();
};

/// A daemon that grants joins and keeps what it was told.
struct JoinKeeper {
  Seen<JoinRecord> joins;
  FakeDaemon daemon{[this](FakePeer& peer, int) {
    if (std::optional<JoinRecord> record = peer.GrantJoin()) joins.Add(*record);
    peer.StaySilent();
  }};
};

inline std::string JoinError(const weightbridge::JoinOptions& options,
                             const weightbridge::Layout& layout) {
  const weightbridge::Result<weightbridge::Rollout> joined =
      weightbridge::Rollout::Join(options, layout);
  if (joined.ok()) return "joined";
  return joined.error().ToString();
}

/// Waits until the script has seen the join whole: the reply comes before the record is kept.
inline JoinRecord Kept(const JoinKeeper& keeper) {
  REQUIRE(Soon([&] { return !keeper.joins.all().empty(); }));
  return keeper.joins.all().front();
}

}  // namespace wb::test
