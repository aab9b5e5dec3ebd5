#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"

#include "daemon/move/coordinator.h"
#include "daemon/rpc/grpc_options.h"
#include "daemon/rpc/tcp_address.h"
#include "daemon/state/cluster_messages.h"
#include "planner/model/ids.h"
#include "transport/loop/event_loop.h"

namespace grpc {
class Channel;
}

namespace wb {

struct ClusterClientOptions {
  TcpAddress leader;
  std::string leader_name = {};  // that its certificate must be for; used with grpc.tls only
  ClusterHello hello;
  GrpcOptions grpc;
  std::chrono::milliseconds first_backoff{50};
  std::chrono::milliseconds longest_backoff{1'000};
};

/// What went to leaders and came from them, as serialised. Thread-safe.
struct LinkCounters {
  std::atomic<std::uint64_t> sent_bytes{0};
  std::atomic<std::uint64_t> received_bytes{0};
  std::atomic<std::uint64_t> sent_messages{0};
  std::atomic<std::uint64_t> received_messages{0};
};

/// The daemon's stream to its leader. When it breaks it is made again, after a wait that doubles up
/// to a limit and differs from daemon to daemon.
///
/// Invariant: every message goes out with the term that this stream's Welcome brought, and only
/// messages of that term come in; others are refused and counted. Loop-confined, except that it is
/// made and destroyed while the loop does not run; nothing blocks but the destructor, which waits
/// for gRPC to let go of the stream.
class ClusterClient final : public LeaderLink {
 public:
  /// `loop` outlives the client.
  ClusterClient(EventLoop& loop, ClusterClientOptions options);
  ClusterClient(const ClusterClient&) = delete;
  ClusterClient& operator=(const ClusterClient&) = delete;
  ~ClusterClient() override;

  /// Connects, and from then on reports to `events`, which outlives the client's last report.
  void Start(LeaderEvents& events);
  /// Ends the stream for good; no report follows.
  void Stop();
  void Send(ToLeader message) override;

  bool connected() const { return term_.has_value(); }
  /// Of the leader we are connected to.
  std::optional<Term> term() const { return term_; }
  /// Why there is no leader now; OK while there is one.
  const absl::Status& last_error() const { return last_error_; }
  const LinkCounters& counters() const { return *counters_; }

 private:
  class Stream;
  /// Contents that the leader may want until it has answered the last of their sessions.
  struct Offered {
    std::shared_ptr<const Registration> registration;
    std::set<SessionId> sessions;
  };

  void Connect();
  void Register(RegisterWorker worker);
  void Withdraw(const SessionId& session);
  void OnWantContents(std::uint64_t generation, const std::string& sha256);
  void OnWelcome(std::uint64_t generation, Term term);
  void OnMessage(std::uint64_t generation, FromLeader message);
  void OnEnd(std::uint64_t generation, const absl::Status& ended);
  std::chrono::milliseconds NextBackoff();

  EventLoop& loop_;
  const ClusterClientOptions options_;
  LeaderEvents* events_ = nullptr;          // null before Start and after Stop
  std::shared_ptr<grpc::Channel> channel_;  // of stream_, and let go of after it
  std::shared_ptr<Stream> stream_;
  std::uint64_t generation_ = 0;  // of stream_: what an older one still reports is dropped
  std::uint64_t failures_ = 0;    // in a row, of connections that were not made or did not last
  EventLoop::Clock::time_point welcomed_;
  std::optional<Term> term_;
  std::optional<TimerId> retry_;
  std::map<std::string, Offered> offered_;  // by digest; of this stream
  const std::shared_ptr<LinkCounters> counters_ = std::make_shared<LinkCounters>();
  absl::Status last_error_ = absl::UnavailableError("not connected yet");
  std::shared_ptr<const char> alive_ = std::make_shared<const char>();
};

}  // namespace wb
