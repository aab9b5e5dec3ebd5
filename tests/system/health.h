#pragma once

#include <memory>
#include <string>

#include <grpcpp/channel.h>

namespace wb::test {

/// A channel to an ops door: unix:PATH or HOST:PORT.
[[nodiscard]] std::shared_ptr<grpc::Channel> ChannelTo(const std::string& target);

/// What grpc.health.v1.Health answers for `service`: SERVING, NOT_SERVING, or "code N".
[[nodiscard]] std::string HealthOf(const std::string& target, const std::string& service = "");

/// Whether HealthOf becomes `health` within seconds.
[[nodiscard]] bool HealthBecomes(const std::string& target, const std::string& health);

}  // namespace wb::test
