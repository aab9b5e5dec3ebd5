#include "transport/ucx/ucx_environment.h"

#include <array>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include <unistd.h>

#include <spdlog/spdlog.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

namespace wb {
namespace {

spdlog::level::level_enum LevelOf(ucs_log_level_t level) {
  switch (level) {
    case UCS_LOG_LEVEL_FATAL:
      return spdlog::level::critical;
    case UCS_LOG_LEVEL_ERROR:
      return spdlog::level::err;
    case UCS_LOG_LEVEL_WARN:
      return spdlog::level::warn;
    case UCS_LOG_LEVEL_DIAG:
    case UCS_LOG_LEVEL_INFO:
      return spdlog::level::info;
    case UCS_LOG_LEVEL_DEBUG:
      return spdlog::level::debug;
    default:
      return spdlog::level::trace;
  }
}

// NOLINTNEXTLINE(readability-function-size): the signature is UCX's.
__attribute__((format(printf, 6, 0))) ucs_log_func_rc_t ToOurLog(
    const char* /*file*/,
    unsigned /*line*/,
    const char* /*function*/,
    ucs_log_level_t level,
    const ucs_log_component_config_t* /*component*/,
    const char* format,
    va_list arguments) {
  if (!spdlog::should_log(LevelOf(level))) return UCS_LOG_FUNC_RC_STOP;
  std::array<char, 512> line{};
  std::vsnprintf(line.data(), line.size(), format, arguments);
  spdlog::log(LevelOf(level), "ucx: {}", line.data());
  return UCS_LOG_FUNC_RC_STOP;
}

}  // namespace

std::vector<std::string> InheritedUcxVariables() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    if (!variable.starts_with("UCX_")) continue;
    names.emplace_back(variable.substr(0, variable.find('=')));
  }
  return names;
}

std::vector<std::string> DropInheritedUcxVariables() {
  std::vector<std::string> names = InheritedUcxVariables();
  for (const std::string& name : names) unsetenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
  return names;
}

void TakeBackUcxSignals() {
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ucs_debug_disable_signal(fault);
  std::signal(SIGHUP, SIG_DFL);
}

void RouteUcxLog() {
  static std::once_flag once;
  std::call_once(once, [] { ucs_log_push_handler(&ToOurLog); });
}

}  // namespace wb
