#include "tests/system/health.h"

#include <chrono>
#include <thread>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "absl/strings/str_cat.h"

#include "tests/support/time_slack.h"
#include "tests/system/raw_rpc.h"

namespace wb::test {

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

std::string HealthOf(const std::string& target, const std::string& service) {
  std::string request;  // HealthCheckRequest{service}
  if (!service.empty()) {
    request = std::string("\x0a") + static_cast<char>(service.size()) + service;
  }
  const RawReply reply = CallRaw(ChannelTo(target), "/grpc.health.v1.Health/Check", request);
  if (!reply.status.ok()) return absl::StrCat("code ", int{reply.status.error_code()});
  if (reply.bytes == "\x08\x01") return "SERVING";
  return reply.bytes == "\x08\x02" ? "NOT_SERVING" : "?";
}

bool HealthBecomes(const std::string& target, const std::string& health) {
  const auto deadline = std::chrono::steady_clock::now() + Slack(std::chrono::seconds(5));
  while (HealthOf(target) != health) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace wb::test
