#include "tests/system/failures/held_fabric.h"

#include <csignal>
#include <cstdlib>
#include <utility>

#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace wb::test {
namespace {

/// Readable when one of the two is.
FdHandle EitherOf(int a, int b) {
  FdHandle either(::epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {a, b}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(either.get(), EPOLL_CTL_ADD, fd, &event) != 0) std::abort();
  }
  return either;
}

}  // namespace

FabricOrders::FabricOrders() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void FabricOrders::Give(FabricOrder order) {
  const MutexLock lock(mu_);
  order_ = order;
  static_cast<void>(::eventfd_write(fd_.get(), 1));
}

std::optional<FabricOrder> FabricOrders::Take() {
  const MutexLock lock(mu_);
  eventfd_t ignored = 0;
  if (order_.has_value()) static_cast<void>(::eventfd_read(fd_.get(), &ignored));
  return std::exchange(order_, std::nullopt);
}

bool FabricOrders::waiting() const {
  const MutexLock lock(mu_);
  return order_.has_value();
}

HeldFabric::HeldFabric(std::unique_ptr<Fabric> inner,
                       const RegionTable& regions,
                       FabricOrders& orders,
                       std::function<void()> reached)
    : FaultyFabric(std::move(inner), regions),
      orders_(orders),
      reached_(std::move(reached)),
      wakeup_(EitherOf(FaultyFabric::wakeup_fd(), orders.fd())) {}

bool HeldFabric::Progress(std::vector<FabricEvent>& events) {
  const std::optional<FabricOrder> order = orders_.Take();
  if (order.has_value()) Obey(*order);
  return FaultyFabric::Progress(events) || order.has_value();
}

absl::StatusOr<bool> HeldFabric::Arm() {
  if (orders_.waiting()) return false;
  return FaultyFabric::Arm();
}

void HeldFabric::Obey(const FabricOrder& order) {
  if (order.kind == FabricOrder::Kind::kRelease) return Release();
  HoldWhere([this, order, at = payloads() + order.payload](std::uint64_t payload, EndpointId from) {
    return payload >= at && OnPayload(order, payload == at, from);
  });
}

bool HeldFabric::OnPayload(const FabricOrder& order, bool first, EndpointId from) {
  if (first) reached_();
  if (order.kind == FabricOrder::Kind::kDie) ::raise(SIGKILL);
  if (order.kind == FabricOrder::Kind::kClose && first) CloseForced(from);
  return order.kind == FabricOrder::Kind::kHold;
}

}  // namespace wb::test
