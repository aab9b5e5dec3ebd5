#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "weightbridge/v1/status.grpc.pb.h"

namespace wb {

/// The leader's own account of its versions, asked over its ops door. Makes gRPC's threads: only
/// after the last process has been started. Thread-compatible.
class LeaderCounters {
 public:
  /// `target` as gRPC names it: "unix:PATH".
  explicit LeaderCounters(const std::string& target);
  /// What the leader says of version `version` of `job`.
  absl::StatusOr<::weightbridge::v1::VersionStatus> Ask(const std::string& job,
                                                        std::uint64_t version,
                                                        std::chrono::milliseconds timeout);

 private:
  std::unique_ptr<::weightbridge::v1::StatusService::Stub> stub_;
};

}  // namespace wb
