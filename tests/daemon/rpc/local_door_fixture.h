#pragma once

#include <memory>
#include <string>

#include "absl/strings/str_format.h"

#include "daemon/rpc/local/local_door.h"
#include "daemon/rpc/local/packet_socket.h"
#include "tests/daemon/rpc/door_client.h"
#include "tests/daemon/rpc/fake_calls.h"
#include "tests/daemon/rpc/loop_thread.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

namespace wb::test {

/// A local door on a loop of its own, with FakeCalls behind it.
class DoorFixture {
 public:
  DoorFixture() : DoorFixture(Defaults()) {}
  explicit DoorFixture(LocalDoorOptions options) : path_(dir_.path() + "/worker.sock") {
    options.node = "n0";
    options.incarnation = Incarnation(7);
    options.new_session_id = [next = std::uint64_t{0}]() mutable {
      return absl::StrFormat("%032x", ++next);
    };
    FdHandle listener = *ListenPackets(path_);
    door_ = *LocalDoor::Open(thread_.loop(), calls_, std::move(listener), std::move(options));
    thread_.Run();
  }
  DoorFixture(const DoorFixture&) = delete;
  DoorFixture& operator=(const DoorFixture&) = delete;
  ~DoorFixture() { thread_.Stop(); }

  static LocalDoorOptions Defaults() {
    LocalDoorOptions options;
    options.max_memory_bytes = 1 << 20;
    options.max_layout_bytes = 1 << 20;
    options.linger = std::chrono::milliseconds(500);
    return options;
  }

  const std::string& path() const { return path_; }
  LocalDoor& door() { return *door_; }
  FakeCalls& calls() { return calls_; }
  LoopThread& thread() { return thread_; }
  /// Whether no session is open and no connection left, within the time that the door promises.
  bool Empties() {
    return thread_.Becomes([this] {
      return door_->connections() == 0 && calls_.openings.empty() &&
             door_->admission().workers() == 0 && door_->admission().memory_bytes() == 0;
    });
  }

 private:
  TempFolder dir_;
  std::string path_;
  LoopThread thread_;
  FakeCalls calls_;
  std::unique_ptr<LocalDoor> door_;
};

/// The refusal that a client reads before the end of its connection.
inline absl::Status RefusalOf(DoorClient& client) {
  const std::optional<v1::DaemonMessage> message = client.Next();
  if (!message.has_value()) return absl::UnknownError("no message");
  const absl::Status status(static_cast<absl::StatusCode>(message->status().code()),
                            message->status().message());
  if (!status.ok() && !client.Ends()) return absl::UnknownError("the connection does not end");
  return status;
}

}  // namespace wb::test
