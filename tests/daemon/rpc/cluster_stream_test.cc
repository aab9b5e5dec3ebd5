#include <cstdlib>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>

#include "absl/strings/match.h"
#include "weightbridge/v1/cluster.grpc.pb.h"

#include "daemon/rpc/cluster/cluster_client.h"
#include "daemon/rpc/cluster/cluster_convert.h"
#include "daemon/rpc/cluster/cluster_server.h"
#include "proto/convert.h"
#include "tests/daemon/rpc/big_registration.h"
#include "tests/daemon/rpc/door_client.h"
#include "tests/daemon/rpc/loop_thread.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using test::BigRegistration;
using test::LoopThread;
using test::WorkerOf;

const std::string kSession(32, 'a');

/// A leader that welcomes every daemon and keeps what it says. Loop-confined.
class WelcomingLeader final : public PeerEvents {
 public:
  explicit WelcomingLeader(PeerLinks& links) : links_(links) {}
  void OnMessage(PeerId peer, ToLeader message) override {
    if (const auto* hello = std::get_if<ClusterHello>(&message)) {
      nodes[peer] = hello->node;
      links_.Send(peer, Welcome{Incarnation(1)});
      if (ends_all) links_.Close(peer, absl::ResourceExhaustedError("no room"));
    }
    messages.emplace_back(peer, std::move(message));
  }
  void OnPeerLost(PeerId peer, const absl::Status& why) override { lost[peer] = why; }

  bool ends_all = false;  // each stream, as soon as it is welcomed
  std::map<PeerId, std::string> nodes;
  std::vector<std::pair<PeerId, ToLeader>> messages;
  std::map<PeerId, absl::Status> lost;

 private:
  PeerLinks& links_;
};

/// A coordinator that keeps what the leader says. Loop-confined.
class KeepingEvents final : public LeaderEvents {
 public:
  void OnLeaderConnected() override { ++connected; }
  void OnLeaderLost(const absl::Status& why) override {
    ++lost;
    last = why;
  }
  void OnLeaderMessage(FromLeader message) override { messages.push_back(std::move(message)); }

  int connected = 0;
  int lost = 0;
  absl::Status last;
  std::vector<FromLeader> messages;
};

GrpcOptions QuickOptions() {
  return {1 << 20, std::chrono::milliseconds(2'000)};
}

/// A leader's process as the cluster sees it.
struct LeaderEnd {
  explicit LeaderEnd(Term term, std::uint16_t port = 0, const GrpcOptions& options = QuickOptions())
      : server(thread.loop(), term, options), leader(server) {
    const absl::Status listening = server.Listen({"127.0.0.1", port}, leader);
    CAPTURE(listening.ToString());
    REQUIRE(listening.ok());
    thread.Run();
  }
  ~LeaderEnd() {
    server.Shutdown(std::chrono::system_clock::now());
    thread.Stop();
  }
  LoopThread thread;
  ClusterServer server;
  WelcomingLeader leader;
};

/// A daemon's process as the leader sees it.
struct DaemonEnd {
  DaemonEnd(const TcpAddress& leader, const std::string& node)
      : client(thread.loop(), OptionsFor(leader, node)) {
    client.Start(events);
    thread.Run();
  }
  ~DaemonEnd() {
    thread.Ask([this] {
      client.Stop();
      return true;
    });
    thread.Stop();
  }
  static ClusterClientOptions OptionsFor(const TcpAddress& leader, const std::string& node) {
    ClusterClientOptions options;
    options.leader = leader;
    options.hello = {node, Incarnation(9), "address", "tcp", "host", 12};
    options.grpc = QuickOptions();
    options.longest_backoff = std::chrono::milliseconds(200);
    return options;
  }
  LoopThread thread;
  KeepingEvents events;
  ClusterClient client;
};

TEST_CASE("Two daemons attach and talk with the leader", "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  DaemonEnd n0(leader.server.address(), "n0");
  DaemonEnd n1(leader.server.address(), "n1");
  REQUIRE(n0.thread.Becomes([&] { return n0.client.connected(); }));
  REQUIRE(n1.thread.Becomes([&] { return n1.client.connected(); }));
  REQUIRE(n0.thread.Ask([&] { return n0.client.term() == Term(5); }));
  // What one says in a row arrives in its order.
  n0.thread.Ask([&] {
    for (std::uint64_t version = 1; version <= 500; ++version) {
      n0.client.Send(PublishVersion{kSession, Version(version), {}});
    }
    return true;
  });
  REQUIRE(leader.thread.Becomes([&] { return leader.leader.messages.size() == 502; }));
  leader.thread.Ask([&] {
    std::uint64_t next = 1;
    for (const auto& [peer, message] : leader.leader.messages) {
      const auto* publish = std::get_if<PublishVersion>(&message);
      if (publish == nullptr) continue;
      CHECK(leader.leader.nodes[peer] == "n0");
      CHECK(publish->version == Version(next++));
    }
    for (const auto& [peer, node] : leader.leader.nodes) {
      for (std::uint64_t version = 1; node == "n1" && version <= 500; ++version) {
        leader.server.Send(peer, VersionOffered{"job", "engine0", Version(version)});
      }
    }
    return true;
  });
  REQUIRE(n1.thread.Becomes([&] { return n1.events.messages.size() == 500; }));
  n1.thread.Ask([&] {
    CHECK(std::get<VersionOffered>(n1.events.messages[499]).version == Version(500));
    return true;
  });
  REQUIRE(n0.thread.Ask([&] { return n0.events.messages.empty(); }));
}

TEST_CASE("A daemon that goes is told to the leader by name", "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  {
    DaemonEnd n0(leader.server.address(), "n0");
    REQUIRE(n0.thread.Becomes([&] { return n0.client.connected(); }));
  }
  REQUIRE(leader.thread.Becomes([&] { return leader.leader.lost.size() == 1; }));
  REQUIRE(absl::StrContains(
      leader.thread.Ask([&] { return leader.leader.lost.begin()->second; }).message(),
      "node n0 (pid 12 on host) is gone"));
}

TEST_CASE("When the leader comes back daemons attach again, with its new term", "[rpc][cluster]") {
  auto first = std::make_unique<LeaderEnd>(Term(5));
  const TcpAddress address = first->server.address();
  DaemonEnd n0(address, "n0");
  REQUIRE(n0.thread.Becomes([&] { return n0.client.connected(); }));
  first.reset();
  REQUIRE(n0.thread.Becomes([&] { return n0.events.lost == 1; }));
  n0.thread.Ask([&] {
    n0.client.Send(AcceptVersion{kSession, Version(1)});  // dropped: there is no leader
    CHECK_FALSE(n0.client.last_error().ok());
    return true;
  });
  LeaderEnd second(Term(6), address.port);
  REQUIRE(n0.thread.Becomes([&] { return n0.client.term() == Term(6); }));
  REQUIRE(n0.thread.Ask([&] { return n0.events.connected; }) == 2);
  n0.thread.Ask([&] {
    n0.client.Send(AcceptVersion{kSession, Version(2)});
    return true;
  });
  REQUIRE(second.thread.Becomes([&] { return second.leader.messages.size() == 2; }));
  REQUIRE(second.thread.Ask([&] {
    return std::get<AcceptVersion>(second.leader.messages[1].second).version == Version(2);
  }));
}

TEST_CASE("The leader can refuse a daemon, which hears why and tries again", "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  DaemonEnd n0(leader.server.address(), "n0");
  REQUIRE(n0.thread.Becomes([&] { return n0.client.connected(); }));
  leader.thread.Ask([&] {
    const PeerId peer = leader.leader.nodes.begin()->first;
    leader.server.Send(peer, VersionOffered{"job", "engine0", Version(1)});
    leader.server.Close(peer, absl::AlreadyExistsError("node n0 is attached already"));
    leader.server.Send(peer, VersionOffered{"job", "engine0", Version(2)});  // goes nowhere
    return true;
  });
  REQUIRE(n0.thread.Becomes([&] { return n0.events.lost == 1; }));
  n0.thread.Ask([&] {
    CHECK(n0.events.last == absl::AlreadyExistsError("node n0 is attached already"));
    CHECK(n0.events.messages.size() == 1);
    return true;
  });
  REQUIRE(n0.thread.Becomes([&] { return n0.events.connected == 2; }));
}

TEST_CASE("A leader that ends each stream at once is dialled after longer and longer pauses",
          "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  leader.thread.Ask([&] { return leader.leader.ends_all = true; });
  const auto started = std::chrono::steady_clock::now();
  DaemonEnd n0(leader.server.address(), "n0");
  REQUIRE(n0.thread.Becomes([&] { return n0.events.connected >= 5; }));
  // At least half of 50, 100, 200 and 200 ms.
  REQUIRE(std::chrono::steady_clock::now() - started >= std::chrono::milliseconds(275));
}

/// A daemon's stream by hand: for what our own client never says.
class RawStream {
 public:
  explicit RawStream(const TcpAddress& leader,
                     const grpc::ChannelArguments& arguments = ChannelArgumentsFor(QuickOptions()))
      : stub_(v1::ClusterService::NewStub(grpc::CreateCustomChannel(
            "ipv4:" + leader.ToString(), grpc::InsecureChannelCredentials(), arguments))),
        stream_(stub_->Attach(&context_)) {
    context_.set_deadline(std::chrono::system_clock::now() + test::Slack(std::chrono::seconds(10)));
  }
  void Say(const ToLeader& message, std::uint64_t term) {
    stream_->Write(ToProto(message, Term(term)));
  }
  void Say(const v1::ClusterRequest& message) { stream_->Write(message); }
  std::optional<v1::ClusterReply> Next() {
    v1::ClusterReply reply;
    if (!stream_->Read(&reply)) return std::nullopt;
    return reply;
  }
  grpc::Status End() {
    v1::ClusterReply reply;
    while (stream_->Read(&reply)) {
    }
    return stream_->Finish();
  }
  void HalfClose() { stream_->WritesDone(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::ClusterService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClusterRequest, v1::ClusterReply>> stream_;
};

const ClusterHello kHello{"n7", Incarnation(9), "address", "tcp", "host", 12};

TEST_CASE("Messages of another term are refused and counted", "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  RawStream raw(leader.server.address());
  raw.Say(kHello, 0);
  REQUIRE(raw.Next()->has_welcome());
  raw.Say(AcceptVersion{kSession, Version(1)}, 4);
  raw.Say(AcceptVersion{kSession, Version(2)}, 0);
  raw.Say(AcceptVersion{kSession, Version(3)}, 5);
  REQUIRE(leader.thread.Becomes([&] { return leader.leader.messages.size() == 2; }));
  REQUIRE(leader.server.refused() == 2);
  REQUIRE(leader.thread.Ask([&] {
    return std::get<AcceptVersion>(leader.leader.messages[1].second).version == Version(3);
  }));
  raw.HalfClose();
  REQUIRE(raw.End().ok());
  REQUIRE(leader.thread.Becomes([&] { return leader.leader.lost.size() == 1; }));
}

TEST_CASE("A peer that pings every 100 ms and says nothing is not told that it pings too often",
          "[rpc][cluster][field][case-107]") {
  LeaderEnd leader(Term(5));
  grpc::ChannelArguments often = ChannelArgumentsFor(QuickOptions());
  often.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 100);
  RawStream raw(leader.server.address(), often);
  raw.Say(kHello, 0);
  REQUIRE(raw.Next()->has_welcome());
  std::this_thread::sleep_for(std::chrono::seconds(3));  // the silence that this is about
  raw.Say(AcceptVersion{kSession, Version(1)}, 5);
  REQUIRE(leader.thread.Becomes([&] { return leader.leader.messages.size() == 2; }));
  REQUIRE(leader.thread.Ask([&] { return leader.leader.lost.empty(); }));
  raw.HalfClose();
  const grpc::Status status = raw.End();
  CAPTURE(status.error_message());
  REQUIRE(status.ok());
}

TEST_CASE("A stream that begins without hello is ended", "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  RawStream raw(leader.server.address());
  raw.Say(AcceptVersion{kSession, Version(1)}, 5);
  const grpc::Status status = raw.End();
  REQUIRE(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  REQUIRE(status.error_message() == "accept: out of order, want hello first");
  REQUIRE(leader.thread.Ask([&] { return leader.leader.messages.empty(); }));
}

TEST_CASE("A stream that never says hello is ended after timeouts.peer, one that has is not",
          "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  DaemonEnd n0(leader.server.address(), "n0");
  REQUIRE(n0.thread.Becomes([&] { return n0.client.connected(); }));
  RawStream raw(leader.server.address());
  const grpc::Status status = raw.End();
  REQUIRE(status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  REQUIRE(status.error_message() == "no hello within 2000 ms (timeouts.peer)");
  REQUIRE(n0.thread.Ask([&] { return n0.events.lost; }) == 0);
}

TEST_CASE("Streams that say nothing are bounded, with the number", "[rpc][cluster]") {
  LeaderEnd leader(Term(5), 0, {1 << 20, std::chrono::minutes(5)});
  const auto stub = v1::ClusterService::NewStub(grpc::CreateChannel(
      "ipv4:" + leader.server.address().ToString(), grpc::InsecureChannelCredentials()));
  struct Silent {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::ClusterRequest, v1::ClusterReply>> stream;
  };
  std::deque<Silent> silent;
  for (int i = 0; i < 1024; ++i) {
    Silent& one = silent.emplace_back();
    one.context.set_deadline(std::chrono::system_clock::now() +
                             test::Slack(std::chrono::seconds(10)));
    one.stream = stub->Attach(&one.context);
  }
  // They arrive when gRPC's threads come to them, which may be after a stream of another
  // connection.
  REQUIRE(leader.thread.Becomes([&] { return leader.server.silent() == 1024; }));
  RawStream one_more(leader.server.address());
  const grpc::Status status = one_more.End();
  REQUIRE(status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  REQUIRE(status.error_message() == "1024 streams have not said hello yet, the most allowed");
  for (Silent& one : silent) one.context.TryCancel();
  for (Silent& one : silent) static_cast<void>(one.stream->Finish());
  DaemonEnd n0(leader.server.address(), "n0");
  REQUIRE(n0.thread.Becomes([&] { return n0.client.connected(); }));
}

TEST_CASE("A daemon that says more than the leader takes is not read until it has taken it",
          "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  RawStream raw(leader.server.address());
  raw.Say(kHello, 0);
  REQUIRE(raw.Next()->has_welcome());
  std::promise<void> go_on;
  leader.thread.loop().Post([held = go_on.get_future().share()] { held.wait(); });
  constexpr std::uint64_t kMessages = 4000;  // of 8 KiB: more than any socket holds
  std::promise<void> all_written;
  std::thread daemon([&] {
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      raw.Say(UnregisterWorker{kSession, std::string(8192, 'x')}, 5);
    }
    all_written.set_value();
  });
  std::future<void> written = all_written.get_future();
  CHECK(written.wait_for(std::chrono::milliseconds(300)) == std::future_status::timeout);
  go_on.set_value();
  const bool seen =
      leader.thread.Becomes([&] { return leader.leader.messages.size() == 1 + kMessages; });
  daemon.join();
  REQUIRE(seen);
}

TEST_CASE("A daemon of another protocol is refused by its number", "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  RawStream raw(leader.server.address());
  v1::ClusterRequest hello = ToProto(ToLeader(kHello), Term(0));
  hello.mutable_hello()->set_protocol(2);
  raw.Say(hello);
  REQUIRE(raw.End().error_message() == "hello: protocol: 2, this leader speaks 1");
}

TEST_CASE("A worker whose layout cannot be read is refused, its daemon's stream lives on",
          "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  RawStream raw(leader.server.address());
  raw.Say(kHello, 0);
  REQUIRE(raw.Next()->has_welcome());
  v1::ClusterRequest bad;
  bad.set_term(5);
  bad.mutable_register_worker()->set_session(kSession);
  raw.Say(bad);
  const auto reply = raw.Next();
  REQUIRE(reply->worker_registered().session() == kSession);
  REQUIRE(reply->worker_registered().status().code() == 3);
  raw.Say(AcceptVersion{kSession, Version(3)}, 5);
  REQUIRE(leader.thread.Becomes([&] { return leader.leader.messages.size() == 2; }));
}

TEST_CASE("A message beyond the limit fails what it is about, not the stream", "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  DaemonEnd n0(leader.server.address(), "n0");
  REQUIRE(n0.thread.Becomes([&] { return n0.client.connected(); }));
  const std::string huge(2 << 20, 'x');
  n0.thread.Ask([&] {
    n0.client.Send(WorkerOf("engine0", BigRegistration(2'000)));
    return true;
  });
  REQUIRE(n0.thread.Becomes([&] { return n0.events.messages.size() == 1; }));
  n0.thread.Ask([&] {
    const auto& refused = std::get<WorkerRegistered>(n0.events.messages[0]);
    CHECK(refused.session == std::string(32, '0'));
    CHECK(absl::StrContains(refused.status.message(), "limits.message_bytes allows 1048576"));
    return true;
  });
  leader.thread.Ask([&] {
    PrepareAttempt prepare;
    prepare.attempt = AttemptId(77);
    prepare.job = huge;
    leader.server.Send(leader.leader.nodes.begin()->first, prepare);
    return true;
  });
  REQUIRE(leader.thread.Becomes([&] { return leader.leader.messages.size() == 2; }));
  REQUIRE(leader.thread.Ask([&] {
    return std::get<AttemptFailed>(leader.leader.messages[1].second).attempt == AttemptId(77);
  }));
  REQUIRE(n0.thread.Ask([&] { return n0.events.lost; }) == 0);
}

TEST_CASE("Equal contents go to the leader once, whichever daemon has them", "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  DaemonEnd n0(leader.server.address(), "n0");
  DaemonEnd n1(leader.server.address(), "n1");
  REQUIRE(n0.thread.Becomes([&] { return n0.client.connected(); }));
  REQUIRE(n1.thread.Becomes([&] { return n1.client.connected(); }));
  const Registration registration = BigRegistration(900);
  std::map<std::string, RegisterWorker> sent;
  const auto send = [&](DaemonEnd& daemon, const std::string& group, std::size_t messages) {
    sent[group] = WorkerOf(group, registration);
    const std::uint64_t before = daemon.client.counters().sent_bytes;
    daemon.thread.Ask([&] {
      daemon.client.Send(sent[group]);
      return true;
    });
    REQUIRE(leader.thread.Becomes([&] { return leader.leader.messages.size() == messages; }));
    return daemon.client.counters().sent_bytes - before;
  };
  REQUIRE(send(n0, "engine0", 3) > 800'000);
  REQUIRE(send(n1, "engine1", 4) < 1'000);
  REQUIRE(send(n0, "engine2", 5) < 1'000);
  leader.thread.Ask([&] {
    for (std::size_t i = 2; i < 5; ++i) {
      const auto& worker = std::get<RegisterWorker>(leader.leader.messages[i].second);
      const std::string& group = worker.registration->layout.name.group;
      CHECK(*worker.registration == *sent[group].registration);
      CHECK(worker.session == sent[group].session);
    }
    return true;
  });
}

TEST_CASE("A plan too large for one message arrives in parts as it was", "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  DaemonEnd n0(leader.server.address(), "n0");
  REQUIRE(n0.thread.Becomes([&] { return n0.client.connected(); }));
  PlanPart part;
  part.job = "job";
  part.group = "engine0";
  part.fingerprint = Fingerprint(123);
  part.workers = {{{"policy", 0}, "n0"}, {{"engine0", 0}, "n1"}};
  part.tensors = {{"a", Dtype::kFp32, {40'000}, false}};
  for (std::int64_t i = 0; i < 40'000; ++i) {
    part.moves.push_back(
        {WorkerIndex(0), WorkerIndex(1), TensorId(0), *Box::Create({i}, {i + 1}), 4});
  }
  leader.thread.Ask([&] {
    for (const std::uint64_t attempt : {77U, 78U}) {
      PrepareAttempt prepare;
      prepare.attempt = AttemptId(attempt);
      prepare.job = "job";
      prepare.group = "engine0";
      prepare.version = Version(1);
      prepare.plan = part;
      leader.server.Send(leader.leader.nodes.begin()->first, prepare);
    }
    return true;
  });
  REQUIRE(n0.thread.Becomes([&] { return n0.events.messages.size() == 2; }));
  n0.thread.Ask([&] {
    for (const FromLeader& message : n0.events.messages) {
      CHECK(std::get<PrepareAttempt>(message).plan == part);
    }
    return true;
  });
  REQUIRE(n0.client.counters().received_bytes > 2 * 400'000);
}

TEST_CASE("A daemon that finds no leader says so and keeps trying", "[rpc][cluster]") {
  TcpAddress nobody;
  {
    LeaderEnd leader(Term(1));
    nobody = leader.server.address();
  }
  DaemonEnd n0(nobody, "n0");
  REQUIRE(n0.thread.Becomes([&] {
    return n0.client.last_error().code() == absl::StatusCode::kUnavailable &&
           n0.client.last_error().message() != "not connected yet";
  }));
  REQUIRE(n0.thread.Ask([&] { return n0.events.lost; }) == 0);
  LeaderEnd late(Term(2), nobody.port);
  REQUIRE(n0.thread.Becomes([&] { return n0.client.connected(); }));
}

TEST_CASE("Two servers do not share a port", "[rpc][cluster]") {
  LeaderEnd leader(Term(5));
  LoopThread thread;
  ClusterServer second(thread.loop(), Term(6), QuickOptions());
  WelcomingLeader events(second);
  const absl::Status listening = second.Listen(leader.server.address(), events);
  REQUIRE(listening.code() == absl::StatusCode::kUnavailable);
  REQUIRE(absl::StrContains(listening.message(), leader.server.address().ToString()));
}

TEST_CASE("Proxy variables touch nothing", "[rpc][cluster]") {
  for (const char* name : {"http_proxy", "https_proxy", "grpc_proxy"}) {
    ::setenv(name, "http://127.0.0.1:1", 1);
  }
  LeaderEnd leader(Term(5));
  DaemonEnd n0(leader.server.address(), "n0");
  const bool connected = n0.thread.Becomes([&] { return n0.client.connected(); });
  for (const char* name : {"http_proxy", "https_proxy", "grpc_proxy"}) ::unsetenv(name);
  REQUIRE(connected);
}

}  // namespace
}  // namespace wb
