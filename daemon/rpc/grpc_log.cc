#include "daemon/rpc/grpc_log.h"

#include <mutex>

#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

#include "daemon/rpc/repeated_lines.h"

namespace wb {
namespace {

void ToOurLog(gpr_log_func_args* line) {
  const auto level =
      line->severity == GPR_LOG_SEVERITY_ERROR ? spdlog::level::warn : spdlog::level::debug;
  static RepeatedLines repeated;
  const auto more = repeated.Passes(line->message, RepeatedLines::Clock::now());
  if (more.has_value()) spdlog::log(level, "grpc: {}{}", line->message, *more);
}

}  // namespace

void RouteGrpcLog() {
  static std::once_flag once;
  std::call_once(once, [] { gpr_set_log_function(&ToOurLog); });
}

}  // namespace wb
