#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/wbctl/process/child.h"
#include "client/wbctl/process/control_channel.h"
#include "client/wbctl/process/stop_signals.h"
#include "planner/base/fd_handle.h"

namespace wb {

/// What a Supervisor has seen.
struct SupervisorEvent {
  enum class Kind : std::uint8_t {
    kEnded,     // `child` has ended: child(i).Ended() says how
    kSaid,      // `child` sent `text` over its control channel
    kNotified,  // `child` sent `text` to the notify socket, lines "NAME=VALUE"
    kSignal,    // this process was sent `signal`
  };
  Kind kind = Kind::kEnded;
  std::size_t child = 0;
  std::string text;
  int signal = 0;
};

/// The children of this process, watched together: their ends, their messages, and the signals
/// that ask us to stop. One poll, no thread. All children end with it, and the notify socket's
/// file goes. Thread-compatible, move-only; `signals` outlives it.
class Supervisor {
 public:
  /// Binds a datagram socket at `notify_path`, which must not exist yet.
  static absl::StatusOr<Supervisor> Create(const std::filesystem::path& notify_path,
                                           const StopSignals& signals);
  ~Supervisor();
  Supervisor(Supervisor&&) noexcept;
  Supervisor& operator=(Supervisor&&) = delete;
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Starts a child whose readiness comes to the notify socket ($NOTIFY_SOCKET is set for it).
  /// Returns its index.
  absl::StatusOr<std::size_t> StartNotifying(ChildOptions options);
  /// Starts a child with a control channel at its kControlFd. Returns its index.
  absl::StatusOr<std::size_t> StartControlled(ChildOptions options);

  std::size_t size() const { return watched_.size(); }
  Child& child(std::size_t index) { return watched_[index].child; }
  const Child& child(std::size_t index) const { return watched_[index].child; }
  absl::Status Send(std::size_t index, const std::string& message) const;

  /// The next event; nothing when `deadline` has passed without one. A child's messages come
  /// before its end; each end is told once.
  absl::StatusOr<std::optional<SupervisorEvent>> Next(
      std::chrono::steady_clock::time_point deadline);

 private:
  struct Watched {
    Child child;
    std::optional<ControlChannel> control;
    bool end_told = false;
  };
  Supervisor(std::filesystem::path notify_path, FdHandle notify, const StopSignals& signals)
      : notify_path_(std::move(notify_path)), notify_(std::move(notify)), signals_(signals) {}
  std::optional<SupervisorEvent> TakeSignal() const;
  std::optional<SupervisorEvent> TakeNotice() const;
  std::optional<SupervisorEvent> TakeFrom(std::size_t index);
  std::optional<SupervisorEvent> TakeAny();
  /// Returns when something may be there to take, or at the deadline.
  absl::Status Poll(std::chrono::steady_clock::time_point deadline) const;

  std::filesystem::path notify_path_;
  FdHandle notify_;
  const StopSignals& signals_;
  std::vector<Watched> watched_;
};

}  // namespace wb
