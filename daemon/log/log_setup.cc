#include "daemon/log/log_setup.h"

#include <chrono>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>

#include "daemon/log/folding_sink.h"
#include "daemon/log/queued_sink.h"

namespace wb {
namespace {

// How late, beyond its minute, it is told how often a line came.
constexpr std::chrono::seconds kTellEvery{5};

/// The event's text as a JSON string: quotes, control characters and broken UTF-8 are escaped.
class JsonText final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message,
              const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    const nlohmann::json text = std::string(message.payload.data(), message.payload.size());
    const std::string escaped = text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.append(escaped.data(), escaped.data() + escaped.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonText>();
  }
};

}  // namespace

void KeepStandardDescriptors() {
  // The lowest number that is free is given first.
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR));
  }
}

void SetUpLog(const std::string& level, bool json) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  if (json) {
    formatter->add_flag<JsonText>('*').set_pattern(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","thread":%t,"text":%*})");
  } else {
    formatter->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %L %v");
  }
  auto written = std::make_shared<QueuedSink>(STDERR_FILENO, std::move(formatter));
  auto sink = std::make_shared<FoldingSink>(std::move(written));
  auto logger = std::make_shared<spdlog::logger>("weightbridged", std::move(sink));
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::critical);  // an abort may follow
  spdlog::set_default_logger(std::move(logger));
  spdlog::flush_every(kTellEvery);
}

}  // namespace wb
