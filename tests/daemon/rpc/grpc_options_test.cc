#include "daemon/rpc/grpc_options.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include <grpc/grpc.h>

#include "daemon/options.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using std::chrono::milliseconds;

/// An integer among the arguments; the last one of its name counts.
std::optional<int> IntegerOf(const grpc::ChannelArguments& arguments, const char* name) {
  const grpc_channel_args all = arguments.c_channel_args();
  std::optional<int> found;
  for (std::size_t i = 0; i < all.num_args; ++i) {
    const grpc_arg& one = all.args[i];
    if (one.type == GRPC_ARG_INTEGER && std::strcmp(one.key, name) == 0) found = one.value.integer;
  }
  return found;
}

/// Shows the arguments that its server would have.
class ShownBuilder : public grpc::ServerBuilder {
 public:
  grpc::ChannelArguments Arguments() {
    grpc::ChannelArguments arguments;
    for (grpc::ServerBuilderOption* option : options()) option->UpdateArguments(&arguments);
    return arguments;
  }
};

/// What a side does to see that the other one is there.
void CheckPings(const grpc::ChannelArguments& arguments, milliseconds peer_timeout) {
  const int every_ms = IntegerOf(arguments, GRPC_ARG_KEEPALIVE_TIME_MS).value();
  const int answer_ms = IntegerOf(arguments, GRPC_ARG_KEEPALIVE_TIMEOUT_MS).value();
  REQUIRE(every_ms >= 100);
  REQUIRE(answer_ms >= every_ms);
  // A silent peer is found within the timeout, or as soon as such short pings find it.
  REQUIRE(milliseconds(every_ms) + milliseconds(answer_ms) <=
          std::max(peer_timeout, milliseconds(300)));
  REQUIRE(IntegerOf(arguments, GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS) == 1);
  REQUIRE(IntegerOf(arguments, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA) == 0);
}

TEST_CASE("Pings of both sides are in time, and any number is taken, whatever timeouts.peer is",
          "[rpc][field][case-107]") {
  for (milliseconds peer_timeout :
       {DaemonOptions().timeouts_peer, milliseconds(100), milliseconds(101), milliseconds(399),
        milliseconds(400), milliseconds(1'000), milliseconds(10'000), milliseconds(300'000),
        milliseconds(3'599'999), milliseconds(3'600'000)}) {
    CAPTURE(peer_timeout.count());
    const GrpcOptions options{1 << 20, peer_timeout};
    ShownBuilder server;
    Apply(options, server);
    CheckPings(ChannelArgumentsFor(options), peer_timeout);
    CheckPings(server.Arguments(), peer_timeout);
    // No ping is one too many, so that clients of any timeout fit.
    REQUIRE(IntegerOf(server.Arguments(), GRPC_ARG_HTTP2_MAX_PING_STRIKES) == 0);
  }
}

}  // namespace
}  // namespace wb
