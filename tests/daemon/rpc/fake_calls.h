#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/move/session_calls.h"

namespace wb::test {

/// A coordinator that opens every session and keeps calls until the test answers them.
/// Loop-confined, as the real one.
class FakeCalls final : public SessionCalls {
 public:
  void OpenSession(SessionOpening opening,
                   Clock::time_point /*deadline*/,
                   std::function<void(SessionOpened)> done) override {
    const SessionId session = opening.session;
    const MemoryState memory = outcome.value_or(opening.memory);
    openings.emplace(session, std::move(opening));
    if (hold_openings) {
      held_opening = std::move(done);
      return;
    }
    if (!open_status.ok()) Unmap(session);
    done({open_status, memory});
  }
  void Publish(const SessionId& /*session*/,
               Version version,
               const PublishCall& call,
               Clock::time_point deadline,
               std::function<void(PublishResult)> done) override {
    last_call = call;
    last_deadline = deadline;
    publishes[version.value()] = std::move(done);
  }
  void WaitForVersion(const SessionId& /*session*/,
                      Version at_least,
                      Clock::time_point /*deadline*/,
                      std::function<void(absl::StatusOr<Version>)> done) override {
    waits[at_least.value()] = std::move(done);
  }
  void Receive(const SessionId& /*session*/,
               Version version,
               Clock::time_point /*deadline*/,
               std::function<void(ReceiveResult)> done) override {
    receives[version.value()] = std::move(done);
  }
  void CloseSession(const SessionId& session, const std::string& reason) override {
    closed[session] = reason;
    if (!hold_memory) Unmap(session);
  }
  /// Lets a session's memory go.
  void Unmap(const SessionId& session) {
    auto opening = openings.extract(session);
    if (opening.empty()) return;
    opening.mapped().buffers.clear();
    opening.mapped().released();
  }

  absl::Status open_status;
  bool hold_openings = false;
  bool hold_memory = false;  // of a session that is closed, until Unmap
  std::function<void(SessionOpened)> held_opening;
  std::optional<MemoryState> outcome;            // of what the next to open holds in doubt
  std::map<SessionId, SessionOpening> openings;  // of sessions whose memory is mapped
  std::map<SessionId, std::string> closed;       // with the reason
  std::map<std::uint64_t, std::function<void(PublishResult)>> publishes;
  std::map<std::uint64_t, std::function<void(absl::StatusOr<Version>)>> waits;
  std::map<std::uint64_t, std::function<void(ReceiveResult)>> receives;
  PublishCall last_call;
  Clock::time_point last_deadline;
};

}  // namespace wb::test
