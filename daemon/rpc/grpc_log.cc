#include "daemon/rpc/grpc_log.h"

#include <mutex>

#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

namespace wb {
namespace {

void ToOurLog(gpr_log_func_args* line) {
  const auto level =
      line->severity == GPR_LOG_SEVERITY_ERROR ? spdlog::level::warn : spdlog::level::debug;
  spdlog::log(level, "grpc: {}", line->message);
}

}  // namespace

void RouteGrpcLog() {
  static std::once_flag once;
  std::call_once(once, [] { gpr_set_log_function(&ToOurLog); });
}

}  // namespace wb
