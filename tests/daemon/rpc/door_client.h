#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/base/fd_handle.h"
#include "proto/v1.h"

namespace wb::test {

/// The other side of the local door, packet by packet, with nothing checked: for clients that
/// behave and clients that do not.
class DoorClient {
 public:
  explicit DoorClient(const std::string& path);

  bool connected() const { return static_cast<bool>(socket_); }
  /// False when the other end is closed.
  bool Send(const v1::ClientMessage& message, const std::vector<int>& descriptors = {});
  bool SendBytes(const std::string& bytes, const std::vector<int>& descriptors = {});
  /// The next message; nothing at the end of the connection or after `bound`.
  std::optional<v1::DaemonMessage> Next(std::chrono::milliseconds bound = std::chrono::seconds(5));
  /// Whether the connection ends within `bound`; messages before that are dropped.
  bool Ends(std::chrono::milliseconds bound = std::chrono::seconds(5));
  void HangUp() { socket_.Reset(); }
  /// Says that it will send no more; it still reads.
  void SendNoMore();

 private:
  FdHandle socket_;
  bool ended_ = false;
};

/// A worker that joins as a good client does; a test changes what it wants wrong before Join.
struct JoiningWorker {
  v1::JoinRequest join;
  v1::Layout layout;
  struct Buffer {
    v1::AttachBuffer attach;
    FdHandle memory;
  };
  std::vector<Buffer> buffers;
  std::uint32_t timeout_ms = 10'000;  // of each message

  /// A rollout or trainer of rank 0 of 1 with params "a" (16 bytes) and "b" (8 bytes), each a
  /// buffer of its own.
  static JoiningWorker Make(v1::Role role, const std::string& group);
  /// All messages of the join, ids from 1, without waiting for an answer.
  void Send(DoorClient& client) const;
  /// Send and the answer.
  std::optional<v1::DaemonMessage> Join(DoorClient& client) const;
};

/// A memfd of `bytes` with both seals that the door wants, or none.
FdHandle MakeMemory(std::uint64_t bytes, bool sealed = true);

v1::ClientMessage PublishOf(std::uint64_t id, std::uint64_t version, std::uint32_t timeout_ms);
v1::ClientMessage ReceiveOf(std::uint64_t id, std::uint64_t version, std::uint32_t timeout_ms);

/// Open descriptors of this process.
std::size_t OpenDescriptors();

}  // namespace wb::test
