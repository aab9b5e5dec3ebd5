#include "daemon/rpc/cluster/cluster_client.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/support/client_callback.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "weightbridge/v1/cluster.grpc.pb.h"

#include "daemon/rpc/cluster/cluster_convert.h"
#include "daemon/rpc/cluster/connect_failure.h"
#include "daemon/rpc/cluster/outgoing.h"
#include "daemon/rpc/cluster/parts.h"
#include "daemon/rpc/sha256.h"
#include "daemon/rpc/tls/credentials.h"
#include "planner/base/mutex.h"
#include "proto/convert.h"

namespace wb {
namespace {

/// Smaller contents go with the registration at once.
constexpr std::uint64_t kInlineContentsBytes = std::uint64_t{16} * 1024;

/// By address family, so that gRPC resolves no name.
std::string TargetOf(const TcpAddress& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return absl::StrCat(v6 ? "ipv6:" : "ipv4:", address.ToString());
}

}  // namespace

/// One attempt at a stream: gRPC's side of ClusterClient. Everything that happens is posted to the
/// client's loop. It keeps itself alive until gRPC is done with it. Thread-safe.
class ClusterClient::Stream final
    : public grpc::ClientBidiReactor<v1::ClusterRequest, v1::ClusterReply>,
      public std::enable_shared_from_this<Stream> {
 public:
  Stream(ClusterClient& client, std::uint64_t generation)
      : client_(client),
        loop_(client.loop_),
        generation_(generation),
        alive_(client.alive_),
        counters_(client.counters_),
        most_bytes_(client.options_.grpc.message_bytes),
        stub_(v1::ClusterService::NewStub(client.channel_)) {
    context_.emplace();
  }

  void Start(v1::ClusterRequest hello) {
    const MutexLock lock(mu_);
    self_ = shared_from_this();
    stub_->async()->Attach(&*context_, this);
    AddHold();  // writes begin outside of gRPC's callbacks
    StartRead(&reply_);
    Write(std::move(hello));
    StartCall();
  }

  void Send(v1::ClusterRequest request) {
    const MutexLock lock(mu_);
    Write(std::move(request));
  }

  /// Ends the stream; `why` is reported in place of gRPC's own words.
  void Cancel(absl::Status why) {
    const MutexLock lock(mu_);
    if (cancelled_.ok()) cancelled_ = std::move(why);
    if (context_.has_value()) context_->TryCancel();
  }

  /// Returns when gRPC uses the stream no more.
  void WaitDone() {
    const MutexLock lock(mu_);
    while (!done_) {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
      if (!done_changed_.WaitUntil(mu_, deadline) && !done_) {
        spdlog::error("the stream to the leader is cancelled and does not end");
      }
    }
  }

  void OnReadDone(bool ok) override {
    // Reads follow one another, on any thread; the lock shows that to whoever watches for races.
    { const MutexLock lock(mu_); }
    if (ok) Take();
    const MutexLock lock(mu_);
    if (ok) {
      StartRead(&reply_);
      return;
    }
    closed_ = true;
    RemoveHold();
  }

  void OnWriteDone(bool ok) override {
    const MutexLock lock(mu_);
    const v1::ClusterRequest* next = outgoing_.Written();
    if (!ok) closed_ = true;
    if (!closed_ && next != nullptr) StartWrite(next);
  }

  void OnDone(const grpc::Status& status) override {
    std::shared_ptr<Stream> self;
    const MutexLock lock(mu_);
    absl::Status why = cancelled_.ok() ? FromGrpc(status) : cancelled_;
    if (why.ok()) why = absl::UnavailableError("the leader ended the stream");
    // Before the client hears of the end: it holds the channel until then, so that it is not one of
    // gRPC's own threads that lets go of it last (gRPC would wait for that thread in itself).
    context_.reset();
    stub_.reset();
    Post([generation = generation_, why](ClusterClient& client) { client.OnEnd(generation, why); });
    done_ = true;
    done_changed_.NotifyAll();
    self = std::move(self_);
    // `lock` is let go before `self`, which may be the last to hold us.
  }

 private:
  void Write(v1::ClusterRequest request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (closed_) return;  // the end is on its way to the client
    counters_->sent_bytes += request.ByteSizeLong();
    ++counters_->sent_messages;
    const v1::ClusterRequest* now = outgoing_.Push(std::move(request));
    if (now != nullptr) StartWrite(now);
  }

  /// Runs `report` on the loop as long as the client lives.
  void Post(std::function<void(ClusterClient&)> report) {
    loop_.Post([client = &client_, alive = alive_, report = std::move(report)] {
      if (!alive.expired()) report(*client);
    });
  }

  void Take();
  void TakeWelcome();
  void TakePlanBytes();
  absl::Status PutPlanTogether();
  void Unreadable(const absl::Status& why);

  /// A plan on its way in parts.
  struct ArrivingPlan {
    std::uint64_t attempt = 0;
    std::string bytes;
    absl::Status fault;  // what was wrong with a part
  };

  ClusterClient& client_;
  EventLoop& loop_;
  const std::uint64_t generation_;
  const std::weak_ptr<const char> alive_;
  const std::shared_ptr<LinkCounters> counters_;
  const std::uint64_t most_bytes_;                  // of a plan
  std::unique_ptr<v1::ClusterService::Stub> stub_;  // until OnDone
  v1::ClusterReply reply_;                          // reads follow one another
  std::optional<Term> term_;                        // as reply_
  ArrivingPlan plan_;                               // as reply_
  std::uint64_t refused_ = 0;                       // as reply_

  Mutex mu_;
  CondVar done_changed_;
  Outgoing<v1::ClusterRequest> outgoing_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;  // no write may begin any more
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status cancelled_ ABSL_GUARDED_BY(mu_);
  std::optional<grpc::ClientContext> context_ ABSL_GUARDED_BY(mu_);  // until OnDone
  std::shared_ptr<Stream> self_ ABSL_GUARDED_BY(mu_);
};

void ClusterClient::Stream::Take() {
  counters_->received_bytes += reply_.ByteSizeLong();
  ++counters_->received_messages;
  if (!term_.has_value()) return TakeWelcome();
  if (reply_.term() != term_->value()) {
    if (refused_++ == 0) {
      spdlog::warn("leader: {} of term {} refused, the stream is of term {}", NameOf(reply_),
                   reply_.term(), term_->value());
    }
    return;
  }
  if (reply_.has_plan_bytes()) return TakePlanBytes();
  if (reply_.has_want_contents()) {
    return Post([generation = generation_, sha256 = reply_.want_contents().sha256()](
                    ClusterClient& client) { client.OnWantContents(generation, sha256); });
  }
  if (const absl::Status whole = PutPlanTogether(); !whole.ok()) return Unreadable(whole);
  absl::StatusOr<FromLeader> message = FromLeaderFromProto(reply_);
  if (!message.ok()) return Unreadable(message.status());
  Post([generation = generation_, message = *std::move(message)](ClusterClient& client) mutable {
    client.OnMessage(generation, std::move(message));
  });
}

void ClusterClient::Stream::TakeWelcome() {
  if (!reply_.has_welcome() || reply_.term() == 0) {
    return Cancel(absl::InternalError(
        absl::StrCat("leader: ", NameOf(reply_), " of term ", reply_.term(), " before Welcome")));
  }
  term_ = Term(reply_.term());
  Post([generation = generation_, term = *term_](ClusterClient& client) {
    client.OnWelcome(generation, term);
  });
}

/// What is wrong with a part is told when its PrepareAttempt comes.
void ClusterClient::Stream::TakePlanBytes() {
  const v1::PlanBytes& part = reply_.plan_bytes();
  if (part.offset() == 0 || part.attempt() != plan_.attempt) plan_ = {part.attempt(), {}, {}};
  if (plan_.fault.ok()) {
    plan_.fault = AddPart(part.offset(), part.data(), most_bytes_, plan_.bytes);
  }
}

/// Puts the plan that came in parts where the rest of its PrepareAttempt is.
absl::Status ClusterClient::Stream::PutPlanTogether() {
  if (!reply_.has_prepare() || reply_.prepare().plan_bytes() == 0) return absl::OkStatus();
  v1::PrepareAttempt& prepare = *reply_.mutable_prepare();
  ArrivingPlan plan = std::exchange(plan_, {});
  if (plan.attempt != prepare.attempt()) {
    return absl::InvalidArgumentError("plan: no part of it has come");
  }
  if (!plan.fault.ok()) {
    return {plan.fault.code(), absl::StrCat("plan: ", plan.fault.message())};
  }
  if (plan.bytes.size() != prepare.plan_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("plan: ", plan.bytes.size(), " bytes of ",
                                                   prepare.plan_bytes(), " have come"));
  }
  if (!prepare.mutable_plan()->ParseFromString(plan.bytes)) {
    return absl::InvalidArgumentError("plan: its parts are no weightbridge.v1.Plan");
  }
  return absl::OkStatus();
}

/// A plan part that we cannot read fails its attempt; any other such message ends the stream.
void ClusterClient::Stream::Unreadable(const absl::Status& why) {
  const absl::Status named(why.code(),
                           absl::StrCat("leader: ", NameOf(reply_), ": ", why.message()));
  if (!reply_.has_prepare() || reply_.prepare().attempt() == 0) return Cancel(named);
  Send(ToProto(AttemptFailed{AttemptId(reply_.prepare().attempt()), named}, *term_));
}

ClusterClient::ClusterClient(EventLoop& loop, ClusterClientOptions options)
    : loop_(loop), options_(std::move(options)) {}

ClusterClient::~ClusterClient() {
  Stop();
  if (stream_ != nullptr) stream_->WaitDone();
}

void ClusterClient::Start(LeaderEvents& events) {
  events_ = &events;
  Connect();
}

void ClusterClient::Stop() {
  events_ = nullptr;
  term_.reset();
  last_error_ = absl::UnavailableError("this daemon stops");
  if (retry_.has_value()) loop_.Cancel(*retry_);
  retry_.reset();
  if (stream_ != nullptr) stream_->Cancel(absl::CancelledError("this daemon stops"));
}

void ClusterClient::Connect() {
  ++generation_;
  channel_ = grpc::CreateCustomChannel(
      TargetOf(options_.leader), ChannelCredentialsFor(options_.grpc.tls, options_.leader_name),
      ChannelArgumentsFor(options_.grpc));
  stream_ = std::make_shared<Stream>(*this, generation_);
  stream_->Start(ToProto(options_.hello, Term(0)));
  // One timer serves both waits: for the Welcome, and between two streams.
  retry_ = loop_.At(loop_.Now() + options_.grpc.peer_timeout, [this] {
    retry_.reset();
    stream_->Cancel(absl::DeadlineExceededError(
        absl::StrCat("leader ", options_.leader.ToString(), " did not welcome us within ",
                     options_.grpc.peer_timeout.count(), " ms")));
  });
}

void ClusterClient::Send(ToLeader message) {
  if (!term_.has_value() || events_ == nullptr) return;
  if (auto* worker = std::get_if<RegisterWorker>(&message)) return Register(std::move(*worker));
  if (const auto* left = std::get_if<UnregisterWorker>(&message)) Withdraw(left->session);
  v1::ClusterRequest wire = ToProto(message, *term_);
  const std::size_t bytes = wire.ByteSizeLong();
  if (bytes <= static_cast<std::size_t>(MaxMessageBytes(options_.grpc))) {
    return stream_->Send(std::move(wire));
  }
  spdlog::error("to the leader: {} has {} bytes, limits.message_bytes allows {}", NameOf(wire),
                bytes, options_.grpc.message_bytes);
}

/// Offers contents by their digest, where they are worth a question and its answer.
void ClusterClient::Register(RegisterWorker worker) {
  if (worker.contents.bytes == 0) {
    const std::string contents = ContentsOf(*worker.registration);
    worker.contents = {Sha256(contents), contents.size()};
  }
  const std::uint64_t bytes = worker.contents.bytes;
  if (bytes > options_.grpc.message_bytes) {
    const absl::Status too_large = absl::ResourceExhaustedError(
        absl::StrCat("register_worker: the layout has ", bytes,
                     " bytes, limits.message_bytes allows ", options_.grpc.message_bytes));
    spdlog::error("to the leader: {}", too_large.ToString());
    return loop_.Post([this, alive = std::weak_ptr(alive_), generation = generation_,
                       refused = WorkerRegistered{worker.session, too_large}] {
      if (!alive.expired()) OnMessage(generation, refused);
    });
  }
  if (bytes <= kInlineContentsBytes) {
    worker.contents = {};
  } else {
    Offered& offered = offered_[worker.contents.sha256];
    offered.registration = worker.registration;
    offered.sessions.insert(worker.session);
  }
  stream_->Send(ToProto(worker, *term_));
}

void ClusterClient::Withdraw(const SessionId& session) {
  for (auto it = offered_.begin(); it != offered_.end();) {
    const auto entry = it++;
    entry->second.sessions.erase(session);
    if (entry->second.sessions.empty()) offered_.erase(entry);
  }
}

void ClusterClient::OnWantContents(std::uint64_t generation, const std::string& sha256) {
  if (generation != generation_ || events_ == nullptr || !term_.has_value()) return;
  const auto found = offered_.find(sha256);
  if (found == offered_.end()) return;  // its sessions have gone, and the leader hears of it
  const std::string contents = ContentsOf(*found->second.registration);
  ForEachPart(contents, [&](std::uint64_t offset, std::string_view part) {
    v1::ClusterRequest wire;
    wire.set_term(term_->value());
    wire.mutable_contents_part()->set_sha256(sha256);
    wire.mutable_contents_part()->set_offset(offset);
    wire.mutable_contents_part()->set_data(part.data(), part.size());
    stream_->Send(std::move(wire));
  });
}

void ClusterClient::OnWelcome(std::uint64_t generation, Term term) {
  if (generation != generation_ || events_ == nullptr) return;
  if (retry_.has_value()) loop_.Cancel(*retry_);
  retry_.reset();
  term_ = term;
  welcomed_ = loop_.Now();
  last_error_ = absl::OkStatus();
  spdlog::info("leader={} term={} connected", options_.leader.ToString(), term.value());
  events_->OnLeaderConnected();
}

void ClusterClient::OnMessage(std::uint64_t generation, FromLeader message) {
  if (generation != generation_ || events_ == nullptr || !term_.has_value()) return;
  if (const auto* answer = std::get_if<WorkerRegistered>(&message)) Withdraw(answer->session);
  events_->OnLeaderMessage(std::move(message));
}

void ClusterClient::OnEnd(std::uint64_t generation, const absl::Status& ended) {
  if (generation != generation_ || events_ == nullptr) return;
  const bool was_connected = term_.has_value();
  // One that welcomes us and fails at once, each time, is not dialled without a pause.
  if (was_connected && loop_.Now() - welcomed_ >= options_.longest_backoff) failures_ = 0;
  const absl::Status why =
      was_connected ? ended : ExplainConnectFailure(ended, options_.grpc.tls.get());
  term_.reset();
  offered_.clear();
  // The first of a row that fail alike is told; a leader that stays away would fill the log.
  if (failures_++ == 0 || why != last_error_) {
    spdlog::warn("leader={} lost: {}", options_.leader.ToString(), why.ToString());
  }
  last_error_ = why;
  if (retry_.has_value()) loop_.Cancel(*retry_);
  retry_ = loop_.At(loop_.Now() + NextBackoff(), [this] {
    retry_.reset();
    Connect();
  });
  if (was_connected) events_->OnLeaderLost(why);
}

std::chrono::milliseconds ClusterClient::NextBackoff() {
  const std::uint64_t doublings = std::min<std::uint64_t>(failures_ - 1, 16);
  const auto doubled = options_.first_backoff * (std::uint64_t{1} << doublings);
  const auto longest = std::min<std::chrono::milliseconds>(doubled, options_.longest_backoff);
  // Half of it is spread by the daemon's own number, so that a cluster does not come at once.
  const std::uint64_t spread = (options_.hello.incarnation.value() >> (failures_ % 32)) % 1024;
  return longest / 2 + longest / 2 * spread / 1024;
}

}  // namespace wb
