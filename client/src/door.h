#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "client/src/deadline.h"
#include "client/src/errors.h"
#include "client/src/packet_socket.h"
#include "proto/v1.h"

namespace wb::client {

/// One connection to the daemon's local door: numbers what it sends and parses what comes. An error
/// from any method means that the connection is of no further use.
class Door {
 public:
  static Result<Door> Open(const std::string& path, Deadline deadline);

  /// Sends `message` under a new id, which it returns, with `attachment` unless that is negative.
  /// The daemon is told to answer by `deadline`.
  Result<std::uint64_t> Post(v1::ClientMessage message, int attachment, Deadline deadline);
  /// The next message; waits kDaemonGrace longer than `deadline`.
  Result<v1::DaemonMessage> Next(Deadline deadline);
  /// The next message; waits until `deadline`, and takes what has arrived also after it.
  Result<v1::DaemonMessage> Until(Deadline deadline);
  /// The next message of those that have arrived; DEADLINE_EXCEEDED where none has.
  Result<v1::DaemonMessage> Arrived();
  /// Whether the other end still holds its side. `take` is shown what came between calls, and says
  /// whether that fits.
  bool Alive(const std::function<bool(const v1::DaemonMessage&)>& take);
  /// The daemon's process; to be taken when the connection is given up.
  PeerProcess TakePeer() { return socket_.TakePeer(); }
  /// Of what was posted last; 0: nothing yet.
  std::uint64_t last_id() const { return last_id_; }

 private:
  explicit Door(PacketSocket socket) : socket_(std::move(socket)) {}

  PacketSocket socket_;
  std::uint64_t last_id_ = 0;
};

/// Of an answer that does not fit request `id`.
[[nodiscard]] Error Unexpected(const v1::DaemonMessage& message, std::uint64_t id);

/// What the daemon said of a request that it did not grant.
[[nodiscard]] Error ErrorFromWire(const v1::Status& status);

}  // namespace wb::client
