#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>

#include <spdlog/sinks/sink.h>

namespace wb {

/// Writes lines to a descriptor by a thread of its own: whoever logs never waits for a reader that
/// stalls or a disk that is slow. What finds no room in the queue, or cannot be written (disk full,
/// reader gone), is counted, and the count written as soon as a line can be. SIGPIPE is to be
/// ignored in the process. Thread-safe.
class QueuedSink final : public spdlog::sinks::sink {
 public:
  /// Lines that wait have at most this many bytes together.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  /// How long flush, and the end, wait for what is queued to be written.
  static constexpr std::chrono::milliseconds kFlushTime{500};

  /// `fd` stays open for ever: a write that stalls outlives the sink.
  QueuedSink(int fd, std::unique_ptr<spdlog::formatter> formatter);
  QueuedSink(const QueuedSink&) = delete;
  QueuedSink& operator=(const QueuedSink&) = delete;
  ~QueuedSink() override;

  void log(const spdlog::details::log_msg& message) override;
  void flush() override;
  void set_pattern(const std::string& pattern) override;
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override;

 private:
  class Queue;
  // Shared with the thread, which is left alone at the end if it is stuck in a write.
  const std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

}  // namespace wb
