#include <array>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "daemon/leader/leader.h"
#include "daemon/rpc/cluster/cluster_convert.h"
#include "daemon/rpc/cluster/layout_intake.h"
#include "tests/daemon/support/inline_work.h"
#include "tests/fuzz/door_cases.h"
#include "tests/fuzz/pieces.h"
#include "tests/support/manual_timers.h"

namespace wb::test {
namespace {

constexpr Term kTerm(7);

/// A leader with the intake before it, and two daemons' streams. As ClusterServer does it, without
/// gRPC.
class FedLeader final : public PeerLinks {
 public:
  FedLeader() : leader_({timers, *this, work_}, kTerm, Incarnation(70), {}) {}

  ManualTimers timers;

  void Take(PeerId peer, const std::string& bytes) {
    v1::ClusterRequest wire;
    if (ended_.contains(peer) || !wire.ParseFromString(bytes)) return;
    const bool greeted = greeted_.contains(peer);
    if (greeted == wire.has_hello()) return End(peer);
    if (wire.has_contents_part()) return intake_.Take(peer, wire.contents_part());
    absl::StatusOr<ToLeader> message = ToLeaderFromProto(wire);
    if (!message.ok()) {
      if (!wire.has_register_worker()) End(peer);
      return;
    }
    const absl::StatusOr<ToLeader> again = ToLeaderFromProto(ToProto(*message, kTerm));
    RequireInCase(again.ok() && again->index() == message->index(),
                  "an accepted message is refused on its way back");
    ++accepted;
    greeted_.insert(peer);
    Pass(peer, *std::move(message));
  }
  void End(PeerId peer) {
    if (!ended_.insert(peer).second || !greeted_.contains(peer)) return;
    intake_.Forget(peer);
    leader_.OnPeerLost(peer, absl::UnavailableError("gone"));
  }
  void Show() const {
    static_cast<void>(leader_.Waits());
    static_cast<void>(leader_.Members(""));
    static_cast<void>(leader_.Versions("", 0));
  }

  void Pack(PrepareAttempt& /*message*/) const override {}
  void Send(PeerId /*peer*/, FromLeader message) override {
    const absl::StatusOr<FromLeader> again = FromLeaderFromProto(ToProto(message, kTerm));
    RequireInCase(again.ok(), absl::StrCat("the leader says what no daemon takes: ",
                                           again.status().ToString()));
  }
  void Close(PeerId peer, const absl::Status& /*status*/) override { ended_.insert(peer); }

  int accepted = 0;

 private:
  void Pass(PeerId peer, ToLeader message) {
    if (auto* worker = std::get_if<RegisterWorker>(&message);
        worker != nullptr && worker->contents.bytes != 0) {
      return intake_.Register(peer, std::move(*worker));
    }
    if (const auto* left = std::get_if<UnregisterWorker>(&message)) {
      intake_.Forget(peer, left->session);
    }
    leader_.OnMessage(peer, std::move(message));
  }

  std::set<PeerId> greeted_;
  std::set<PeerId> ended_;
  InlineWork work_;
  Leader leader_;
  LayoutIntake intake_{
      {.contents_bytes = 1 << 20},
      {[this](PeerId peer, RegisterWorker call) { leader_.OnMessage(peer, std::move(call)); },
       [](PeerId /*peer*/, const WorkerRegistered& /*refused*/) {},
       [](PeerId /*peer*/, const std::string& /*sha256*/) {}}};
};

bool TakeReply(const std::string& bytes) {
  v1::ClusterReply wire;
  if (!wire.ParseFromString(bytes)) return false;
  const absl::StatusOr<FromLeader> message = FromLeaderFromProto(wire);
  if (!message.ok()) return false;
  const absl::StatusOr<FromLeader> again = FromLeaderFromProto(ToProto(*message, kTerm));
  RequireInCase(again.ok() && again->index() == message->index(),
                "an accepted reply is refused on its way back");
  return true;
}

}  // namespace

int RunClusterCase(std::span<const std::uint8_t> bytes) {
  spdlog::set_level(spdlog::level::off);
  FedLeader leader;
  int replies = 0;
  ForEachPiece(bytes, [&](std::uint8_t what, const std::string& text) {
    switch (what % 6) {
      case 0:
      case 1:
        leader.Take(PeerId(1U + what % 6), text);
        break;
      case 2:
        replies += TakeReply(text) ? 1 : 0;
        break;
      case 3:
      case 4:
        leader.End(PeerId(what % 6 - 2U));
        break;
      default:
        leader.timers.Advance(std::chrono::seconds(1));
    }
  });
  leader.Show();
  leader.timers.Advance(std::chrono::minutes(2));
  return leader.accepted + replies;
}

}  // namespace wb::test
