#include "daemon/log/queued_sink.h"

#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "daemon/log/folding_sink.h"
#include "planner/base/fd_handle.h"
#include "tests/support/catch.h"
#include "tests/support/time_slack.h"

namespace wb {
namespace {

using test::Slack;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct Pipe {
  FdHandle reader;
  FdHandle writer;

  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    reader = FdHandle(ends[0]);
    writer = FdHandle(ends[1]);
  }
  /// All that comes until nothing has come for `quiet`.
  std::string Read(std::chrono::milliseconds quiet) const {
    std::string text;
    pollfd more{reader.get(), POLLIN, 0};
    while (::poll(&more, 1, static_cast<int>(quiet.count())) > 0) {
      std::array<char, 65536> part{};
      const ssize_t got = ::read(reader.get(), part.data(), part.size());
      if (got <= 0) break;
      text.append(part.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
};

std::unique_ptr<spdlog::formatter> Plain() {
  return std::make_unique<spdlog::pattern_formatter>("%L %v");
}

void Log(spdlog::sinks::sink& sink, const std::string& text) {
  sink.log(spdlog::details::log_msg("", spdlog::level::info, text));
}

TEST_CASE("Lines are written in order, and none is lost at the end", "[daemon][log]") {
  const Pipe pipe;
  std::string wanted;
  {
    QueuedSink sink(pipe.writer.get(), Plain());
    for (int i = 0; i < 1000; ++i) {
      Log(sink, absl::StrCat("line ", i));
      absl::StrAppend(&wanted, "I line ", i, "\n");
    }
  }
  REQUIRE(pipe.Read(0ms) == wanted);
}

TEST_CASE("A reader that stalls holds up nobody, and is told how many lines are lost",
          "[daemon][log][field][case-160]") {
  // Never closed: the thread that writes may outlive the sink.
  static const Pipe pipe;
  const auto start = Clock::now();
  auto sink = std::make_unique<QueuedSink>(pipe.writer.get(), Plain());
  const std::string line(1000, 'x');
  for (int i = 0; i < 3000; ++i) Log(*sink, line);  // 3 MB: a pipe holds 64 KiB, the queue 1 MiB
  REQUIRE(Clock::now() - start < Slack(1s));
  SECTION("when it goes on reading") {
    const std::string text = pipe.Read(Slack(50ms));
    REQUIRE(absl::StrContains(text, "W lines of this log that are lost: "));
    REQUIRE(text.size() < 2'000'000);
    Log(*sink, "and on");
    REQUIRE(pipe.Read(Slack(50ms)) == "I and on\n");
  }
  const auto end = Clock::now();
  sink.reset();
  REQUIRE(Clock::now() - end < Slack(2s));
}

TEST_CASE("A disk that is full is no fault of those who log, and what is lost is told afterwards",
          "[daemon][log][field][case-160]") {
  const FdHandle full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full);
  const Pipe pipe;
  const FdHandle log(::fcntl(full.get(), F_DUPFD_CLOEXEC, 0));
  QueuedSink sink(log.get(), Plain());
  for (int i = 0; i < 3; ++i) Log(sink, "a");
  sink.flush();
  REQUIRE(::dup3(pipe.writer.get(), log.get(), O_CLOEXEC) == log.get());  // there is room again
  Log(sink, "b");
  sink.flush();
  REQUIRE(pipe.Read(0ms) == "I b\nW lines of this log that are lost: 3, No space left on device\n");
}

TEST_CASE("A pipe without a reader is as a disk that is full", "[daemon][log]") {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.reader.Reset();
  QueuedSink sink(pipe.writer.get(), Plain());
  for (int i = 0; i < 100; ++i) Log(sink, "a");
  const auto start = Clock::now();
  sink.flush();
  REQUIRE(Clock::now() - start < QueuedSink::kFlushTime);
}

TEST_CASE("Warnings are folded, steps of versions are not", "[daemon][log][field][case-160]") {
  const Pipe pipe;
  {
    spdlog::logger logger("log", std::make_shared<FoldingSink>(
                                     std::make_shared<QueuedSink>(pipe.writer.get(), Plain())));
    for (int i = 0; i < 100; ++i) {
      logger.info("version=7 offered->released");
      logger.warn("leader=127.0.0.1:7070 lost");
    }
  }
  const std::string text = pipe.Read(0ms);
  std::size_t infos = 0;
  for (std::size_t at = 0; (at = text.find("I version", at)) != std::string::npos; ++at) ++infos;
  REQUIRE(infos == 100);
  REQUIRE(
      absl::EndsWith(text, "W leader=127.0.0.1:7070 lost (repeated 99 times, numbers aside)\n"));
}

}  // namespace
}  // namespace wb
