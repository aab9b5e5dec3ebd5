#include "daemon/notify.h"

#include <array>
#include <cstring>
#include <string>

#include <sys/socket.h>
#include <sys/un.h>

#include "planner/base/fd_handle.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

namespace wb {
namespace {

TEST_CASE("A service manager that does not read holds nobody up", "[daemon]") {
  const test::TempFolder folder;
  const std::string path = folder.File("notify");
  const FdHandle manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(::bind(manager.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  absl::Status told;
  for (int line = 0; line < 100'000 && told.ok(); ++line) {
    told = NotifyServiceManager(path, "STATUS=again");
  }
  REQUIRE(told.code() == absl::StatusCode::kUnavailable);
  std::array<char, 64> text{};
  REQUIRE(::recv(manager.get(), text.data(), text.size(), 0) > 0);
  REQUIRE(NotifyServiceManager(path, "STATUS=it reads").ok());
}

}  // namespace
}  // namespace wb
