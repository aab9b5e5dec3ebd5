#include "tests/system/failures/cut_connections.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>

namespace wb::test {
namespace {

template <typename Predicate>
void CutWhere(const Predicate& chosen) {
  std::vector<int> descriptors;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    descriptors.push_back(std::atoi(entry.path().filename().c_str()));
  }
  for (const int fd : descriptors) {
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) continue;
    if (chosen(peer)) ::shutdown(fd, SHUT_RDWR);
  }
}

}  // namespace

void CutTcpConnections() {
  CutWhere([](const sockaddr_storage& peer) {
    return peer.ss_family == AF_INET || peer.ss_family == AF_INET6;
  });
}

void CutConnectionsTo(const std::string& path) {
  CutWhere([&path](const sockaddr_storage& peer) {
    return peer.ss_family == AF_UNIX && path == reinterpret_cast<const sockaddr_un&>(peer).sun_path;
  });
}

}  // namespace wb::test
