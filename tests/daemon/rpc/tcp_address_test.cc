#include "daemon/rpc/tcp_address.h"

#include "tests/support/catch.h"

namespace wb {
namespace {

TEST_CASE("An address is read and written back", "[rpc][address]") {
  REQUIRE(*ParseTcpAddress("127.0.0.1:7000") == TcpAddress{"127.0.0.1", 7000});
  REQUIRE(*ParseTcpAddress("[::1]:0") == TcpAddress{"::1", 0});
  REQUIRE(*ParseTcpAddress("localhost:65535") == TcpAddress{"127.0.0.1", 65535});
  REQUIRE(ParseTcpAddress("[2001:db8::1]:7000")->ToString() == "[2001:db8::1]:7000");
  REQUIRE(ParseTcpAddress("10.0.0.1:7")->ToString() == "10.0.0.1:7");
}

TEST_CASE("What is no address is refused", "[rpc][address]") {
  const std::string text = GENERATE("", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
                                    "127.0.0.1:-1", "127.0.0.1:7000x", "::1:7000", "[::1]", "[]:1",
                                    "host.example:7000", "unix:/a:1", "1.2.3:4", "127.0.0.1 :4");
  CAPTURE(text);
  REQUIRE(ParseTcpAddress(text).status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("Only addresses of this node are loopback", "[rpc][address]") {
  REQUIRE(IsLoopback({"127.0.0.1", 1}));
  REQUIRE(IsLoopback({"127.9.9.9", 1}));
  REQUIRE(IsLoopback({"::1", 1}));
  REQUIRE_FALSE(IsLoopback({"0.0.0.0", 1}));
  REQUIRE_FALSE(IsLoopback({"128.0.0.1", 1}));
  REQUIRE_FALSE(IsLoopback({"::", 1}));
  REQUIRE_FALSE(IsLoopback({"10.0.0.1", 1}));
}

}  // namespace
}  // namespace wb
