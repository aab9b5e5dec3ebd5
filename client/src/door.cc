#include "client/src/door.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace wb::client {

Result<Door> Door::Open(const std::string& path, Deadline deadline) {
  Result<PacketSocket> socket = PacketSocket::Connect(path, deadline);
  if (!socket.ok()) return socket.error();
  return Door(std::move(*socket));
}

Result<std::uint64_t> Door::Post(v1::ClientMessage message, int attachment, Deadline deadline) {
  constexpr Milliseconds kMost{std::numeric_limits<std::uint32_t>::max()};
  const Milliseconds timeout = std::clamp(Remaining(deadline), Milliseconds(1), kMost);
  message.set_id(++last_id_);
  message.set_timeout_ms(static_cast<std::uint32_t>(timeout.count()));
  std::string packet;
  if (!message.SerializeToString(&packet) || packet.size() > kMaxPacketBytes) {
    return Error{WB_INVALID_ARGUMENT,
                 "a message of " + std::to_string(message.ByteSizeLong()) +
                     " bytes, want at most " + std::to_string(kMaxPacketBytes),
                 {}};
  }
  Result<void> sent = socket_.Send(packet, attachment, deadline + kDaemonGrace);
  if (!sent.ok()) return sent.error();
  return last_id_;
}

Result<v1::DaemonMessage> Door::Until(Deadline deadline) {
  Result<std::string> packet = socket_.Receive(deadline);
  if (!packet.ok()) return packet.error();
  v1::DaemonMessage message;
  if (!message.ParseFromString(*packet)) {
    return Error{
        WB_INTERNAL,
        "a packet of " + std::to_string(packet->size()) + " bytes that is not a DaemonMessage",
        {}};
  }
  return message;
}

Result<v1::DaemonMessage> Door::Arrived() {
  return Until(SteadyClock::now());
}

Result<v1::DaemonMessage> Door::Next(Deadline deadline) {
  return Until(deadline + kDaemonGrace);
}

bool Door::Alive(const std::function<bool(const v1::DaemonMessage&)>& take) {
  while (true) {
    const Result<v1::DaemonMessage> message = Arrived();
    if (!message.ok()) return message.error().code == WB_DEADLINE_EXCEEDED;
    if (!take(*message)) return false;
  }
}

Error Unexpected(const v1::DaemonMessage& message, std::uint64_t id) {
  return Error{WB_INTERNAL,
               "its answer " + std::to_string(message.id()) + " (kind " +
                   std::to_string(static_cast<int>(message.body_case())) +
                   ") does not fit request " + std::to_string(id),
               {}};
}

Error ErrorFromWire(const v1::Status& status) {
  const bool known = status.code() > WB_OK && status.code() <= WB_UNAUTHENTICATED;
  Error error{known ? status.code() : WB_UNKNOWN,
              status.message(),
              {status.details().begin(), status.details().end()}};
  for (const v1::ErrorInfo& info : status.infos()) {
    error.details.push_back(CulpritDetail(info.reason(), info.domain(),
                                          {info.metadata().begin(), info.metadata().end()}));
  }
  return error;
}

}  // namespace wb::client
