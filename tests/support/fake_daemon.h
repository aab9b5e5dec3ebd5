#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "proto/v1.h"
#include "tests/support/temp_folder.h"

namespace wb::test {

/// A packet from a client: the message, and the descriptor that came with it (-1: none; closed with
/// the FakePeer).
struct Packet {
  v1::ClientMessage message;
  int fd = -1;
  std::size_t bytes = 0;  // of the packet
};

/// A buffer as a client attached it.
struct AttachedBuffer {
  v1::AttachBuffer request;
  int fd = -1;
};

/// All that a client sent to join.
struct JoinRecord {
  v1::JoinRequest request;
  v1::Layout layout;
  std::string layout_bytes;  // the same, as it came
  std::size_t parts = 0;
  std::size_t largest_packet = 0;  // bytes
  std::vector<AttachedBuffer> buffers;
  std::uint64_t first_id = 0;
  std::uint64_t last_id = 0;  // of JoinFinish
};

/// The daemon's end of one connection, as a script sees it. Nothing here waits for longer than a
/// few seconds: a script whose client does not do what it should runs to its end.
class FakePeer {
 public:
  FakePeer(int fd, int stop_fd) : fd_(fd), stop_fd_(stop_fd) {}
  ~FakePeer();
  FakePeer(const FakePeer&) = delete;
  FakePeer& operator=(const FakePeer&) = delete;

  /// Nothing when the client has closed, or sent nothing for too long.
  std::optional<Packet> Next();
  /// Takes a join without answering it.
  std::optional<JoinRecord> TakeJoin();
  /// Takes a join and grants it.
  std::optional<JoinRecord> GrantJoin();
  void Send(const v1::DaemonMessage& message);
  void SendRaw(const std::string& packet);
  void Refuse(std::uint64_t id, std::int32_t code, const std::string& text);
  /// Says nothing until the client closes or the test ends.
  void StaySilent();
  void Close();

 private:
  bool WaitReadable();

  int fd_;
  int stop_fd_;
  std::vector<int> received_;
};

/// A daemon at the seam of the local door: a real SOCK_SEQPACKET socket in a folder of its own, and
/// a thread that runs `script` for each connection, one after the other, with its number from 0.
class FakeDaemon {
 public:
  using Script = std::function<void(FakePeer&, int)>;
  explicit FakeDaemon(Script script);
  /// Ends the script at its next wait.
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  const std::string& socket() const { return socket_; }

 private:
  void Serve();

  TempFolder folder_;
  std::string socket_;
  Script script_;
  int listen_fd_ = -1;
  int stop_fd_ = -1;
  std::thread thread_;
};

/// What happened in a script, for the test's own thread to look at. Thread-safe.
template <typename T>
class Seen {
 public:
  void Add(T value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_.push_back(std::move(value));
  }
  std::vector<T> all() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return values_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<T> values_;
};

}  // namespace wb::test
