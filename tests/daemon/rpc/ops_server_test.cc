#include "daemon/rpc/ops/ops_server.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>

#include "weightbridge/v1/status.grpc.pb.h"

#include "planner/base/mutex.h"
#include "proto/v1.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"

namespace wb {
namespace {

/// What StillSource says, and what it was asked last.
struct Still {
  DaemonSnapshot daemon;
  absl::StatusOr<std::vector<MemberSnapshot>> workers = std::vector<MemberSnapshot>{};
  absl::StatusOr<std::vector<VersionSnapshot>> versions = std::vector<VersionSnapshot>{};
  absl::StatusOr<RefusalsSnapshot> refused = RefusalsSnapshot{};
  std::string asked_job;
  std::uint32_t asked_last = 0;
};

/// A daemon whose status stands still. Thread-safe.
class StillSource final : public StatusSource {
 public:
  DaemonSnapshot Status() override {
    const MutexLock lock(mu_);
    return still_.daemon;
  }
  absl::StatusOr<std::vector<MemberSnapshot>> Workers(const std::string& job) override {
    const MutexLock lock(mu_);
    still_.asked_job = job;
    return still_.workers;
  }
  absl::StatusOr<std::vector<VersionSnapshot>> Versions(const std::string& job,
                                                        std::uint32_t last) override {
    const MutexLock lock(mu_);
    still_.asked_job = job;
    still_.asked_last = last;
    return still_.versions;
  }
  absl::StatusOr<RefusalsSnapshot> Refused(const std::string& job, std::uint32_t limit) override {
    const MutexLock lock(mu_);
    still_.asked_job = job;
    still_.asked_last = limit;
    return still_.refused;
  }
  void Set(Still still) {
    const MutexLock lock(mu_);
    still_ = std::move(still);
  }
  Still Get() {
    const MutexLock lock(mu_);
    return still_;
  }

 private:
  Mutex mu_;
  Still still_ ABSL_GUARDED_BY(mu_);
};

struct OpsFixture {
  OpsFixture() {
    OpsServerOptions options{dir.path() + "/control.sock", TcpAddress{"127.0.0.1", 0}, {1 << 20}};
    server = *OpsServer::Start(options, source);
    stub = StubAt("unix:" + options.socket);
  }
  static std::unique_ptr<v1::StatusService::Stub> StubAt(const std::string& target) {
    return v1::StatusService::NewStub(grpc::CreateCustomChannel(
        target, grpc::InsecureChannelCredentials(), ChannelArgumentsFor({1 << 20})));
  }
  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + test::Slack(std::chrono::seconds(5)));
  }

  test::TempFolder dir;
  StillSource source;
  std::unique_ptr<OpsServer> server;
  std::unique_ptr<v1::StatusService::Stub> stub;
};

TEST_CASE("Status is served on a socket of mode 0660 and over TCP", "[rpc][ops]") {
  OpsFixture fixture;
  DaemonSnapshot daemon;
  daemon.node = "n0";
  daemon.state = "updating";
  daemon.incarnation = Incarnation(9);
  daemon.term = Term(5);
  daemon.waits = {"version 3 waits for policy/1"};
  daemon.lanes = {{"n1", "tcp", 10, 20, 3}};
  Still still;
  still.daemon = daemon;
  fixture.source.Set(still);
  struct stat found {};
  REQUIRE(::stat((fixture.dir.path() + "/control.sock").c_str(), &found) == 0);
  REQUIRE((found.st_mode & 0777) == 0660);
  REQUIRE(fixture.server->address()->port != 0);
  const auto tcp = OpsFixture::StubAt("ipv4:" + fixture.server->address()->ToString());
  for (v1::StatusService::Stub* stub : {fixture.stub.get(), tcp.get()}) {
    grpc::ClientContext context;
    OpsFixture::SetDeadline(context);
    v1::StatusReply reply;
    const grpc::Status status = stub->GetStatus(&context, {}, &reply);
    CAPTURE(status.error_message());
    REQUIRE(status.ok());
    REQUIRE(reply.node() == "n0");
    REQUIRE(reply.state() == "updating");
    REQUIRE(reply.term() == 5);
    REQUIRE(reply.waits(0) == "version 3 waits for policy/1");
    REQUIRE(reply.lanes(0).received_bytes() == 20);
    REQUIRE(reply.lanes(0).connects() == 3);
  }
}

TEST_CASE("Before the first publish there are no versions, and that is no error",
          "[rpc][ops][field][case-92]") {
  OpsFixture fixture;
  grpc::ClientContext context;
  OpsFixture::SetDeadline(context);
  v1::VersionsReply reply;
  REQUIRE(fixture.stub->ListVersions(&context, {}, &reply).ok());
  REQUIRE(reply.versions_size() == 0);
}

TEST_CASE("Versions are shown with their deliveries", "[rpc][ops]") {
  OpsFixture fixture;
  DeliverySnapshot delivery;
  delivery.group = "engine0";
  delivery.state = "failed";
  delivery.status = absl::AbortedError("engine0/1 is gone");
  delivery.bytes = {100, 0, 50};
  VersionSnapshot version;
  version.job = "job";
  version.version = Version(3);
  version.state = "offered";
  version.deliveries = {delivery};
  Still still;
  still.versions = std::vector<VersionSnapshot>{version};
  fixture.source.Set(still);
  grpc::ClientContext context;
  OpsFixture::SetDeadline(context);
  v1::VersionsRequest request;
  request.set_job("job");
  request.set_last(4);
  v1::VersionsReply reply;
  REQUIRE(fixture.stub->ListVersions(&context, request, &reply).ok());
  REQUIRE(fixture.source.Get().asked_job == "job");
  REQUIRE(fixture.source.Get().asked_last == 4);
  const v1::DeliveryStatus& shown = reply.versions(0).deliveries(0);
  REQUIRE(shown.status().message() == "engine0/1 is gone");
  REQUIRE(shown.bytes_by_path().at("tcp") == 100);
  REQUIRE(shown.bytes_by_path().at("local") == 50);
}

TEST_CASE("Every refusal of an offer is listed, as many as are asked for",
          "[rpc][ops][field][case-106]") {
  OpsFixture fixture;
  Still still;
  still.refused = RefusalsSnapshot{{{"job", "bad", {"dtype", "w0", "bad/0", "w0 is BF16"}}}, 2000};
  fixture.source.Set(still);
  grpc::ClientContext context;
  OpsFixture::SetDeadline(context);
  v1::RefusalsRequest request;
  request.set_job("job");
  request.set_limit(1);
  v1::RefusalsReply reply;
  REQUIRE(fixture.stub->ListRefusals(&context, request, &reply).ok());
  REQUIRE(fixture.source.Get().asked_job == "job");
  REQUIRE(fixture.source.Get().asked_last == 1);
  REQUIRE(reply.total() == 2000);
  REQUIRE(reply.refusals_size() == 1);
  REQUIRE(
      reply.refusals(0).ShortDebugString() ==
      R"(job: "job" group: "bad" kind: "dtype" tensor: "w0" worker: "bad/0" text: "w0 is BF16")");
}

TEST_CASE("More refusals than a leader keeps are not asked of it", "[rpc][ops]") {
  OpsFixture fixture;
  v1::RefusalsRequest request;
  v1::RefusalsReply reply;
  request.set_limit(kMaxRefusals);
  grpc::ClientContext most;
  OpsFixture::SetDeadline(most);
  REQUIRE(fixture.stub->ListRefusals(&most, request, &reply).ok());
  request.set_limit(kMaxRefusals + 1);
  grpc::ClientContext context;
  OpsFixture::SetDeadline(context);
  const grpc::Status status = fixture.stub->ListRefusals(&context, request, &reply);
  REQUIRE(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  REQUIRE(status.error_message() == "limit: 10001, want at most 10000 (0: all)");
}

TEST_CASE("A daemon that is not the leader says who is", "[rpc][ops]") {
  OpsFixture fixture;
  Still still;
  still.workers = absl::FailedPreconditionError("ask 127.0.0.1:7070");
  fixture.source.Set(still);
  grpc::ClientContext context;
  OpsFixture::SetDeadline(context);
  v1::WorkersReply reply;
  const grpc::Status status = fixture.stub->ListWorkers(&context, {}, &reply);
  REQUIRE(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  REQUIRE(status.error_message() == "ask 127.0.0.1:7070");
}

TEST_CASE("A taken port is refused with its address", "[rpc][ops]") {
  OpsFixture fixture;
  StillSource source;
  const auto second = OpsServer::Start(
      {fixture.dir.path() + "/other.sock", fixture.server->address(), {1 << 20}}, source);
  REQUIRE(second.status().code() == absl::StatusCode::kUnavailable);
  REQUIRE(std::string(second.status().message()).find(fixture.server->address()->ToString()) !=
          std::string::npos);
}

}  // namespace
}  // namespace wb
