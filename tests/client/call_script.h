#pragma once

#include <cstdint>
#include <optional>

#include "tests/client/client_fixture.h"
#include "tests/support/catch.h"

namespace wb::test {

// What the scripts of a fake daemon say and take in the calls of a session.

inline v1::DaemonMessage ReplyTo(std::uint64_t id) {
  v1::DaemonMessage reply;
  reply.set_id(id);
  return reply;
}

inline v1::DaemonMessage Go(std::uint64_t version) {
  v1::DaemonMessage notice;
  notice.mutable_go()->set_version(version);
  return notice;
}

inline v1::DaemonMessage Staged(std::uint64_t version, std::uint64_t attempt) {
  v1::DaemonMessage notice;
  notice.mutable_staged()->set_version(version);
  notice.mutable_staged()->set_attempt(attempt);
  return notice;
}

/// The next request; nothing if the client did otherwise.
inline std::optional<v1::ClientMessage> TakeRequest(FakePeer& peer) {
  if (std::optional<Packet> packet = peer.Next()) return packet->message;
  return std::nullopt;
}

/// Receives one version as a daemon should: go, accepted, OK.
inline bool Deliver(FakePeer& peer, std::uint64_t version) {
  const std::optional<v1::ClientMessage> request = TakeRequest(peer);
  if (!request || request->receive().version() != version) return false;
  peer.Send(Go(version));
  const std::optional<v1::ClientMessage> accepted = TakeRequest(peer);
  if (!accepted || accepted->go_accepted().version() != version) return false;
  v1::DaemonMessage reply = ReplyTo(request->id());
  reply.mutable_receive()->set_version(version);
  reply.mutable_receive()->set_bytes_received(16);
  reply.mutable_receive()->set_wait_seconds(0.25);
  reply.mutable_receive()->set_move_seconds(0.5);
  reply.mutable_receive()->set_wire_seconds(0.375);
  reply.mutable_receive()->set_scatter_seconds(0.125);
  reply.mutable_receive()->set_copy_seconds(0.0625);
  peer.Send(reply);
  return true;
}

/// The error of a call that must fail.
template <typename T>
weightbridge::Error ErrorOf(const weightbridge::Result<T>& result) {
  REQUIRE_FALSE(result.ok());
  return result.error();
}

}  // namespace wb::test
