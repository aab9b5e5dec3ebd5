// weightbridged for tests: the product, with something between its parts by which a test stops it
// at a state without stopping its threads. Orders come at descriptor 3 (ControlChannel), one a
// message, and each is answered by itself once it is in force:
//
//   hold KIND [GROUP]   messages of the kind (held_leader.h)
//   payload hold|die|close N   the Nth payload to come in, from 0
//   cut                 every TCP connection of this process
//   release             all that is held goes on
//
// It says "reached KIND" (of payloads: "reached payload") whenever it holds something, or acts.

#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include <sys/epoll.h>

#include <spdlog/spdlog.h>

#include "client/wbctl/process/child.h"
#include "client/wbctl/process/control_channel.h"
#include "daemon/serve.h"
#include "tests/support/shm_gap.h"
#include "tests/system/failures/cut_connections.h"
#include "tests/system/failures/held_fabric.h"
#include "tests/system/failures/held_leader.h"
#include "transport/loop/event_loop.h"

namespace wb::test {
namespace {

/// The orders and who obeys them. On the control loop, but for MakeFabric.
class Holder {
 public:
  DaemonSeams Seams() {
    DaemonSeams seams;
    seams.to_leader = [this](LeaderLink& link, EventLoop& control) -> LeaderLink& {
      Listen(control);
      leader_.SetLink(&link);
      return leader_;
    };
    seams.from_leader = [this](LeaderEvents& coordinator) -> LeaderEvents& {
      leader_.SetCoordinator(&coordinator);
      return leader_;
    };
    seams.fabric = [this](std::unique_ptr<Fabric> fabric, const RegionTable& regions) {
      return std::make_unique<HeldFabric>(std::move(fabric), regions, orders_, [this] {
        control_->Post([this] { Say("reached payload"); });
      });
    };
    return seams;
  }

 private:
  void Listen(EventLoop& control) {
    control_ = &control;
    const absl::Status watched =
        control.Watch(channel_.fd(), EPOLLIN, [this](std::uint32_t /*events*/) { TakeOrder(); });
    if (!watched.ok()) spdlog::error("held daemon: {}", watched.ToString());
  }

  void TakeOrder() {
    const absl::StatusOr<std::string> order = channel_.Receive();
    if (!order.ok()) return control_->Unwatch(channel_.fd());  // the test goes
    if (order->empty()) return;
    Say(Obey(*order) ? *order : "no order: " + *order);
  }

  bool Obey(const std::string& order) {
    std::istringstream words(order);
    std::string verb;
    std::string what;
    words >> verb >> what;
    if (verb == "hold") {
      std::string group;
      words >> group;
      leader_.Hold(what, group);
      return true;
    }
    if (verb == "payload") return OrderPayload(what, words);
    if (verb == "cut") {
      CutTcpConnections();
      return true;
    }
    if (verb == "gap") return LeaveShmGap();
    if (verb != "release") return false;
    leader_.Release();
    orders_.Give({FabricOrder::Kind::kRelease, 0});
    return true;
  }

  bool OrderPayload(const std::string& what, std::istringstream& words) {
    FabricOrder order;
    if (what == "hold") order.kind = FabricOrder::Kind::kHold;
    if (what == "die") order.kind = FabricOrder::Kind::kDie;
    if (what == "close") order.kind = FabricOrder::Kind::kClose;
    if (!(words >> order.payload) || order.kind == FabricOrder::Kind::kRelease) return false;
    orders_.Give(order);
    return true;
  }

  void Say(const std::string& text) {
    if (const absl::Status said = channel_.Send(text); !said.ok()) {
      spdlog::error("held daemon: {}", said.ToString());
    }
  }

  const ControlChannel channel_{FdHandle(kControlFd)};
  EventLoop* control_ = nullptr;
  FabricOrders orders_;
  HeldLeader leader_{[this](const std::string& kind) { Say("reached " + kind); }};
};

}  // namespace
}  // namespace wb::test

int main(int argc, char** argv) {
  wb::test::Holder holder;
  return wb::RunDaemon(argc, argv, holder.Seams());
}
