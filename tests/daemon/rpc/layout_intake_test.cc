// Registrations whose contents come by digest, without gRPC: what is asked of whom, and what every
// wrong way of sending contents leads to.

#include "daemon/rpc/cluster/layout_intake.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

#include "daemon/rpc/cluster/parts.h"
#include "daemon/rpc/sha256.h"
#include "daemon/state/members.h"
#include "planner/model/memory_bytes.h"
#include "proto/convert.h"
#include "tests/daemon/rpc/big_registration.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using test::BigRegistration;
using test::WorkerOf;

constexpr PeerId kFirst(1);
constexpr PeerId kSecond(2);

/// An intake and all that it said.
struct IntakeWorld {
  explicit IntakeWorld(IntakeLimits limits = {.contents_bytes = 8 << 20})
      : intake(limits,
               {[this](PeerId peer, RegisterWorker call) {
                  registered.emplace_back(peer, std::move(call));
                },
                [this](PeerId peer, WorkerRegistered answer) {
                  refused.emplace_back(peer, std::move(answer));
                },
                [this](PeerId peer, const std::string& sha256) {
                  wanted.emplace_back(peer, sha256);
                }}) {}

  void Register(PeerId peer, RegisterWorker whole) {
    const std::string bytes = ContentsOf(*whole.registration);
    whole.contents = {Sha256(bytes), bytes.size()};
    intake.Register(peer, Offer(std::move(whole)));
  }
  /// As it looks on the wire: the identity, and the contents' id.
  static RegisterWorker Offer(RegisterWorker whole) {
    Registration identity;
    identity.job = whole.registration->job;
    identity.layout.role = whole.registration->layout.role;
    identity.layout.name = whole.registration->layout.name;
    identity.layout.node = whole.registration->layout.node;
    whole.registration = std::make_shared<const Registration>(std::move(identity));
    return whole;
  }
  void Send(PeerId peer, const std::string& sha256, std::uint64_t offset, std::string data) {
    v1::ContentsPart part;
    part.set_sha256(sha256);
    part.set_offset(offset);
    part.set_data(std::move(data));
    intake.Take(peer, part);
  }
  void SendAll(PeerId peer, const std::string& sha256, const std::string& bytes) {
    ForEachPart(bytes, [&](std::uint64_t offset, std::string_view data) {
      Send(peer, sha256, offset, std::string(data));
    });
  }
  bool RefusedAs(std::size_t at, const std::string& text) const {
    INFO(refused.at(at).second.status.ToString());
    return absl::StrContains(refused.at(at).second.status.message(), text);
  }

  std::vector<std::pair<PeerId, RegisterWorker>> registered;
  std::vector<std::pair<PeerId, WorkerRegistered>> refused;
  std::vector<std::pair<PeerId, std::string>> wanted;
  LayoutIntake intake;
};

TEST_CASE("A daemon whose workers all wait for their contents is bounded, with the number",
          "[rpc][intake]") {
  IntakeWorld world;
  const RegisterWorker call = WorkerOf("engine0", BigRegistration(20));
  const std::string bytes = ContentsOf(*call.registration);
  const auto offer = [&](PeerId peer, std::size_t session) {
    RegisterWorker one = IntakeWorld::Offer(call);
    one.session = std::to_string(session);
    one.contents = {Sha256(bytes), bytes.size()};
    world.intake.Register(peer, std::move(one));
  };
  for (std::size_t i = 0; i < kMaxSessions; ++i) offer(kFirst, i);
  REQUIRE(world.refused.empty());
  offer(kFirst, kMaxSessions);
  REQUIRE(world.refused.at(0).second.status.code() == absl::StatusCode::kResourceExhausted);
  REQUIRE(world.RefusedAs(0, "4096 workers of this daemon wait for their contents already"));
  offer(kSecond, 0);
  REQUIRE(world.refused.size() == 1);
}

TEST_CASE("Replicas that offer the same at the same time are asked once", "[rpc][intake]") {
  IntakeWorld world;
  const Registration registration = BigRegistration(600);
  const std::string bytes = ContentsOf(registration);
  world.Register(kFirst, WorkerOf("engine0", registration));
  world.Register(kSecond, WorkerOf("engine1", registration));
  REQUIRE(world.wanted == std::vector{std::pair(kFirst, Sha256(bytes))});
  world.SendAll(kFirst, Sha256(bytes), bytes);
  REQUIRE(world.registered.size() == 2);
  REQUIRE(world.registered[1].first == kSecond);
  REQUIRE(*world.registered[0].second.registration ==
          *WorkerOf("engine0", registration).registration);
  REQUIRE(*world.registered[1].second.registration ==
          *WorkerOf("engine1", registration).registration);
  // Nor is one who comes later.
  world.Register(kSecond, WorkerOf("engine2", registration));
  REQUIRE(world.wanted.size() == 1);
  REQUIRE(world.registered.size() == 3);
  REQUIRE(world.refused.empty());
}

/// A layout of little on the wire and much in memory: `pieces` elements of one tensor, each a
/// piece.
Registration ScatteredRegistration(const std::string& tensor, int pieces) {
  v1::Layout wire;
  wire.set_job("job");
  wire.mutable_worker()->set_role(v1::ROLLOUT);
  wire.mutable_worker()->set_group("engine0");
  wire.mutable_worker()->set_rank(0);
  wire.mutable_worker()->set_node("n0");
  (*wire.mutable_tensors())[tensor].set_dtype(v1::FP32);
  (*wire.mutable_tensors())[tensor].add_shape(2 * pieces);
  v1::Param& param = *wire.mutable_worker()->add_params();
  param.set_name("p");
  param.add_shape(pieces);
  for (int i = 0; i < pieces; ++i) {
    v1::Piece& piece = *param.add_pieces();
    piece.set_tensor(tensor);
    piece.mutable_box()->add_lo(2 * i);
    piece.mutable_box()->add_hi(2 * i + 1);
    piece.add_at(i);
  }
  return std::get<Registration>(RegistrationFromProto(wire));
}

TEST_CASE("Contents kept are bounded by what they take in memory, not on the wire",
          "[rpc][intake]") {
  constexpr int kPieces = 500;
  const std::uint64_t each = MemoryBytes(ScatteredRegistration("t0", kPieces));
  IntakeWorld world({.contents_bytes = 8 << 20, .kept_bytes = 2 * each});
  std::uint64_t wire_bytes = 0;
  const auto asked_for = [&](int number) {
    const Registration registration = ScatteredRegistration("t" + std::to_string(number), kPieces);
    const std::string bytes = ContentsOf(registration);
    wire_bytes += bytes.size();
    const std::size_t before = world.wanted.size();
    world.Register(kFirst, WorkerOf("engine0", registration));
    const bool asked = world.wanted.size() > before;
    if (asked) world.SendAll(kFirst, Sha256(bytes), bytes);
    return asked;
  };
  for (int number = 0; number < 3; ++number) REQUIRE(asked_for(number));
  REQUIRE(wire_bytes < each);
  REQUIRE_FALSE(asked_for(2));
  REQUIRE_FALSE(asked_for(1));
  REQUIRE(asked_for(0));
  REQUIRE(world.registered.size() == 6);
}

TEST_CASE("Parts that are wrong refuse the worker by name, and nothing is registered",
          "[rpc][intake]") {
  IntakeWorld world;
  const Registration registration = BigRegistration(600);
  const std::string bytes = ContentsOf(registration);
  const std::string sha256 = Sha256(bytes);
  const std::string some = bytes.substr(0, 1000);
  world.Register(kFirst, WorkerOf("engine0", registration));
  SECTION("out of order, or one is missing") {
    world.Send(kFirst, sha256, 0, some);
    world.Send(kFirst, sha256, 2000, some);
    REQUIRE(world.RefusedAs(0, "a part from byte 2000, want 1000: parts are missing or out of"));
  }
  SECTION("one twice") {
    world.Send(kFirst, sha256, 0, some);
    world.Send(kFirst, sha256, 0, some);
    REQUIRE(world.RefusedAs(0, "a part from byte 0, want 1000"));
  }
  SECTION("too many") {
    world.SendAll(kFirst, sha256, bytes.substr(0, bytes.size() - 10));
    world.Send(kFirst, sha256, bytes.size() - 10, some);
    REQUIRE(world.RefusedAs(0, "at most"));
    REQUIRE(world.refused[0].second.status.code() == absl::StatusCode::kResourceExhausted);
  }
  SECTION("an empty one") {
    world.Send(kFirst, sha256, 0, "");
    REQUIRE(world.RefusedAs(0, "a part of 0 bytes, want 1..262144"));
  }
  SECTION("too large a one") {
    world.Send(kFirst, sha256, 0, bytes.substr(0, kPartBytes + 1));
    REQUIRE(world.RefusedAs(0, "a part of 262145 bytes"));
  }
  SECTION("of another digest") {
    std::string other = bytes;
    other.back() = static_cast<char>(other.back() ^ 1);
    world.SendAll(kFirst, sha256, other);
    REQUIRE(world.RefusedAs(0, "its parts have digest "));
  }
  REQUIRE(world.refused.size() == 1);
  REQUIRE(world.RefusedAs(0, "engine0/0: contents "));
  REQUIRE(world.registered.empty());
  // What comes after is dropped, and the worker may try again.
  world.Send(kFirst, sha256, 2000, some);
  REQUIRE(world.intake.stale_parts() == 1);
  world.Register(kFirst, WorkerOf("engine0", registration));
  world.SendAll(kFirst, sha256, bytes);
  REQUIRE(world.registered.size() == 1);
}

TEST_CASE("Contents beyond the limit are refused before a byte of them is asked for",
          "[rpc][intake]") {
  IntakeWorld world({.contents_bytes = 100'000});
  world.Register(kFirst, WorkerOf("engine0", BigRegistration(600)));
  REQUIRE(world.RefusedAs(0, "limits.message_bytes of the leader allows 100000"));
  REQUIRE(world.wanted.empty());
}

TEST_CASE("Contents that are no layout refuse all who offered them", "[rpc][intake]") {
  IntakeWorld world;
  v1::Layout wire;
  wire.mutable_worker()->set_role(v1::ROLLOUT);
  wire.mutable_worker()->add_params()->set_name("w");  // filled by nothing
  for (const std::string& bytes : {std::string(500, '\xff'), wire.SerializeAsString()}) {
    RegisterWorker call = IntakeWorld::Offer(WorkerOf("engine0", BigRegistration(1)));
    call.contents = {Sha256(bytes), bytes.size()};
    world.intake.Register(kFirst, call);
    world.SendAll(kFirst, call.contents.sha256, bytes);
  }
  REQUIRE(world.registered.empty());
  REQUIRE(world.refused.size() == 2);
  REQUIRE(world.RefusedAs(0, "no serialised weightbridge.v1.Layout"));
  REQUIRE(world.RefusedAs(1, "param w"));
}

TEST_CASE("Sizes that differ under one digest are refused by name", "[rpc][intake]") {
  IntakeWorld world;
  const Registration registration = BigRegistration(600);
  world.Register(kFirst, WorkerOf("engine0", registration));
  RegisterWorker call = IntakeWorld::Offer(WorkerOf("engine1", registration));
  call.contents = {Sha256(ContentsOf(registration)), 17};
  world.intake.Register(kSecond, call);
  REQUIRE(world.RefusedAs(0, "engine1/0: contents "));
  REQUIRE(world.RefusedAs(0, "under the same digest"));
}

TEST_CASE("When the sender goes or fails, the next who offers the same is asked", "[rpc][intake]") {
  IntakeWorld world;
  const Registration registration = BigRegistration(600);
  const std::string bytes = ContentsOf(registration);
  const std::string sha256 = Sha256(bytes);
  world.Register(kFirst, WorkerOf("engine0", registration));
  world.Register(kSecond, WorkerOf("engine1", registration));
  world.Send(kFirst, sha256, 0, bytes.substr(0, 1000));
  SECTION("its stream is lost") {
    world.intake.Forget(kFirst);
  }
  SECTION("its session ends") {
    world.intake.Forget(kFirst, std::string(32, '0'));
  }
  SECTION("its parts are wrong") {
    world.Send(kFirst, sha256, 0, "x");
  }
  REQUIRE(world.wanted.size() == 2);
  REQUIRE(world.wanted[1].first == kSecond);
  world.Send(kFirst, sha256, 1000, bytes.substr(1000, 1000));  // was on its way
  REQUIRE(world.intake.stale_parts() == 1);
  world.SendAll(kSecond, sha256, bytes);
  REQUIRE(world.registered.size() == 1);
  REQUIRE(world.registered[0].first == kSecond);
}

TEST_CASE("A session that ends while its contents arrive is never registered", "[rpc][intake]") {
  IntakeWorld world;
  const Registration registration = BigRegistration(600);
  const std::string bytes = ContentsOf(registration);
  world.Register(kFirst, WorkerOf("engine0", registration));
  world.intake.Forget(kFirst, std::string(32, '0'));
  world.SendAll(kFirst, Sha256(bytes), bytes);
  REQUIRE(world.registered.empty());
  REQUIRE(world.refused.empty());
}

}  // namespace
}  // namespace wb
