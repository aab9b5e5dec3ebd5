#include "daemon/daemon.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <pthread.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "daemon/data_interface.h"
#include "daemon/leader/leader.h"
#include "daemon/leader_work.h"
#include "daemon/loop_watch.h"
#include "daemon/move/coordinator.h"
#include "daemon/move/mover.h"
#include "daemon/mover_relay.h"
#include "daemon/readiness.h"
#include "daemon/rpc/ask_loop.h"
#include "daemon/rpc/cluster/cluster_client.h"
#include "daemon/rpc/cluster/cluster_server.h"
#include "daemon/rpc/grpc_log.h"
#include "daemon/rpc/local/local_door.h"
#include "daemon/rpc/local/packet_socket.h"
#include "daemon/rpc/ops/ops_server.h"
#include "daemon/rpc/run_dir.h"
#include "daemon/status_board.h"
#include "daemon/tls_setup.h"
#include "planner/base/fd_handle.h"
#include "planner/base/mutex.h"
#include "planner/base/status_macros.h"
#include "transport/loop/event_loop.h"

namespace wb {
namespace {

using std::chrono::milliseconds;

/// A thing that happens once, waited for with a deadline. Thread-safe.
class Happening {
 public:
  void Happen() {
    const MutexLock lock(mu_);
    happened_ = true;
    changed_.NotifyAll();
  }
  bool WaitUntil(std::chrono::steady_clock::time_point deadline) {
    const MutexLock lock(mu_);
    while (!happened_) {
      if (!changed_.WaitUntil(mu_, deadline) && !happened_) return false;
    }
    return true;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool happened_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

struct Daemon::State {
  State(DaemonOptions given, DaemonIdentity self, DaemonSeams between)
      : options(std::move(given)),
        identity(std::move(self)),
        seams(std::move(between)),
        started(std::chrono::steady_clock::now()) {}
  ~State() { Stop(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  absl::Status StartTls();
  absl::Status StartMover();
  absl::Status StartLeader();
  void WarnOfLoopback() const;
  absl::Status OpenDoors();
  absl::Status StartOps();
  void Run();
  void WatchLoops();
  void Stop();
  GrpcOptions grpc() const { return {options.limits_message_bytes, options.timeouts_peer, tls}; }
  void Settle(std::function<void()> first, std::chrono::steady_clock::time_point deadline);

  const DaemonOptions options;
  const DaemonIdentity identity;
  const DaemonSeams seams;
  const std::chrono::steady_clock::time_point started;
  TcpAddress leader_address;
  std::shared_ptr<const TlsIdentity> tls;  // null: none

  // Destroyed bottom-up, after Stop has ended the threads: doors before the coordinator they call,
  // the coordinator before the mover and the client that it calls, the run directory last, so that
  // nobody else can take it before all is gone.
  std::optional<RunDir> run_dir;
  std::unique_ptr<EventLoop> control_loop;
  std::unique_ptr<EventLoop> leader_loop;
  std::unique_ptr<ClusterServer> cluster_server;
  std::unique_ptr<LeaderWork> leader_work;
  std::unique_ptr<Leader> leader;
  std::unique_ptr<MoverRelay> relay;
  std::unique_ptr<Mover> mover;
  std::unique_ptr<ClusterClient> client;
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<Readiness> readiness;
  std::unique_ptr<LocalDoor> door;
  std::unique_ptr<StatusBoard> board;
  std::unique_ptr<OpsServer> ops;
  std::unique_ptr<LoopWatch> watch;
  std::thread leader_thread;
  std::thread control_thread;
};

absl::Status Daemon::State::StartTls() {
  RouteGrpcLog();
  WB_ASSIGN_OR_RETURN(tls, LoadTls(options));
  if (tls == nullptr) return absl::OkStatus();
  spdlog::info("tls: {}", tls->ToString());
  const absl::Status usable = tls->CheckOwn();
  if (!usable.ok()) spdlog::warn("tls: peers will refuse us: {}", usable.ToString());
  return absl::OkStatus();
}

absl::Status Daemon::State::StartMover() {
  WB_RETURN_IF_ERROR(CheckDataInterface(options.data_interface, options.data_insecure));
  MoverOptions mover_options;
  mover_options.node = options.node;
  mover_options.incarnation = identity.incarnation;
  mover_options.interface = options.data_interface;
  mover_options.transports = options.data_transports;
  mover_options.copy_threads = options.copy_threads;
  mover_options.verify = options.integrity_wire;
  mover_options.between = seams.fabric;
  relay = std::make_unique<MoverRelay>(*control_loop);
  WB_ASSIGN_OR_RETURN(mover, Mover::Start(mover_options, *relay));
  return absl::OkStatus();
}

absl::Status Daemon::State::StartLeader() {
  if (!options.leader_listen.has_value()) {
    leader_address = *options.leader_address;
    return absl::OkStatus();
  }
  WB_ASSIGN_OR_RETURN(leader_loop, EventLoop::Create());
  cluster_server = std::make_unique<ClusterServer>(*leader_loop, identity.term, grpc());
  LeaderOptions leader_options;
  leader_options.min_groups = options.leader_min_groups;
  leader_options.retire_after = options.leader_retire_after;
  leader_options.start_timeout = options.timeouts_start;
  leader_options.rejoin_timeout = options.timeouts_rejoin;
  leader_work = std::make_unique<LeaderWork>(*leader_loop);
  leader = std::make_unique<Leader>(LeaderParts{*leader_loop, *cluster_server, *leader_work},
                                    identity.term, identity.incarnation, leader_options);
  WB_RETURN_IF_ERROR(cluster_server->Listen(*options.leader_listen, *leader));
  leader_address = cluster_server->address();
  spdlog::info("leader role: listening on {}, term {}", leader_address.ToString(),
               identity.term.value());
  return absl::OkStatus();
}

/// One host's daemons may well use its loopback; with a leader that others reach, none of them
/// could reach us.
void Daemon::State::WarnOfLoopback() const {
  const std::string loopback = LoopbackOf(options.data_interface);
  if (loopback.empty() || IsLoopback(leader_address)) return;
  spdlog::warn(
      "data.interface: '{}' has the address {}, which daemons on other hosts of the leader "
      "{} cannot reach",
      options.data_interface, loopback, leader_address.ToString());
}

absl::Status Daemon::State::OpenDoors() {
  WarnOfLoopback();
  ClusterClientOptions client_options;
  client_options.leader = FromHere(leader_address);
  client_options.leader_name = LeaderNameFor(options, tls.get());
  client_options.hello = {options.node,    identity.incarnation, mover->address(),
                          mover->fabric(), identity.host,        identity.pid};
  client_options.grpc = grpc();
  client = std::make_unique<ClusterClient>(*control_loop, std::move(client_options));

  CoordinatorOptions coordinator_options;
  coordinator_options.host = identity.host;
  coordinator_options.node = options.node;
  coordinator_options.incarnation = identity.incarnation;
  coordinator_options.decision_grace = options.timeouts_decision;
  LeaderLink& link = seams.to_leader ? seams.to_leader(*client, *control_loop) : *client;
  coordinator = std::make_unique<Coordinator>(*control_loop, link, coordinator_options);
  coordinator->SetRunner(mover.get());
  relay->SetCoordinator(coordinator.get());

  WB_ASSIGN_OR_RETURN(const std::string socket, run_dir->ClaimSocket("worker.sock"));
  WB_ASSIGN_OR_RETURN(FdHandle listener, ListenPackets(socket));
  LocalDoorOptions door_options;
  door_options.node = options.node;
  door_options.incarnation = identity.incarnation;
  door_options.max_workers = options.limits_workers;
  door_options.max_memory_bytes = options.limits_memory_bytes;
  door_options.max_layout_bytes = options.limits_message_bytes;
  door_options.new_session_id = identity.new_session_id;
  WB_ASSIGN_OR_RETURN(
      door, LocalDoor::Open(*control_loop, *coordinator, std::move(listener), door_options));
  coordinator->SetNotices(door.get());
  const std::string leader_text = leader_address.ToString();
  readiness = std::make_unique<Readiness>(leader_text, identity.tell);
  readiness->SetNext(seams.from_leader ? &seams.from_leader(*coordinator) : coordinator.get());
  if (identity.tell) identity.tell(absl::StrCat("waiting for the leader ", leader_text));
  client->Start(*readiness);
  return absl::OkStatus();
}

absl::Status Daemon::State::StartOps() {
  DaemonSnapshot fixed;
  fixed.node = options.node;
  fixed.incarnation = identity.incarnation;
  fixed.software = identity.software;
  fixed.leader_address = leader_address.ToString();
  fixed.is_leader = leader != nullptr;
  fixed.data_address =
      absl::StrCat(DescribeInterface(options.data_interface), " over ", mover->fabric());
  board = std::make_unique<StatusBoard>(
      StatusParts{*control_loop, *coordinator, *client, *door, *mover, *readiness, *watch,
                  leader_loop.get(), leader.get()},
      std::move(fixed), started);
  WB_ASSIGN_OR_RETURN(const std::string socket, run_dir->ClaimSocket("control.sock"));
  WB_ASSIGN_OR_RETURN(ops, OpsServer::Start({socket, options.control_listen, grpc()}, *board));
  readiness->SetOps(ops.get());
  return absl::OkStatus();
}

void Daemon::State::Run() {
  const auto run = [](EventLoop& loop, const char* thread) {
    ::pthread_setname_np(::pthread_self(), thread);
    loop.Run();
  };
  if (leader_loop != nullptr) {
    leader_thread = std::thread([this, run] { run(*leader_loop, "wb-leader"); });
  }
  control_thread = std::thread([this, run] { run(*control_loop, "wb-control"); });
  WatchLoops();
}

/// A loop that stops turning takes this daemon out of service by its health, as a peer that is
/// silent for as long counts as dead.
void Daemon::State::WatchLoops() {
  const auto post_to = [](EventLoop& loop) {
    return [&loop](std::function<void()> task) { loop.Post(std::move(task)); };
  };
  std::vector<LoopWatch::Loop> loops{
      {kControlLoop, post_to(*control_loop)},
      {kMoverLoop, [this](std::function<void()> task) { mover->Post(std::move(task)); }}};
  if (leader_loop != nullptr) loops.push_back({kLeaderLoop, post_to(*leader_loop)});
  watch = std::make_unique<LoopWatch>(std::move(loops), options.timeouts_peer,
                                      [this](const std::vector<LoopWatch::Stuck>& stuck) {
                                        for (const LoopWatch::Stuck& one : stuck)
                                          spdlog::error("{}", one.ToString());
                                        if (stuck.empty()) spdlog::warn("all threads turn again");
                                        readiness->SetTurning(stuck.empty());
                                      });
}

void Daemon::State::Stop() {
  const auto now = std::chrono::system_clock::now();
  if (readiness != nullptr) readiness->SetOps(nullptr);
  if (ops != nullptr) ops->Shutdown(now);
  watch.reset();
  if (cluster_server != nullptr) cluster_server->Shutdown(now);
  if (control_loop != nullptr) control_loop->Stop();
  if (leader_loop != nullptr) leader_loop->Stop();
  if (control_thread.joinable()) control_thread.join();
  if (leader_thread.joinable()) leader_thread.join();
}

/// Runs `first` on the control loop, then waits until no call of a worker is in progress and no
/// reply unsent.
void Daemon::State::Settle(std::function<void()> first,
                           std::chrono::steady_clock::time_point deadline) {
  const auto quiet = std::make_shared<Happening>();
  control_loop->Post([this, quiet, first = std::move(first)] {
    first();
    door->WhenQuiet([quiet] { quiet->Happen(); });
  });
  if (!quiet->WaitUntil(deadline)) spdlog::warn("drain: calls of workers are still in progress");
}

Daemon::Daemon() = default;
Daemon::~Daemon() = default;

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const DaemonOptions& options,
                                                      DaemonIdentity identity,
                                                      const DaemonSeams& seams) {
  std::unique_ptr<Daemon> daemon(new Daemon());
  daemon->state_ = std::make_unique<State>(options, std::move(identity), seams);
  State& state = *daemon->state_;
  // The lock first: nothing is bound while another daemon may hold the directory.
  WB_ASSIGN_OR_RETURN(RunDir run_dir, RunDir::Open(options.run_dir));
  state.run_dir.emplace(std::move(run_dir));
  WB_ASSIGN_OR_RETURN(state.control_loop, EventLoop::Create());
  WB_RETURN_IF_ERROR(state.StartTls());
  WB_RETURN_IF_ERROR(state.StartMover());
  WB_RETURN_IF_ERROR(state.StartLeader());
  WB_RETURN_IF_ERROR(state.OpenDoors());
  state.Run();
  WB_RETURN_IF_ERROR(state.StartOps());
  return daemon;
}

void Daemon::Drain(std::chrono::milliseconds within) {
  State& state = *state_;
  if (!state.control_thread.joinable()) return;
  const auto start = std::chrono::steady_clock::now();
  const milliseconds finish = within * 3 / 5;
  state.readiness->Drain();
  state.Settle([&state] { state.door->StopAccepting(); }, start + finish);
  state.Settle(
      [&state] {
        state.coordinator->Drain();
        state.door->Close(
            absl::UnavailableError(absl::StrCat("node ", state.options.node, " stops")));
      },
      start + within * 4 / 5);
  const absl::StatusOr<bool> stopped =
      AskLoop<bool>(*state.control_loop, std::max(milliseconds(100), within / 5), [&state] {
        state.client->Stop();
        return true;
      });
  if (!stopped.ok()) spdlog::warn("drain: {}", stopped.status().ToString());
  state.Stop();
}

const TcpAddress& Daemon::leader_address() const {
  return state_->leader_address;
}

std::optional<TcpAddress> Daemon::control_address() const {
  return state_->ops->address();
}

}  // namespace wb
