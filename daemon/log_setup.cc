#include "daemon/log_setup.h"

#include <memory>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace wb {
namespace {

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

void SetUpLog(const std::string& level, bool json) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("weightbridged", std::move(sink));
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  if (json) {
    formatter->add_flag<JsonText>('*').set_pattern(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","thread":%t,"text":%*})");
  } else {
    formatter->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %L %v");
  }
  logger->set_formatter(std::move(formatter));
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace wb
