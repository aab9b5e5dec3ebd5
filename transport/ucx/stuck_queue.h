#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace wb {

/// Finds out that the queue by which a process takes what others send it through shared memory has
/// come to a standstill. UCX 1.13 has one queue for all senders: each reserves the next place, then
/// fills it (mm_ep.c, uct_mm_ep_am_common_send). One that is killed in between leaves a place that
/// is never filled, and nothing behind it is ever taken: UCX only goes on to say that it is busy.
///
/// It is busy as well while a peer that stands still does not take what is sent to it; so a message
/// to oneself must tell. Time between two looks counts as a moment at most: this process may have
/// stood still itself. Loop-confined.
class StuckQueue {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kMoment{20};
  static constexpr std::chrono::milliseconds kProbeAfter{200};
  static constexpr std::chrono::milliseconds kPatience{1'000};

  enum class Verdict : std::uint8_t {
    kWait,
    kProbe,  // a message to oneself is to be sent, unless one is on its way
    kStuck,
  };

  /// The queue is empty, or something has come by it.
  void Moves() {
    busy_ = {};
    last_.reset();
  }
  /// UCX does nothing and says that it is busy.
  Verdict Busy(Clock::time_point now) {
    if (last_.has_value()) busy_ += std::min<Clock::duration>(now - *last_, kMoment);
    last_ = now;
    if (busy_ >= kPatience) return Verdict::kStuck;
    return busy_ >= kProbeAfter ? Verdict::kProbe : Verdict::kWait;
  }

 private:
  Clock::duration busy_{};
  std::optional<Clock::time_point> last_;  // that it was busy
};

}  // namespace wb
