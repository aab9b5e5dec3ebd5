#pragma once

#include <memory>
#include <string>

#include <grpcpp/channel.h>
#include <grpcpp/support/status.h>

namespace wb::test {

/// One request to a gRPC method whose messages we have no generated code for, as bytes, and the
/// first reply to it. Every kind of method: half-closed after the request.
struct RawReply {
  grpc::Status status;
  std::string bytes;
};
[[nodiscard]] RawReply CallRaw(const std::shared_ptr<grpc::Channel>& channel,
                               const std::string& method,
                               const std::string& request);

}  // namespace wb::test
