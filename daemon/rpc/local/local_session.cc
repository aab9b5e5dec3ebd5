#include "daemon/rpc/local/local_session.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "daemon/rpc/local/client_messages.h"
#include "daemon/rpc/wire_values.h"
#include "daemon/state/seconds.h"
#include "planner/base/one_line.h"
#include "planner/base/status_macros.h"
#include "planner/model/culprit.h"
#include "proto/door/names.h"

namespace wb {
namespace {

constexpr int kPacketsPerTurn = 32;  // before other sessions have theirs
constexpr std::size_t kMaxCallsInProgress = 8;
constexpr std::size_t kMaxUnsent = 64;  // packets

/// The fields of a call that go on to the leader, which would take a wrong one for the daemon's.
absl::Status CheckFields(const v1::ClientMessage& message) {
  absl::Status checked;
  if (message.has_publish()) {
    checked = CheckVersion(message.publish().version());
    if (checked.ok()) checked = CheckLength("label", message.publish().label(), kMaxTextBytes);
    if (checked.ok()) {
      checked = GroupsFromProto("required_groups", message.publish().required_groups()).status();
    }
  } else if (message.has_receive()) {
    checked = CheckVersion(message.receive().version());
  }
  if (checked.ok()) return checked;
  return absl::InvalidArgumentError(absl::StrCat(NameOf(message), ": ", checked.message()));
}

/// On a work thread. Each buffer's pages and those of its snapshot, as long as somebody wants them.
absl::Status PopulateAll(const SessionOpening& opening,
                         const std::string& worker,
                         const std::atomic<bool>& cancelled,
                         std::atomic<std::size_t>& at) {
  const auto go_on = [&] { return !cancelled.load(); };
  const std::vector<OpenedBuffer>& buffers = opening.buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    at.store(i);
    absl::Status status = buffers[i].region.Populate(go_on);
    if (status.ok() && opening.snapshots.has_value()) {
      status = (*opening.snapshots)[i].Populate(go_on);
    }
    if (!status.ok()) {
      return {status.code(),
              absl::StrCat("buffer '", buffers[i].name, "' of ", worker, ": ", status.message())};
    }
  }
  return absl::OkStatus();
}

}  // namespace

LocalSession::LocalSession(SessionContext& context, FdHandle socket, std::function<void()> ended)
    : context_(context),
      socket_(std::move(socket)),
      ended_(std::move(ended)),
      peer_(CredentialsOf(socket_.get())),
      ticket_(context.admission),
      claims_(context.claims),
      join_(context.join, ticket_, claims_, context.files) {}

LocalSession::~LocalSession() {
  CancelPopulating();
  if (timer_.has_value()) context_.loop.Cancel(*timer_);
  if (socket_) context_.loop.Unwatch(socket_.get());
  if (process_) context_.loop.Unwatch(process_.get());
}

void LocalSession::AwaitJoin(Clock::time_point deadline) {
  if (timer_.has_value()) context_.loop.Cancel(*timer_);
  timer_ = context_.loop.At(deadline, [this] {
    timer_.reset();
    RefuseOn(last_id_,
             Late("join", context_.join_timeout,
                  absl::StrCat("the join took more than ", context_.join_timeout.count(), " ms")));
  });
}

absl::Status LocalSession::Start() {
  AwaitJoin(context_.loop.Now() + context_.join_timeout);
  WB_RETURN_IF_ERROR(context_.loop.Watch(socket_.get(), EPOLLIN,
                                         [this](std::uint32_t events) { OnReady(events); }));
  return WatchProcess();
}

absl::Status LocalSession::WatchProcess() {
  absl::StatusOr<FdHandle> process = OpenPeerProcess(socket_.get());
  if (process.ok()) {
    process_ = *std::move(process);
    return context_.loop.Watch(process_.get(), EPOLLIN,
                               [this](std::uint32_t /*events*/) { End("has ended"); });
  }
  if (absl::IsNotFound(process.status())) {
    End("has ended");
  } else if (absl::IsResourceExhausted(process.status())) {
    Refuse(process.status());
  } else {
    spdlog::debug("{}: its connection alone tells of its end: {}", Who(),
                  process.status().ToString());
  }
  return absl::OkStatus();
}

std::string LocalSession::Who() const {
  return absl::StrFormat("worker %s (pid %d)", join_.name().empty() ? "?" : join_.name(),
                         peer_.pid);
}

LocalSession::Clock::time_point LocalSession::DeadlineOf(const v1::ClientMessage& message) const {
  return context_.loop.Now() + std::chrono::milliseconds(message.timeout_ms());
}

bool LocalSession::moving() const {
  for (const auto& [id, name] : in_call_) {
    if (std::string_view(name) != "wait_for_version") return true;
  }
  return false;
}

std::uint32_t LocalSession::Interest() const {
  std::uint32_t events = paused_ ? 0 : std::uint32_t{EPOLLIN};
  if (!unsent_.empty()) events |= std::uint32_t{EPOLLOUT};
  return events;
}

void LocalSession::OnReady(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) SendUnsent();
  // What a client said before it went away is of no use any more while nothing is read.
  if (paused_ && (events & (std::uint32_t{EPOLLHUP} | std::uint32_t{EPOLLERR})) != 0) {
    return End("closed its connection");
  }
  if (step_ != Step::kEnded) ReceiveSome();
}

void LocalSession::ReceiveSome() {
  for (int i = 0; i < kPacketsPerTurn && step_ != Step::kEnded && !paused_; ++i) {
    Packet packet;
    const absl::StatusOr<ReceiveOutcome> outcome =
        ReceivePacket(socket_.get(), context_.buffer, packet);
    if (!outcome.ok()) return End(std::string(outcome.status().message()));
    if (*outcome == ReceiveOutcome::kNothingYet) return;
    if (*outcome == ReceiveOutcome::kClosed) return End("closed its connection");
    // What a refused client still sends is read so that it can read why, and dropped.
    if (step_ != Step::kRefused) OnPacket(std::move(packet));
  }
}

void LocalSession::OnPacket(Packet packet) {
  if (packet.bytes_cut) {
    return Refuse(absl::InvalidArgumentError(
        absl::StrCat("a packet has more than ", kMaxPacketBytes, " bytes")));
  }
  if (packet.descriptors_cut) {
    return Refuse(absl::InvalidArgumentError("a packet carries more than one descriptor"));
  }
  if (packet.descriptors_lost) return Refuse(NoDescriptorsLeft());
  v1::ClientMessage message;
  if (!message.ParseFromArray(packet.bytes.data(), static_cast<int>(packet.bytes.size()))) {
    return Refuse(absl::InvalidArgumentError(absl::StrCat(
        "a packet of ", packet.bytes.size(), " bytes is no weightbridge.v1.ClientMessage")));
  }
  last_id_ = message.id();
  OnMessage(message, std::move(packet.descriptors));
}

void LocalSession::OnMessage(const v1::ClientMessage& message, std::vector<FdHandle> descriptors) {
  if (step_ == Step::kJoining && message.body_case() != v1::ClientMessage::kJoinFinish) {
    absl::Status taken = join_.Take(message, std::move(descriptors));
    if (taken.ok() && message.has_join()) taken = context_.make_way(*this);
    if (!taken.ok()) return RefuseOn(message.id(), taken);
    if (std::optional<SessionJoin::LayoutCheck> check = join_.TakeLayoutCheck()) {
      CheckLayout(message, *std::move(check));
    }
    return;
  }
  if (!descriptors.empty()) {
    return RefuseOn(message.id(), absl::InvalidArgumentError(
                                      absl::StrCat(NameOf(message), " carries ", descriptors.size(),
                                                   " descriptors, want none")));
  }
  if (step_ == Step::kJoining) return OnJoinFinish(message);
  if (step_ == Step::kClaiming || step_ == Step::kPopulating || step_ == Step::kOpening) {
    return RefuseOn(message.id(), absl::FailedPreconditionError(absl::StrCat(
                                      NameOf(message), " before the reply to join_finish")));
  }
  OnCall(message);
}

/// Our own time is not the client's: what it set itself for the whole join bounds the check too.
void LocalSession::CheckLayout(const v1::ClientMessage& message, SessionJoin::LayoutCheck check) {
  paused_ = true;
  AwaitJoin(std::max(DeadlineOf(message), context_.loop.Now() + context_.join_timeout));
  const std::uint64_t id = message.id();
  const absl::Status watched = context_.loop.ChangeWatch(socket_.get(), Interest());
  if (!watched.ok()) return End(std::string(watched.message()));
  context_.work.Submit(
      [this, id, check = std::move(check), alive = std::weak_ptr(alive_), loop = &context_.loop] {
        using Checked = absl::StatusOr<SessionJoin::CheckedLayout>;
        loop->Post([this, id, alive, checked = std::make_shared<Checked>(check())] {
          if (!alive.expired()) OnLayoutChecked(id, std::move(*checked));
        });
      });
}

void LocalSession::OnLayoutChecked(std::uint64_t id,
                                   absl::StatusOr<SessionJoin::CheckedLayout> checked) {
  if (step_ != Step::kJoining) return;  // refused meanwhile, or gone
  paused_ = false;
  AwaitJoin(context_.loop.Now() + context_.join_timeout);
  const absl::Status status = join_.SetLayout(std::move(checked));
  if (!status.ok()) return RefuseOn(id, status);
  const absl::Status watched = context_.loop.ChangeWatch(socket_.get(), Interest());
  if (!watched.ok()) End(std::string(watched.message()));
}

void LocalSession::OnJoinFinish(const v1::ClientMessage& message) {
  if (context_.draining) {
    return RefuseOn(message.id(), absl::UnavailableError(absl::StrCat("node ", context_.join.node,
                                                                      " drains: no new sessions")));
  }
  absl::StatusOr<SessionOpening> opening = join_.Finish(context_.new_session_id());
  if (!opening.ok()) return RefuseOn(message.id(), opening.status());
  if (timer_.has_value()) context_.loop.Cancel(*timer_);
  timer_.reset();
  id_ = opening->session;
  step_ = Step::kClaiming;
  populating_ = std::make_shared<Populating>();
  populating_->id = message.id();
  populating_->since = context_.loop.Now();
  populating_->deadline = DeadlineOf(message);
  populating_->opening = *std::move(opening);
  populating_->worker = join_.name();
  timer_ = context_.loop.At(populating_->deadline, [this, id = message.id()] {
    timer_.reset();
    OnOpeningDeadline(id);
  });
  ClaimMemory();
}

/// Nothing of an earlier session touches what this one has claimed when it is opened.
void LocalSession::ClaimMemory() {
  const absl::Status claimed = claims_.Settle();
  if (absl::IsUnavailable(claimed)) return;  // until OnMemoryFree
  if (!claimed.ok()) return RefuseOn(populating_->id, claimed);
  Populate(populating_->id, populating_->deadline);
}

void LocalSession::OnMemoryFree() {
  if (step_ == Step::kClaiming) ClaimMemory();
}

/// The memory is made present by a work thread, which stops when the session ends or `deadline` has
/// passed.
void LocalSession::Populate(std::uint64_t id, Clock::time_point deadline) {
  step_ = Step::kPopulating;
  context_.work.Submit([this, id, deadline, work = populating_, alive = std::weak_ptr(alive_),
                        loop = &context_.loop]() mutable {
    const absl::Status status =
        PopulateAll(work->opening, work->worker, work->cancelled, work->buffer);
    // Of a session that has gone the memory is let go here, not on the loop.
    work.reset();
    loop->Post([this, id, status, deadline, alive] {
      if (!alive.expired()) OnPopulated(id, status, deadline);
    });
  });
}

void LocalSession::OnOpeningDeadline(std::uint64_t id) {
  const auto waited = context_.loop.Now() - populating_->since;
  if (step_ == Step::kClaiming) {
    const absl::Status claimed = claims_.Settle();
    return RefuseOn(id, Late("claim", waited,
                             absl::StrCat("the memory of ", join_.name(),
                                          " is not free in time: ", claimed.message())));
  }
  const std::vector<OpenedBuffer>& buffers = populating_->opening.buffers;
  const std::size_t at = populating_->buffer.load();
  std::string text = absl::StrCat("the memory of ", join_.name(), " is not present in time: ", at,
                                  " of ", buffers.size(), " buffers are");
  if (at < buffers.size()) {
    absl::StrAppend(&text, ", next '", buffers[at].name, "' of ", buffers[at].region.bytes(),
                    " bytes");
  }
  RefuseOn(id, Late("populate", waited, text));
}

absl::Status LocalSession::Late(const char* stage,
                                Clock::duration since,
                                const std::string& text) const {
  const std::chrono::duration<double> seconds = since;
  const Culprit self{Culprit::Reason::kLate, join_.name(), "", context_.join.node, "", stage,
                     seconds.count()};
  return WithCulprits(absl::DeadlineExceededError(text), {&self, 1});
}

void LocalSession::OnPopulated(std::uint64_t id,
                               const absl::Status& status,
                               Clock::time_point deadline) {
  if (step_ != Step::kPopulating) return;
  if (timer_.has_value()) context_.loop.Cancel(*timer_);
  timer_.reset();
  const std::shared_ptr<Populating> work = std::exchange(populating_, nullptr);
  if (!status.ok()) return RefuseOn(id, status);
  step_ = Step::kOpening;
  opened_ = context_.loop.Now();
  mapped_ = true;
  work->opening.released = context_.when_unmapped(claims_.session());
  context_.calls.OpenSession(
      std::move(work->opening), deadline,
      [this, id, alive = std::weak_ptr(alive_)](const SessionOpened& opened) {
        if (!alive.expired()) OnOpened(id, opened);
      });
}

void LocalSession::CancelPopulating() {
  if (populating_ == nullptr) return;
  populating_->cancelled.store(true);
  populating_.reset();
}

void LocalSession::OnOpened(std::uint64_t id, const SessionOpened& opened) {
  if (step_ != Step::kOpening) return;
  if (!opened.status.ok()) {
    step_ = Step::kJoining;  // SessionCalls has never had it
    return RefuseOn(id, opened.status);
  }
  step_ = Step::kOpen;
  spdlog::info("session={} worker={} pid={} uid={} opened", id_, join_.name(), peer_.pid,
               peer_.uid);
  v1::DaemonMessage reply = StatusReply(id, absl::OkStatus());
  reply.mutable_join()->set_session(id_);
  reply.mutable_join()->set_incarnation(context_.incarnation.value());
  reply.mutable_join()->set_node(context_.join.node);
  if (join_.in_doubt() != Version() && opened.memory != MemoryState::kInDoubt) {
    reply.mutable_join()->set_outcome(ToProto(opened.memory));
    reply.mutable_join()->set_outcome_version(join_.in_doubt().value());
  }
  Send(reply);
}

void LocalSession::OnCall(const v1::ClientMessage& message) {
  if (message.has_go_accepted()) return OnGoAccepted(message);
  if (message.has_leave()) return OnLeave(message);
  if (!message.has_publish() && !message.has_wait_for_version() && !message.has_receive()) {
    return RefuseOn(message.id(),
                    absl::FailedPreconditionError(absl::StrCat(
                        NameOf(message),
                        " in an open session, want publish, wait_for_version, receive, "
                        "go_accepted or leave")));
  }
  if (message.id() == 0 || in_call_.contains(message.id())) {
    return RefuseOn(message.id(), absl::InvalidArgumentError(absl::StrCat(
                                      NameOf(message), ": id ", message.id(),
                                      message.id() == 0 ? " is for notices" : " is in use")));
  }
  if (in_call_.size() >= kMaxCallsInProgress) {
    return Send(StatusReply(message.id(), absl::ResourceExhaustedError(absl::StrCat(
                                              Who(), " has ", in_call_.size(),
                                              " calls in progress, the most allowed"))));
  }
  if (context_.draining) {
    return Send(StatusReply(message.id(), absl::UnavailableError(absl::StrCat(
                                              "node ", context_.join.node, " drains"))));
  }
  if (const absl::Status fields = CheckFields(message); !fields.ok()) {
    return Send(StatusReply(message.id(), fields));
  }
  Call(message);
}

void LocalSession::Call(const v1::ClientMessage& message) {
  const std::uint64_t id = message.id();
  const Clock::time_point deadline = DeadlineOf(message);
  // Whatever the reply is, it is for this request and only as long as the session lives.
  const auto answer = [this, id, alive = std::weak_ptr(alive_)](auto to_reply) {
    return [this, id, alive, to_reply](const auto& result) {
      if (!alive.expired()) Answer(id, to_reply(result));
    };
  };
  if (message.has_publish()) {
    in_call_.emplace(id, "publish");
    const Version version(message.publish().version());
    const auto& groups = message.publish().required_groups();
    const PublishCall call{{OneLine(message.publish().label()), {groups.begin(), groups.end()}},
                           message.publish().snapshot()};
    context_.calls.Publish(id_, version, call, deadline,
                           answer([id, version](const PublishResult& result) {
                             return ReplyTo(id, version, result);
                           }));
  } else if (message.has_receive()) {
    in_call_.emplace(id, "receive");
    const Version version(message.receive().version());
    context_.calls.Receive(id_, version, deadline,
                           answer([id, version](const ReceiveResult& result) {
                             return ReplyTo(id, version, result);
                           }));
  } else {
    in_call_.emplace(id, "wait_for_version");
    context_.calls.WaitForVersion(
        id_, Version(message.wait_for_version().at_least()), deadline,
        answer([id](const absl::StatusOr<Version>& result) { return ReplyTo(id, result); }));
  }
}

void LocalSession::NotifyGo(Version version, std::function<void()> accepted) {
  if (step_ != Step::kOpen) return;  // its end is being told
  go_[version.value()] = std::move(accepted);
  Send(GoMessage(version));
}

void LocalSession::Notify(const v1::DaemonMessage& notice) {
  if (step_ == Step::kOpen) Send(notice);
}

/// Its reason is logged where the session is closed, and told to the leader.
void LocalSession::OnLeave(const v1::ClientMessage& message) {
  const absl::Status fits = CheckLength("leave.reason", message.leave().reason(), kMaxTextBytes);
  if (!fits.ok()) return RefuseOn(message.id(), fits);
  spdlog::info("session={} {} leaves", id_, Who());
  CloseCalls(absl::StrCat("left: ", OneLine(message.leave().reason())));
  End("has left");
}

void LocalSession::OnGoAccepted(const v1::ClientMessage& message) {
  const std::uint64_t version = message.go_accepted().version();
  const auto found = go_.find(version);
  if (found == go_.end()) {
    return RefuseOn(message.id(),
                    absl::FailedPreconditionError(absl::StrCat("go_accepted for version ", version,
                                                               ", which nobody asked for")));
  }
  const std::function<void()> accepted = std::move(found->second);
  go_.erase(found);
  accepted();
}

void LocalSession::Answer(std::uint64_t id, const v1::DaemonMessage& reply) {
  in_call_.erase(id);
  if (step_ == Step::kOpen) Send(reply);
  context_.settled();
}

void LocalSession::Send(const v1::DaemonMessage& message) {
  if (unsent_.size() >= kMaxUnsent) {
    return End(absl::StrCat("does not read: ", unsent_.size(), " replies wait for it"));
  }
  unsent_.push_back(ToPacket(message));
  if (unsent_.size() == 1) SendUnsent();
}

void LocalSession::SendUnsent() {
  while (!unsent_.empty()) {
    const absl::StatusOr<SendOutcome> outcome = SendPacket(socket_.get(), unsent_.front());
    if (!outcome.ok()) return End(std::string(outcome.status().message()));
    if (*outcome == SendOutcome::kClosed) return End("closed its connection");
    if (*outcome == SendOutcome::kNoRoom) break;
    unsent_.pop_front();
  }
  const absl::Status watched = context_.loop.ChangeWatch(socket_.get(), Interest());
  if (!watched.ok()) return End(std::string(watched.message()));
  // No more will come; the client sees the end once it has read all that was said.
  if (step_ == Step::kRefused && unsent_.empty()) ::shutdown(socket_.get(), SHUT_WR);
  if (unsent_.empty()) context_.settled();
}

void LocalSession::Refuse(const absl::Status& why) {
  RefuseOn(0, why);
}

/// One line. That a client is not let in is a warning: the log folds those that come again.
void LocalSession::LogEnd(bool refused, const std::string& reason) const {
  const bool open = step_ == Step::kOpen;
  spdlog::log(open && !refused ? spdlog::level::info : spdlog::level::warn, "session={} {} {}",
              id_.empty() ? "-" : id_, Who(), OneLine(reason));
}

void LocalSession::RefuseOn(std::uint64_t id, const absl::Status& why) {
  if (step_ == Step::kRefused || step_ == Step::kEnded) return;
  const std::string reason = absl::StrCat("refused: ", why.ToString());
  LogEnd(true, reason);
  CloseCalls(reason);
  CancelPopulating();
  LetMemoryGo();
  paused_ = false;
  step_ = Step::kRefused;
  if (timer_.has_value()) context_.loop.Cancel(*timer_);
  timer_ = context_.loop.At(context_.loop.Now() + context_.linger, [this] {
    timer_.reset();
    End("was refused and did not hang up");
  });
  Send(StatusReply(id, why));
}

void LocalSession::CloseCalls(const std::string& reason) {
  go_.clear();
  in_call_.clear();
  if (step_ != Step::kOpening && step_ != Step::kOpen) return;
  step_ = Step::kRefused;  // answers that come from within CloseSession have nowhere to go
  context_.calls.CloseSession(id_, absl::StrCat(Who(), " ", reason));
}

/// What SessionCalls has mapped stays claimed until it is unmapped.
void LocalSession::LetMemoryGo() {
  if (mapped_) {
    claims_.Leave();
  } else {
    claims_.Release();
  }
}

bool LocalSession::EndsIfGone() {
  std::array<pollfd, 2> ends{pollfd{socket_.get(), 0, 0}, pollfd{process_.get(), POLLIN, 0}};
  if (::poll(ends.data(), ends.size(), 0) <= 0) return false;
  ReceiveSome();  // why it went, if it said
  if (step_ != Step::kEnded) End(ends[1].revents != 0 ? "has ended" : "closed its connection");
  return true;
}

bool LocalSession::IsSameRank(const LocalSession& other) const {
  return !join_.name().empty() && join_.name() == other.join_.name() &&
         join_.job() == other.join_.job();
}

std::string LocalSession::Describe() const {
  return absl::StrCat("session ", id_, " of ", Who(), ", open since ",
                      Seconds(context_.loop.Now() - opened_));
}

void LocalSession::End(const std::string& reason) {
  if (step_ == Step::kEnded) return;
  if (step_ != Step::kRefused) LogEnd(false, reason);
  CloseCalls(reason);
  CancelPopulating();
  LetMemoryGo();
  step_ = Step::kEnded;
  context_.loop.Unwatch(socket_.get());
  socket_.Reset();
  if (process_) context_.loop.Unwatch(process_.get());
  process_.Reset();
  unsent_.clear();
  ended_();
  context_.settled();
}

}  // namespace wb
