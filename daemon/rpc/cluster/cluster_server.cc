#include "daemon/rpc/cluster/cluster_server.h"

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_callback.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "weightbridge/v1/cluster.grpc.pb.h"

#include "daemon/rpc/cluster/cluster_convert.h"
#include "daemon/rpc/cluster/layout_intake.h"
#include "daemon/rpc/cluster/outgoing.h"
#include "daemon/rpc/cluster/parts.h"
#include "daemon/rpc/tls/credentials.h"
#include "planner/base/mutex.h"
#include "proto/convert.h"

namespace wb {
namespace {

// Streams that have not said hello, which comes right after the beginning.
constexpr std::size_t kMaxSilent = 1024;
// Messages of one stream that the leader's loop has not seen; one that says more is not read.
constexpr int kMaxUnseen = 256;

void PackPlan(PrepareAttempt& message) {
  if (!message.plan.has_value()) return;
  message.packed_plan =
      std::make_shared<const std::string>(ToProto(*message.plan).SerializeAsString());
  message.plan.reset();
}

}  // namespace

/// The gRPC service with its streams. Thread-safe. Locks are taken in the order intake,
/// service, stream.
class ClusterServer::Service final : public v1::ClusterService::CallbackService {
 public:
  Service(EventLoop& loop, Term term, const GrpcOptions& options)
      : loop_(loop),
        term_(term),
        options_(options),
        intake_({.contents_bytes = options.message_bytes}, Sinks()) {}

  absl::Status Listen(TcpAddress& address, PeerEvents& events);
  void Send(PeerId peer, FromLeader message);
  void Close(PeerId peer, const absl::Status& status);
  void Shutdown(std::chrono::system_clock::time_point deadline);
  std::uint64_t refused() const { return refused_.load() + intake_.stale_parts(); }
  std::size_t silent() {
    const MutexLock lock(mu_);
    return silent_.size();
  }

  grpc::ServerBidiReactor<v1::ClusterRequest, v1::ClusterReply>* Attach(
      grpc::CallbackServerContext* context) override;

 private:
  class Stream;

  IntakeSinks Sinks();
  void Report(PeerId peer, ToLeader message);
  /// The stream has said hello.
  void Greeted(PeerId peer);
  void EndSilent(PeerId peer);
  /// Goes on reading the stream when the loop has seen all that it said.
  void ReadOnWhenSeen(PeerId peer);
  void SendWire(PeerId peer, v1::ClusterReply wire);
  void SendPlan(PeerId peer, const PrepareAttempt& message);
  void RefuseToSend(PeerId peer,
                    const FromLeader& message,
                    const std::string& name,
                    std::size_t bytes);

  EventLoop& loop_;
  const Term term_;
  const GrpcOptions options_;
  PeerEvents* events_ = nullptr;  // set before the server listens
  std::atomic<std::uint64_t> refused_{0};
  std::unique_ptr<grpc::Server> server_;
  LayoutIntake intake_;

  Mutex mu_;
  std::uint64_t next_peer_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<PeerId, Stream*> streams_ ABSL_GUARDED_BY(mu_);  // each removes itself when it is done
  std::set<PeerId> silent_ ABSL_GUARDED_BY(mu_);            // of streams_: no hello yet
};

/// One daemon's stream. Deletes itself when gRPC is done with it. Thread-safe.
class ClusterServer::Service::Stream final
    : public grpc::ServerBidiReactor<v1::ClusterRequest, v1::ClusterReply> {
 public:
  Stream(Service& service, PeerId peer, std::string from)
      : service_(service), peer_(peer), name_(std::move(from)) {}

  void ReadOn() {
    const MutexLock lock(mu_);
    if (!finished_) StartRead(&request_);
  }

  void Send(v1::ClusterReply reply) {
    const MutexLock lock(mu_);
    if (closing_.has_value()) return;
    const v1::ClusterReply* now = outgoing_.Push(std::move(reply));
    if (now != nullptr) StartWrite(now);
  }

  /// Ends the stream with `status` when what was sent before has left.
  void Close(const absl::Status& status) {
    const MutexLock lock(mu_);
    if (closing_.has_value()) return;
    closing_ = status;
    if (outgoing_.idle()) FinishNow();
  }

  void OnReadDone(bool ok) override {
    // Reads follow one another, on any thread; the lock shows that to whoever watches for races.
    { const MutexLock lock(mu_); }
    if (!ok) return Lost();
    if (!Take()) return;
    if (++unseen_ < kMaxUnseen) return ReadOn();
    unseen_ = 0;
    service_.ReadOnWhenSeen(peer_);
  }

  void OnWriteDone(bool ok) override {
    const MutexLock lock(mu_);
    const v1::ClusterReply* next = outgoing_.Written();
    if (finished_) return;
    if (ok && next != nullptr) return StartWrite(next);
    if (closing_.has_value()) FinishNow();
  }

  void OnDone() override;

 private:
  bool Take();
  bool TakeHello();
  void Pass(ToLeader message);
  bool Unreadable(const absl::Status& why);
  void Lost();
  void FinishNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    finished_ = true;
    Finish(ToGrpc(*closing_));
  }

  Service& service_;
  const PeerId peer_;
  v1::ClusterRequest request_;  // reads follow one another
  std::string name_;            // as request_: "node n0 (pid 12 on h)" after the hello
  bool greeted_ = false;        // as request_
  std::uint64_t refused_ = 0;   // as request_
  int unseen_ = 0;              // as request_

  Mutex mu_;
  Outgoing<v1::ClusterReply> outgoing_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> closing_ ABSL_GUARDED_BY(mu_);
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
};

/// False when the stream is to be read no more.
bool ClusterServer::Service::Stream::Take() {
  if (!greeted_) return TakeHello();
  if (request_.term() != service_.term_.value()) {
    service_.refused_.fetch_add(1);
    if (refused_++ == 0) {
      spdlog::warn("{}: {} of term {} refused, this leader's term is {}", name_, NameOf(request_),
                   request_.term(), service_.term_.value());
    }
    return true;
  }
  if (request_.has_hello()) return Unreadable(absl::InvalidArgumentError("a second hello"));
  if (request_.has_contents_part()) {
    service_.intake_.Take(peer_, request_.contents_part());
    return true;
  }
  absl::StatusOr<ToLeader> message = ToLeaderFromProto(request_);
  if (!message.ok()) return Unreadable(message.status());
  Pass(*std::move(message));
  return true;
}

/// Workers whose contents come by digest go through the intake, all else to the leader.
void ClusterServer::Service::Stream::Pass(ToLeader message) {
  if (auto* worker = std::get_if<RegisterWorker>(&message);
      worker != nullptr && worker->contents.bytes != 0) {
    return service_.intake_.Register(peer_, std::move(*worker));
  }
  if (const auto* left = std::get_if<UnregisterWorker>(&message)) {
    service_.intake_.Forget(peer_, left->session);
  }
  service_.Report(peer_, std::move(message));
}

bool ClusterServer::Service::Stream::TakeHello() {
  if (!request_.has_hello()) {
    return Unreadable(absl::FailedPreconditionError("out of order, want hello first"));
  }
  absl::StatusOr<ToLeader> message = ToLeaderFromProto(request_);
  if (!message.ok()) return Unreadable(message.status());
  const ClusterHello& hello = std::get<ClusterHello>(*message);
  name_ = absl::StrCat("node ", hello.node, " (pid ", hello.pid, " on ", hello.host, ")");
  greeted_ = true;
  service_.Greeted(peer_);
  spdlog::debug("peer={} {} attached", peer_.value(), name_);
  service_.Report(peer_, *std::move(message));
  return true;
}

bool ClusterServer::Service::Stream::Unreadable(const absl::Status& why) {
  const absl::Status named(why.code(), absl::StrCat(NameOf(request_), ": ", why.message()));
  if (request_.has_register_worker() && greeted_) {
    Send(ToProto(WorkerRegistered{request_.register_worker().session(), why}, service_.term_));
    return true;
  }
  spdlog::warn("{}: stream ended: {}", name_, named.ToString());
  Close(named);
  Lost();
  return false;
}

/// Tells the leader, once.
void ClusterServer::Service::Stream::Lost() {
  if (greeted_) {
    greeted_ = false;
    service_.intake_.Forget(peer_);
    service_.loop_.Post([events = service_.events_, peer = peer_, name = name_] {
      events->OnPeerLost(peer, absl::UnavailableError(absl::StrCat(name, " is gone")));
    });
    spdlog::debug("peer={} {} detached", peer_.value(), name_);
  }
  Close(absl::OkStatus());
}

void ClusterServer::Service::Stream::OnDone() {
  // The last callback may still hold our lock; whoever sends to us has the service's.
  { const MutexLock lock(mu_); }
  {
    const MutexLock lock(service_.mu_);
    service_.streams_.erase(peer_);
    service_.silent_.erase(peer_);
  }
  delete this;
}

grpc::ServerBidiReactor<v1::ClusterRequest, v1::ClusterReply>* ClusterServer::Service::Attach(
    grpc::CallbackServerContext* context) {
  Stream* stream = nullptr;
  PeerId peer(0);
  std::size_t silent = 0;
  {
    const MutexLock lock(mu_);
    peer = PeerId(next_peer_++);
    stream = new Stream(*this, peer, context->peer());
    streams_.emplace(peer, stream);
    silent = silent_.size();
    silent_.insert(peer);
  }
  stream->ReadOn();
  if (silent >= kMaxSilent) {
    stream->Close(absl::ResourceExhaustedError(
        absl::StrCat(silent, " streams have not said hello yet, the most allowed")));
    return stream;
  }
  loop_.Post([this, peer] {
    loop_.At(loop_.Now() + options_.peer_timeout, [this, peer] { EndSilent(peer); });
  });
  return stream;
}

void ClusterServer::Service::Greeted(PeerId peer) {
  const MutexLock lock(mu_);
  silent_.erase(peer);
}

void ClusterServer::Service::EndSilent(PeerId peer) {
  const MutexLock lock(mu_);
  if (silent_.erase(peer) == 0) return;
  streams_.at(peer)->Close(absl::DeadlineExceededError(
      absl::StrCat("no hello within ", options_.peer_timeout.count(), " ms (timeouts.peer)")));
}

void ClusterServer::Service::ReadOnWhenSeen(PeerId peer) {
  loop_.Post([this, peer] {
    const MutexLock lock(mu_);
    const auto found = streams_.find(peer);
    if (found != streams_.end()) found->second->ReadOn();
  });
}

absl::Status ClusterServer::Service::Listen(TcpAddress& address, PeerEvents& events) {
  events_ = &events;
  int port = 0;
  grpc::ServerBuilder builder;
  Apply(options_, builder);
  builder.AddListeningPort(address.ToString(), ServerCredentialsFor(options_.tls), &port);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address.ToString(), ": is the port taken?"));
  }
  address.port = static_cast<std::uint16_t>(port);
  return absl::OkStatus();
}

IntakeSinks ClusterServer::Service::Sinks() {
  return {[this](PeerId peer, RegisterWorker call) { Report(peer, std::move(call)); },
          [this](PeerId peer, const WorkerRegistered& refused) {
            spdlog::warn("peer={} session={} refused: {}", peer.value(), refused.session,
                         refused.status.ToString());
            SendWire(peer, ToProto(refused, term_));
          },
          [this](PeerId peer, const std::string& sha256) {
            v1::ClusterReply wire;
            wire.set_term(term_.value());
            wire.mutable_want_contents()->set_sha256(sha256);
            SendWire(peer, std::move(wire));
          }};
}

void ClusterServer::Service::Report(PeerId peer, ToLeader message) {
  loop_.Post([events = events_, peer, message = std::move(message)]() mutable {
    events->OnMessage(peer, std::move(message));
  });
}

void ClusterServer::Service::Send(PeerId peer, FromLeader message) {
  auto* prepare = std::get_if<PrepareAttempt>(&message);
  if (prepare != nullptr) PackPlan(*prepare);
  v1::ClusterReply wire = ToProto(message, term_);
  const std::size_t bytes =
      wire.ByteSizeLong() + (wire.has_prepare() ? wire.prepare().plan_bytes() : 0);
  if (bytes > static_cast<std::size_t>(MaxMessageBytes(options_))) {
    return RefuseToSend(peer, message, NameOf(wire), bytes);
  }
  if (prepare != nullptr && prepare->packed_plan != nullptr) SendPlan(peer, *prepare);
  SendWire(peer, std::move(wire));
}

/// A plan goes before, in parts.
void ClusterServer::Service::SendPlan(PeerId peer, const PrepareAttempt& message) {
  ForEachPart(*message.packed_plan, [&](std::uint64_t offset, std::string_view part) {
    v1::ClusterReply bytes;
    bytes.set_term(term_.value());
    bytes.mutable_plan_bytes()->set_attempt(message.attempt.value());
    bytes.mutable_plan_bytes()->set_offset(offset);
    bytes.mutable_plan_bytes()->set_data(part.data(), part.size());
    SendWire(peer, std::move(bytes));
  });
}

void ClusterServer::Service::SendWire(PeerId peer, v1::ClusterReply wire) {
  const MutexLock lock(mu_);
  const auto found = streams_.find(peer);
  if (found != streams_.end()) found->second->Send(std::move(wire));
}

/// Too large a plan part fails its attempt as though the daemon could not prepare it: by name, at
/// once.
void ClusterServer::Service::RefuseToSend(PeerId peer,
                                          const FromLeader& message,
                                          const std::string& name,
                                          std::size_t bytes) {
  const absl::Status too_large = absl::ResourceExhaustedError(absl::StrCat(
      name, " has ", bytes, " bytes, limits.message_bytes allows ", options_.message_bytes));
  spdlog::error("peer={}: {}", peer.value(), too_large.ToString());
  const auto* prepare = std::get_if<PrepareAttempt>(&message);
  if (prepare == nullptr) return;
  loop_.Post([events = events_, peer, failed = AttemptFailed{prepare->attempt, too_large}] {
    events->OnMessage(peer, failed);
  });
}

void ClusterServer::Service::Close(PeerId peer, const absl::Status& status) {
  const MutexLock lock(mu_);
  const auto found = streams_.find(peer);
  if (found != streams_.end()) found->second->Close(status);
}

void ClusterServer::Service::Shutdown(std::chrono::system_clock::time_point deadline) {
  if (server_ == nullptr) return;
  {
    const MutexLock lock(mu_);
    for (const auto& [peer, stream] : streams_) {
      stream->Close(absl::UnavailableError("the leader stops"));
    }
  }
  server_->Shutdown(deadline);
  server_->Wait();
  server_.reset();
}

ClusterServer::ClusterServer(EventLoop& loop, Term term, const GrpcOptions& options)
    : service_(std::make_unique<Service>(loop, term, options)) {}

ClusterServer::~ClusterServer() {
  Shutdown(std::chrono::system_clock::now());
}

absl::Status ClusterServer::Listen(const TcpAddress& address, PeerEvents& events) {
  address_ = address;
  return service_->Listen(address_, events);
}

void ClusterServer::Send(PeerId peer, FromLeader message) {
  service_->Send(peer, std::move(message));
}

void ClusterServer::Pack(PrepareAttempt& message) const {
  PackPlan(message);
}

void ClusterServer::Close(PeerId peer, const absl::Status& status) {
  service_->Close(peer, status);
}

void ClusterServer::Shutdown(std::chrono::system_clock::time_point deadline) {
  service_->Shutdown(deadline);
}

std::uint64_t ClusterServer::refused() const {
  return service_->refused();
}

std::size_t ClusterServer::silent() const {
  return service_->silent();
}

}  // namespace wb
