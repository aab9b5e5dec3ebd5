#include "daemon/rpc/local/local_door.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "daemon/rpc/local/client_messages.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

constexpr int kAcceptsPerTurn = 16;
// Connections beyond limits.workers: clients that are joining, or are being told why not.
constexpr std::size_t kSpareConnections = 64;

}  // namespace

LocalDoor::LocalDoor(EventLoop& loop,
                     SessionCalls& calls,
                     FdHandle listener,
                     LocalDoorOptions options)
    : loop_(loop),
      admission_(options.max_workers, options.max_memory_bytes),
      work_(options.work_threads),
      context_{loop,
               calls,
               work_,
               admission_,
               claims_,
               files_,
               JoinLimits{options.node, options.max_layout_bytes},
               options.incarnation,
               std::move(options.new_session_id),
               options.join_timeout,
               options.linger,
               std::vector<char>(kMaxPacketBytes),
               false,
               [this] { OnSettled(); },
               [this](const LocalSession& newcomer) { return MakeWay(newcomer); },
               [this](std::uint64_t claims) { return WhenUnmapped(claims); }},
      listener_(std::move(listener)),
      spare_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

absl::StatusOr<std::unique_ptr<LocalDoor>> LocalDoor::Open(EventLoop& loop,
                                                           SessionCalls& calls,
                                                           FdHandle listener,
                                                           LocalDoorOptions options) {
  std::unique_ptr<LocalDoor> door(
      new LocalDoor(loop, calls, std::move(listener), std::move(options)));
  WB_RETURN_IF_ERROR(loop.Watch(door->listener_.get(), EPOLLIN,
                                [raw = door.get()](std::uint32_t) { raw->AcceptSome(); }));
  return door;
}

LocalDoor::~LocalDoor() {
  StopAccepting();
}

void LocalDoor::AcceptSome() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (!AcceptOne()) return;
  }
}

bool LocalDoor::AcceptOne() {
  FdHandle socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) {
    Add(std::move(socket));
    return true;
  }
  if (errno == EMFILE || errno == ENFILE) return DropOne();
  if (errno == EINTR || errno == ECONNABORTED) return true;
  if (errno != EAGAIN) {
    spdlog::error("cannot accept a worker: {}", std::generic_category().message(errno));
  }
  return false;
}

bool LocalDoor::DropOne() {
  // Left in the queue, the connection would wake the loop for ever.
  spdlog::error("no descriptors left: a worker's connection is dropped");
  spare_.Reset();
  const FdHandle dropped(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const bool one = static_cast<bool>(dropped);
  spare_ = FdHandle(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return one;
}

void LocalDoor::Add(FdHandle socket) {
  const std::uint64_t number = next_connection_++;
  const auto ended = [this, number] {
    // It is on the stack now: destroyed when it has returned.
    loop_.Post([this, number, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) sessions_.erase(number);
    });
  };
  auto session = std::make_unique<LocalSession>(context_, std::move(socket), ended);
  const absl::Status started = session->Start();
  if (!started.ok()) {
    spdlog::error("cannot serve a worker: {}", started.ToString());
    return;
  }
  LocalSession& added = *session;
  sessions_.emplace(number, std::move(session));
  if (sessions_.size() > admission_.max_workers() + kSpareConnections) {
    added.Refuse(absl::ResourceExhaustedError(
        absl::StrCat("limits.workers: ", admission_.max_workers(), ", and ", sessions_.size() - 1,
                     " connections are open")));
  }
}

void LocalDoor::CloseGone() {
  for (const auto& [number, session] : sessions_) {
    if (session->open()) session->EndsIfGone();
  }
}

absl::Status LocalDoor::MakeWay(const LocalSession& newcomer) {
  for (const auto& [number, session] : sessions_) {
    if (session.get() == &newcomer || !session->open() || !session->IsSameRank(newcomer)) continue;
    if (session->EndsIfGone()) continue;
    return absl::AlreadyExistsError(
        absl::StrCat("the rank is taken by ", session->Describe(), ", whose process lives"));
  }
  return absl::OkStatus();
}

std::function<void()> LocalDoor::WhenUnmapped(std::uint64_t claims) {
  return [this, claims, loop = &loop_, alive = std::weak_ptr(alive_)] {
    loop->Post([this, claims, alive] {
      if (alive.expired()) return;
      claims_.Free(claims);
      for (const auto& [number, session] : sessions_) session->OnMemoryFree();
    });
  };
}

void LocalDoor::NotifyGo(const SessionId& session,
                         Version version,
                         std::function<void()> accepted) {
  if (LocalSession* found = Find(session)) found->NotifyGo(version, std::move(accepted));
}

void LocalDoor::NotifyStaged(const SessionId& session, Version version, AttemptId attempt) {
  if (LocalSession* found = Find(session)) found->Notify(StagedMessage(version, attempt));
}

void LocalDoor::NotifyOutcome(const SessionId& session, Version version, bool committed) {
  if (LocalSession* found = Find(session)) found->Notify(OutcomeMessage(version, committed));
}

void LocalDoor::NotifySnapshot(const SessionId& session, Version version, double seconds) {
  if (LocalSession* found = Find(session)) found->Notify(SnapshotMessage(version, seconds));
}

LocalSession* LocalDoor::Find(const SessionId& session) const {
  for (const auto& [number, candidate] : sessions_) {
    if (candidate->id() == session) return candidate.get();
  }
  return nullptr;
}

void LocalDoor::StopAccepting() {
  context_.draining = true;
  if (!listener_) return;
  loop_.Unwatch(listener_.get());
  listener_.Reset();
}

bool LocalDoor::busy() const {
  for (const auto& [number, session] : sessions_) {
    if (session->moving() || session->unsent()) return true;
  }
  return false;
}

void LocalDoor::WhenQuiet(std::function<void()> then) {
  when_quiet_ = std::move(then);
  OnSettled();
}

void LocalDoor::OnSettled() {
  if (when_quiet_ == nullptr || busy()) return;
  std::exchange(when_quiet_, nullptr)();
}

void LocalDoor::Close(const absl::Status& why) {
  StopAccepting();
  for (const auto& [number, session] : sessions_) session->Refuse(why);
}

}  // namespace wb
