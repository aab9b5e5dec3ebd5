#include "client/wbctl/rehearse/leader_counters.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"

#include "proto/v1.h"

namespace wb {

LeaderCounters::LeaderCounters(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  stub_ = v1::StatusService::NewStub(
      grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
}

absl::StatusOr<v1::VersionStatus> LeaderCounters::Ask(const std::string& job,
                                                      std::uint64_t version,
                                                      std::chrono::milliseconds timeout) {
  v1::VersionsRequest request;
  request.set_job(job);
  request.set_last(1);
  v1::VersionsReply reply;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  const grpc::Status status = stub_->ListVersions(&context, request, &reply);
  if (!status.ok()) {
    return absl::Status(
        static_cast<absl::StatusCode>(status.error_code()),
        absl::StrCat("asking the leader for version ", version, ": ", status.error_message()));
  }
  for (const v1::VersionStatus& known : reply.versions()) {
    if (known.version() == version) return known;
  }
  return absl::NotFoundError(absl::StrCat("the leader does not know version ", version));
}

}  // namespace wb
