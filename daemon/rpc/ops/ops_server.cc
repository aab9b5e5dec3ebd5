#include "daemon/rpc/ops/ops_server.h"

#include <utility>
#include <vector>

#include <sys/stat.h>

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/str_cat.h"
#include "weightbridge/v1/status.grpc.pb.h"

#include "daemon/rpc/tls/credentials.h"
#include "daemon/rpc/wire_values.h"
#include "proto/convert.h"

namespace wb {
namespace {

constexpr mode_t kSocketUmask = 0117;  // leaves 0660
constexpr int kMaxThreads = 16;

v1::StatusReply ReplyOf(const DaemonSnapshot& daemon) {
  v1::StatusReply reply;
  reply.set_node(daemon.node);
  reply.set_state(daemon.state);
  reply.set_incarnation(daemon.incarnation.value());
  reply.set_software(daemon.software);
  reply.set_uptime_seconds(daemon.uptime_seconds);
  reply.set_leader_address(daemon.leader_address);
  reply.set_leader_connected(daemon.leader_connected);
  reply.set_is_leader(daemon.is_leader);
  reply.set_term(daemon.term.value());
  reply.set_sessions(daemon.sessions);
  reply.set_region_bytes(daemon.region_bytes);
  for (const std::string& wait : daemon.waits) reply.add_waits(wait);
  for (const LaneCounters& lane : daemon.lanes) {
    v1::LaneStatus& wire = *reply.add_lanes();
    wire.set_peer(lane.peer_node);
    wire.set_fabric(lane.fabric);
    wire.set_sent_bytes(lane.sent_bytes);
    wire.set_received_bytes(lane.received_bytes);
    wire.set_connects(lane.connects);
  }
  reply.set_data_address(daemon.data_address);
  reply.set_leader_sent_bytes(daemon.leader_sent_bytes);
  reply.set_leader_received_bytes(daemon.leader_received_bytes);
  reply.set_leader_sent_messages(daemon.leader_sent_messages);
  reply.set_leader_received_messages(daemon.leader_received_messages);
  reply.set_regions(daemon.regions);
  return reply;
}

v1::WorkersReply ReplyOf(const std::vector<MemberSnapshot>& members) {
  v1::WorkersReply reply;
  for (const MemberSnapshot& member : members) {
    v1::WorkerStatus& wire = *reply.add_workers();
    wire.set_job(member.job);
    wire.set_group(member.name.group);
    wire.set_rank(member.name.rank);
    wire.set_role(member.role == Role::kTrainer ? "trainer" : "rollout");
    wire.set_node(member.node);
    wire.set_session(member.session);
    wire.set_incarnation(member.incarnation.value());
    wire.set_held_version(member.held_version.value());
    wire.set_memory(std::string(MemoryStateName(member.memory)));
    wire.set_bytes(member.bytes);
  }
  return reply;
}

void Write(const DeliverySnapshot& delivery, v1::DeliveryStatus& wire) {
  wire.set_group(delivery.group);
  wire.set_state(delivery.state);
  *wire.mutable_status() = ToProto(delivery.status);
  wire.set_attempt(delivery.attempt.value());
  wire.set_bytes_planned(delivery.bytes_planned);
  (*wire.mutable_bytes_by_path())["tcp"] = delivery.bytes.tcp;
  (*wire.mutable_bytes_by_path())["shm"] = delivery.bytes.shm;
  (*wire.mutable_bytes_by_path())["local"] = delivery.bytes.local;
  wire.set_seconds(delivery.seconds);
  wire.set_sources(delivery.sources);
}

v1::VersionsReply ReplyOf(const std::vector<VersionSnapshot>& versions) {
  v1::VersionsReply reply;
  for (const VersionSnapshot& version : versions) {
    v1::VersionStatus& wire = *reply.add_versions();
    wire.set_job(version.job);
    wire.set_version(version.version.value());
    wire.set_state(version.state);
    wire.set_label(version.label);
    *wire.mutable_status() = ToProto(version.status);
    wire.set_average_stall_ms(version.average_stall_ms);
    wire.set_end_to_end_ms(version.end_to_end_ms);
    wire.set_bound_bytes(version.bound_bytes);
    for (const DeliverySnapshot& delivery : version.deliveries) {
      Write(delivery, *wire.add_deliveries());
    }
  }
  return reply;
}

v1::RefusalsReply ReplyOf(const RefusalsSnapshot& refused) {
  v1::RefusalsReply reply;
  for (const OfferRefusal& one : refused.refusals) {
    v1::RefusalStatus& wire = *reply.add_refusals();
    wire.set_job(one.job);
    wire.set_group(one.group);
    wire.set_kind(one.refusal.kind);
    wire.set_tensor(one.refusal.tensor);
    wire.set_worker(one.refusal.worker);
    wire.set_text(one.refusal.text);
  }
  reply.set_total(refused.total);
  return reply;
}

class StatusService final : public v1::StatusService::Service {
 public:
  explicit StatusService(StatusSource& source) : source_(source) {}

  grpc::Status GetStatus(grpc::ServerContext* /*context*/,
                         const v1::StatusRequest* /*request*/,
                         v1::StatusReply* reply) override {
    *reply = ReplyOf(source_.Status());
    return grpc::Status::OK;
  }

  grpc::Status ListWorkers(grpc::ServerContext* /*context*/,
                           const v1::WorkersRequest* request,
                           v1::WorkersReply* reply) override {
    const absl::StatusOr<std::vector<MemberSnapshot>> members = source_.Workers(request->job());
    if (members.ok()) *reply = ReplyOf(*members);
    return ToGrpc(members.status());
  }

  grpc::Status ListVersions(grpc::ServerContext* /*context*/,
                            const v1::VersionsRequest* request,
                            v1::VersionsReply* reply) override {
    const absl::StatusOr<std::vector<VersionSnapshot>> versions =
        source_.Versions(request->job(), request->last());
    if (versions.ok()) *reply = ReplyOf(*versions);
    return ToGrpc(versions.status());
  }

  grpc::Status ListRefusals(grpc::ServerContext* /*context*/,
                            const v1::RefusalsRequest* request,
                            v1::RefusalsReply* reply) override {
    if (request->limit() > kMaxRefusals) {
      return ToGrpc(absl::InvalidArgumentError(
          absl::StrCat("limit: ", request->limit(), ", want at most ", kMaxRefusals, " (0: all)")));
    }
    const absl::StatusOr<RefusalsSnapshot> refused =
        source_.Refused(request->job(), request->limit());
    if (refused.ok()) *reply = ReplyOf(*refused);
    return ToGrpc(refused.status());
  }

 private:
  StatusSource& source_;
};

/// gRPC gives a Unix socket no mode of its own; the umask is the process's, so this is done while
/// the daemon starts and no other thread makes files.
std::unique_ptr<grpc::Server> StartWithMode(grpc::ServerBuilder& builder) {
  const mode_t before = ::umask(kSocketUmask);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ::umask(before);
  return server;
}

}  // namespace

struct OpsServer::State {
  explicit State(StatusSource& source) : service(source) {}
  // Destroyed bottom-up: the server goes first, so no RPC can see a dead service.
  StatusService service;
  std::unique_ptr<grpc::Server> server;
};

OpsServer::OpsServer() = default;
OpsServer::~OpsServer() {
  Shutdown(std::chrono::system_clock::now());
}

absl::StatusOr<std::unique_ptr<OpsServer>> OpsServer::Start(const OpsServerOptions& options,
                                                            StatusSource& source) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<OpsServer> ops(new OpsServer());
  ops->state_ = std::make_unique<State>(source);
  grpc::ServerBuilder builder;
  Apply(options.grpc, builder);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetResourceQuota(grpc::ResourceQuota("ops").SetMaxThreads(kMaxThreads));
  int unix_port = 0;
  builder.AddListeningPort("unix:" + options.socket, grpc::InsecureServerCredentials(), &unix_port);
  int tcp_port = 0;
  if (options.listen.has_value()) {
    builder.AddListeningPort(options.listen->ToString(), ServerCredentialsFor(options.grpc.tls),
                             &tcp_port);
  }
  builder.RegisterService(&ops->state_->service);
  ops->state_->server = StartWithMode(builder);
  if (ops->state_->server == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", options.socket,
        options.listen.has_value() ? absl::StrCat(" and ", options.listen->ToString()) : ""));
  }
  ops->SetServing(false);  // gRPC's first answer would be yes
  ops->address_ = options.listen;
  if (ops->address_.has_value()) ops->address_->port = static_cast<std::uint16_t>(tcp_port);
  return ops;
}

void OpsServer::SetServing(bool serving) {
  if (state_->server == nullptr) return;
  grpc::HealthCheckServiceInterface* health = state_->server->GetHealthCheckService();
  if (health == nullptr) return;
  health->SetServingStatus(serving);
  health->SetServingStatus(std::string(v1::StatusService::service_full_name()), serving);
}

void OpsServer::Shutdown(std::chrono::system_clock::time_point deadline) {
  if (state_->server == nullptr) return;
  state_->server->Shutdown(deadline);
  state_->server->Wait();
  state_->server.reset();
}

}  // namespace wb
