#include "daemon/log/queued_sink.h"

#include <cerrno>
#include <deque>
#include <string_view>
#include <system_error>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include <spdlog/pattern_formatter.h>

#include "absl/strings/str_cat.h"

#include "planner/base/mutex.h"

namespace wb {
namespace {

using Clock = std::chrono::steady_clock;

// A reader of a descriptor that is set not to block has this long for a line.
constexpr int kTakeMs = 1'000;
constexpr std::chrono::hours kLong{1};

/// What is left of `text`: "" when all is written. Whoever shares the descriptor may have set it
/// not to block.
std::string_view Write(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd room{fd, POLLOUT, 0};
      if (::poll(&room, 1, kTakeMs) == 0) return text;
    } else if (errno != EINTR) {
      return text;
    }
  }
  return text;
}

}  // namespace

/// The lines between those who log and the thread that writes. Thread-safe.
class QueuedSink::Queue {
 public:
  Queue(int fd, std::unique_ptr<spdlog::formatter> formatter)
      : fd_(fd), formatter_(std::move(formatter)) {}

  void SetFormatter(std::unique_ptr<spdlog::formatter> formatter) {
    const MutexLock lock(mu_);
    formatter_ = std::move(formatter);
  }

  void Push(const spdlog::details::log_msg& message) {
    const MutexLock lock(mu_);
    std::string line = Format(message);
    if (bytes_ + line.size() > kMostBytes) {
      ++lost_;
      why_ = "nobody took them";
      return;
    }
    bytes_ += line.size();
    lines_.push_back(std::move(line));
    changed_.NotifyAll();
  }

  /// Whether all that was queued has been written, or lost.
  bool WaitUntilWritten(Clock::time_point deadline) {
    const MutexLock lock(mu_);
    while (!lines_.empty() || writing_) {
      if (!changed_.WaitUntil(mu_, deadline)) return lines_.empty() && !writing_;
    }
    return true;
  }

  void Close() {
    const MutexLock lock(mu_);
    closed_ = true;
    changed_.NotifyAll();
  }

  /// The thread: until the queue is closed and empty.
  void Run() {
    for (std::string line; Next(line);) Finish(line, Write(fd_, line));
  }

 private:
  std::string Format(const spdlog::details::log_msg& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    return {line.data(), line.size()};
  }

  bool Next(std::string& line) {
    const MutexLock lock(mu_);
    while (lines_.empty()) {
      if (closed_) return false;
      changed_.WaitUntil(mu_, Clock::now() + kLong);
    }
    line = std::move(lines_.front());
    lines_.pop_front();
    bytes_ -= line.size();
    if (cut_) line.insert(0, "\n");
    writing_ = true;
    return true;
  }

  void Finish(const std::string& line, std::string_view left) {
    const int error = errno;
    const MutexLock lock(mu_);
    writing_ = false;
    if (!left.empty()) {
      cut_ = cut_ || left.size() < line.size();
      ++lost_;
      why_ = std::generic_category().message(error);
    } else {
      cut_ = false;
      if (lost_ > 0) TellLost();
    }
    changed_.NotifyAll();
  }

  /// Goes before what is queued: it was lost before it.
  void TellLost() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const std::string text = absl::StrCat("lines of this log that are lost: ", lost_, ", ", why_);
    lines_.push_front(Format(spdlog::details::log_msg("", spdlog::level::warn, text)));
    bytes_ += lines_.front().size();
    lost_ = 0;
  }

  const int fd_;
  Mutex mu_;
  CondVar changed_;
  std::unique_ptr<spdlog::formatter> formatter_ ABSL_GUARDED_BY(mu_);
  std::deque<std::string> lines_ ABSL_GUARDED_BY(mu_);
  std::size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of lines_
  bool writing_ ABSL_GUARDED_BY(mu_) = false;   // a line that is in lines_ no more
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool cut_ ABSL_GUARDED_BY(mu_) = false;  // the last line written has no end
  std::uint64_t lost_ ABSL_GUARDED_BY(mu_) = 0;
  std::string why_ ABSL_GUARDED_BY(mu_);  // the last of lost_
};

QueuedSink::QueuedSink(int fd, std::unique_ptr<spdlog::formatter> formatter)
    : queue_(std::make_shared<Queue>(fd, std::move(formatter))),
      thread_([queue = queue_] { queue->Run(); }) {}

QueuedSink::~QueuedSink() {
  flush();
  queue_->Close();
  if (queue_->WaitUntilWritten(Clock::now())) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void QueuedSink::log(const spdlog::details::log_msg& message) {
  queue_->Push(message);
}

void QueuedSink::flush() {
  static_cast<void>(queue_->WaitUntilWritten(Clock::now() + kFlushTime));
}

void QueuedSink::set_pattern(const std::string& pattern) {
  set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
}

void QueuedSink::set_formatter(std::unique_ptr<spdlog::formatter> formatter) {
  queue_->SetFormatter(std::move(formatter));
}

}  // namespace wb
