#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>

#include <spdlog/spdlog.h>

#include "absl/strings/str_format.h"

#include "daemon/rpc/local/local_door.h"
#include "daemon/rpc/local/packet_socket.h"
#include "daemon/rpc/sha256.h"
#include "tests/daemon/rpc/door_client.h"
#include "tests/daemon/rpc/loop_thread.h"
#include "tests/fuzz/door_cases.h"
#include "tests/fuzz/pieces.h"
#include "tests/support/temp_folder.h"

namespace wb::test {
namespace {

/// A coordinator that opens every session and answers every call at once; before a receive is, the
/// client is asked to declare its memory invalid, and before a publish from a snapshot it is told
/// that this is taken. Loop-confined.
class QuickCalls final : public SessionCalls {
 public:
  void OpenSession(SessionOpening opening,
                   Clock::time_point /*deadline*/,
                   std::function<void(SessionOpened)> done) override {
    open = std::move(opening);
    ++accepted;
    done(SessionOpened{});
  }
  void Publish(const SessionId& session,
               Version version,
               const PublishCall& call,
               Clock::time_point /*deadline*/,
               std::function<void(PublishResult)> done) override {
    ++accepted;
    if (call.snapshot) notices->NotifySnapshot(session, version, 0);
    done(PublishResult{});
  }
  void WaitForVersion(const SessionId& /*session*/,
                      Version at_least,
                      Clock::time_point /*deadline*/,
                      std::function<void(absl::StatusOr<Version>)> done) override {
    ++accepted;
    done(at_least);
  }
  void Receive(const SessionId& session,
               Version version,
               Clock::time_point /*deadline*/,
               std::function<void(ReceiveResult)> done) override {
    ++accepted;
    notices->NotifyGo(session, version, [this] { ++accepted; });
    done(ReceiveResult{});
  }
  void CloseSession(const SessionId& session, const std::string& /*reason*/) override {
    RequireInCase(open.session == session, "a session is closed that was not opened");
    const std::function<void()> released = std::move(open.released);
    open = SessionOpening{};
    released();
  }

  SessionNotices* notices = nullptr;
  SessionOpening open;
  int accepted = 0;
};

/// One door for all cases: it serves on after each of them.
class DoorWorld {
 public:
  DoorWorld() {
    spdlog::set_level(spdlog::level::off);
    // What a library cleans up at exit goes in the reverse order of its first use: libcrypto has to
    // outlive this door's threads, or what it holds for each of them leaks.
    static_cast<void>(Sha256(""));
    LocalDoorOptions options;
    options.node = "n0";
    options.incarnation = Incarnation(7);
    options.max_memory_bytes = 1 << 20;
    options.max_layout_bytes = 1 << 20;
    options.new_session_id = [next = std::uint64_t{0}]() mutable {
      return absl::StrFormat("%032x", ++next);
    };
    door_ = *LocalDoor::Open(thread_.loop(), calls_, *ListenPackets(path()), std::move(options));
    calls_.notices = door_.get();
    thread_.Run();
  }
  ~DoorWorld() { thread_.Stop(); }
  DoorWorld(const DoorWorld&) = delete;
  DoorWorld& operator=(const DoorWorld&) = delete;

  int Run(std::span<const std::uint8_t> bytes) {
    const int before = thread_.Ask([this] { return calls_.accepted; });
    {
      DoorClient client(path());
      RequireInCase(client.connected(), "the door takes no connection");
      ForEachPiece(bytes, [&](std::uint8_t what, const std::string& packet) {
        static_cast<void>(client.SendBytes(packet, Descriptors(what)));
        // What comes before the answer is out of order: a good client awaits it.
        v1::ClientMessage message;
        const bool finish = message.ParseFromString(packet) && message.has_join_finish();
        if (finish) static_cast<void>(client.Next());
      });
      // To hang up at once would end it in the midst of a check of its layout.
      client.SendNoMore();
      RequireInCase(client.Ends(), "the door does not let go of a client that has said all");
    }
    const bool empty = thread_.Becomes([this] {
      return door_->connections() == 0 && calls_.open.session.empty() &&
             door_->admission().workers() == 0 && door_->admission().memory_bytes() == 0;
    });
    RequireInCase(empty, "something is left of a client that has gone");
    return thread_.Ask([this] { return calls_.accepted; }) - before;
  }

 private:
  std::string path() const { return dir_.path() + "/worker.sock"; }
  std::vector<int> Descriptors(std::uint8_t what) const {
    switch (what % 5) {
      case 0:
        return {};
      case 1:
        return {first_.get()};
      case 2:
        return {second_.get()};
      case 3:
        return {unsealed_.get()};
      default:
        return {first_.get(), second_.get()};
    }
  }

  const TempFolder dir_;
  const FdHandle first_ = MakeMemory(4096);
  const FdHandle second_ = MakeMemory(4096);
  const FdHandle unsealed_ = MakeMemory(4096, false);
  LoopThread thread_;
  QuickCalls calls_;
  std::unique_ptr<LocalDoor> door_;
};

}  // namespace

int RunWorkerDoorCase(std::span<const std::uint8_t> bytes) {
  static DoorWorld world;
  return world.Run(bytes);
}

}  // namespace wb::test
