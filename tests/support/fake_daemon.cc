#include "tests/support/fake_daemon.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/time_slack.h"

namespace wb::test {
namespace {

constexpr std::size_t kPacketBytes = 65'536;

/// Whether `fd` became readable before `stop_fd` did.
bool Readable(int fd, int stop_fd) {
  std::array<pollfd, 2> waits{pollfd{fd, POLLIN, 0}, pollfd{stop_fd, POLLIN, 0}};
  const auto bound = Slack(std::chrono::seconds(10));
  const int ready = ::poll(waits.data(), waits.size(), static_cast<int>(bound.count()));
  return ready > 0 && waits[1].revents == 0 && waits[0].revents != 0;
}

}  // namespace

FakePeer::~FakePeer() {
  Close();
  for (const int fd : received_) ::close(fd);
}

void FakePeer::Close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

bool FakePeer::WaitReadable() {
  return fd_ >= 0 && Readable(fd_, stop_fd_);
}

std::optional<Packet> FakePeer::Next() {
  if (!WaitReadable()) return std::nullopt;
  std::string bytes(kPacketBytes, '\0');
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(fd_, &header, MSG_CMSG_CLOEXEC);
  if (got <= 0) return std::nullopt;
  Packet packet;
  packet.bytes = static_cast<std::size_t>(got);
  if (const cmsghdr* first = CMSG_FIRSTHDR(&header); first != nullptr) {
    std::memcpy(&packet.fd, CMSG_DATA(first), sizeof(packet.fd));
    received_.push_back(packet.fd);
  }
  if (!packet.message.ParseFromArray(bytes.data(), static_cast<int>(got))) return std::nullopt;
  return packet;
}

std::optional<JoinRecord> FakePeer::TakeJoin() {
  JoinRecord record;
  while (std::optional<Packet> packet = Next()) {
    v1::ClientMessage& message = packet->message;
    record.largest_packet = std::max(record.largest_packet, packet->bytes);
    record.last_id = message.id();
    if (message.has_join()) {
      record.request = message.join();
      record.first_id = message.id();
    } else if (message.has_layout_part()) {
      record.layout_bytes += message.layout_part().data();
      ++record.parts;
    } else if (message.has_attach_buffer()) {
      record.buffers.push_back({message.attach_buffer(), packet->fd});
    } else if (message.has_join_finish()) {
      if (!record.layout.ParseFromString(record.layout_bytes)) return std::nullopt;
      return record;
    }
  }
  return std::nullopt;
}

std::optional<JoinRecord> FakePeer::GrantJoin() {
  std::optional<JoinRecord> record = TakeJoin();
  if (!record) return record;
  v1::DaemonMessage reply;
  reply.set_id(record->last_id);
  reply.mutable_join()->set_session("0123456789abcdef0123456789abcdef");
  reply.mutable_join()->set_incarnation(77);
  reply.mutable_join()->set_node("n0");
  Send(reply);
  return record;
}

void FakePeer::Send(const v1::DaemonMessage& message) {
  SendRaw(message.SerializeAsString());
}

void FakePeer::SendRaw(const std::string& packet) {
  // A client that has gone shows at the next Next.
  static_cast<void>(::send(fd_, packet.data(), packet.size(), MSG_NOSIGNAL));
}

void FakePeer::Refuse(std::uint64_t id, std::int32_t code, const std::string& text) {
  v1::DaemonMessage reply;
  reply.set_id(id);
  reply.mutable_status()->set_code(code);
  reply.mutable_status()->set_message(text);
  Send(reply);
}

void FakePeer::StaySilent() {
  while (Next()) {
  }
}

FakeDaemon::FakeDaemon(Script script)
    : socket_(folder_.path() + "/worker.sock"),
      script_(std::move(script)),
      listen_fd_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)),
      stop_fd_(::eventfd(0, EFD_CLOEXEC)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const auto* raw = static_cast<const sockaddr*>(static_cast<const void*>(&address));
  const bool listening =
      ::bind(listen_fd_, raw, sizeof(address)) == 0 && ::listen(listen_fd_, 8) == 0;
  if (listening) thread_ = std::thread([this] { Serve(); });
}

FakeDaemon::~FakeDaemon() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(stop_fd_, &one, sizeof(one)));
  if (thread_.joinable()) thread_.join();
  ::close(listen_fd_);
  ::close(stop_fd_);
}

void FakeDaemon::Serve() {
  for (int number = 0;; ++number) {
    std::array<pollfd, 2> waits{pollfd{listen_fd_, POLLIN, 0}, pollfd{stop_fd_, POLLIN, 0}};
    if (::poll(waits.data(), waits.size(), -1) < 0 || waits[1].revents != 0) return;
    const int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    FakePeer peer(fd, stop_fd_);
    script_(peer, number);
  }
}

}  // namespace wb::test
