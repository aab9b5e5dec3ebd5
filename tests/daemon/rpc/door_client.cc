#include "tests/daemon/rpc/door_client.h"

#include <array>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/time_slack.h"

namespace wb::test {

DoorClient::DoorClient(const std::string& path)
    : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    socket_.Reset();
  }
}

bool DoorClient::Send(const v1::ClientMessage& message, const std::vector<int>& descriptors) {
  return SendBytes(message.SerializeAsString(), descriptors);
}

bool DoorClient::SendBytes(const std::string& bytes, const std::vector<int>& descriptors) {
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size() * sizeof(int));
  }
  return ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL) >= 0;
}

void DoorClient::SendNoMore() {
  ::shutdown(socket_.get(), SHUT_WR);
}

std::optional<v1::DaemonMessage> DoorClient::Next(std::chrono::milliseconds bound) {
  pollfd waited{socket_.get(), POLLIN, 0};
  const int ready = ::poll(&waited, 1, static_cast<int>(Slack(bound).count()));
  if (ready <= 0) return std::nullopt;
  std::vector<char> bytes(64 * 1024 + 1);
  const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  v1::DaemonMessage message;
  if (got <= 0 || !message.ParseFromArray(bytes.data(), static_cast<int>(got))) {
    ended_ = true;
    return std::nullopt;
  }
  return message;
}

bool DoorClient::Ends(std::chrono::milliseconds bound) {
  while (Next(bound).has_value()) {
  }
  return ended_;
}

JoiningWorker JoiningWorker::Make(v1::Role role, const std::string& group) {
  JoiningWorker worker;
  v1::Layout& layout = worker.layout;
  layout.set_job("job");
  for (const auto& [name, extent] : {std::pair{"a", 4}, std::pair{"b", 2}}) {
    v1::Tensor& tensor = (*layout.mutable_tensors())[name];
    tensor.set_dtype(v1::FP32);
    tensor.add_shape(extent);
    v1::Param& param = *layout.mutable_worker()->add_params();
    param.set_name(name);
    param.add_shape(extent);
    v1::Piece& piece = *param.add_pieces();
    piece.set_tensor(name);
    piece.mutable_box()->add_lo(0);
    piece.mutable_box()->add_hi(extent);
    piece.add_at(0);
    Buffer buffer;
    buffer.attach.set_buffer(name);
    buffer.attach.set_bytes(static_cast<std::uint64_t>(extent) * 4);
    buffer.attach.set_epoch(1);
    buffer.memory = MakeMemory(buffer.attach.bytes());
    worker.buffers.push_back(std::move(buffer));
  }
  layout.mutable_worker()->set_role(role);
  layout.mutable_worker()->set_group(group);
  layout.mutable_worker()->set_rank(0);
  v1::JoinRequest& join = worker.join;
  join.set_protocol(1);
  join.set_job("job");
  join.set_role(role);
  join.set_group(group);
  join.set_rank(0);
  join.set_world_size(1);
  join.set_incarnation(99);
  join.set_memory(v1::MEMORY_EMPTY);
  join.set_layout_bytes(layout.ByteSizeLong());
  join.set_buffers(2);
  return worker;
}

void JoiningWorker::Send(DoorClient& client) const {
  std::uint64_t id = 0;
  v1::ClientMessage message;
  message.set_timeout_ms(timeout_ms);
  message.set_id(++id);
  *message.mutable_join() = join;
  client.Send(message);
  const std::string bytes = layout.SerializeAsString();
  // In two parts, so that there is an order to keep.
  for (const auto& part : {bytes.substr(0, bytes.size() / 2), bytes.substr(bytes.size() / 2)}) {
    message.set_id(++id);
    message.mutable_layout_part()->set_data(part);
    client.Send(message);
  }
  for (const Buffer& buffer : buffers) {
    message.set_id(++id);
    *message.mutable_attach_buffer() = buffer.attach;
    client.Send(message,
                buffer.memory ? std::vector<int>{buffer.memory.get()} : std::vector<int>{});
  }
  message.set_id(++id);
  message.mutable_join_finish();
  client.Send(message);
}

std::optional<v1::DaemonMessage> JoiningWorker::Join(DoorClient& client) const {
  Send(client);
  return client.Next();
}

FdHandle MakeMemory(std::uint64_t bytes, bool sealed) {
  FdHandle memory(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) std::abort();
  if (sealed) ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL);
  return memory;
}

v1::ClientMessage PublishOf(std::uint64_t id, std::uint64_t version, std::uint32_t timeout_ms) {
  v1::ClientMessage message;
  message.set_id(id);
  message.set_timeout_ms(timeout_ms);
  message.mutable_publish()->set_version(version);
  return message;
}

v1::ClientMessage ReceiveOf(std::uint64_t id, std::uint64_t version, std::uint32_t timeout_ms) {
  v1::ClientMessage message;
  message.set_id(id);
  message.set_timeout_ms(timeout_ms);
  message.mutable_receive()->set_version(version);
  return message;
}

std::size_t OpenDescriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

}  // namespace wb::test
