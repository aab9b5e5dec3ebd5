#pragma once

#include <deque>
#include <utility>

namespace wb {

/// Messages on their way into one gRPC stream, which takes one at a time. Not bounded: what is
/// said about a version grows with its workers and groups only, and a peer that stops reading is
/// ended by its missing pings. Guarded by its owner's lock.
template <typename Message>
class Outgoing {
 public:
  /// The message to write now, when none is being written; it stays where it is until Written.
  [[nodiscard]] const Message* Push(Message message) {
    queue_.push_back(std::move(message));
    return queue_.size() == 1 ? &queue_.front() : nullptr;
  }
  /// The first one is written: the next to write, or null.
  [[nodiscard]] const Message* Written() {
    queue_.pop_front();
    return queue_.empty() ? nullptr : &queue_.front();
  }
  [[nodiscard]] bool idle() const { return queue_.empty(); }

 private:
  std::deque<Message> queue_;  // pushing at its ends moves no element
};

}  // namespace wb
