#include "daemon/rpc/grpc_log.h"

#include <mutex>
#include <string>

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

namespace wb {
namespace {

void ToOurLog(gpr_log_func_args* line) {
  const auto level =
      line->severity == GPR_LOG_SEVERITY_ERROR ? spdlog::level::warn : spdlog::level::debug;
  spdlog::log(level, "grpc: {}", line->message);
}

/// Protocol Buffers write to stderr what they find wrong with a stranger's message.
void ProtobufToOurLog(google::protobuf::LogLevel level,
                      const char* /*file*/,
                      int /*line*/,
                      const std::string& text) {
  const bool bad = level == google::protobuf::LOGLEVEL_ERROR;
  spdlog::log(bad ? spdlog::level::warn : spdlog::level::debug, "protobuf: {}", text);
}

}  // namespace

void RouteGrpcLog() {
  static std::once_flag once;
  std::call_once(once, [] {
    gpr_set_log_function(&ToOurLog);
    google::protobuf::SetLogHandler(&ProtobufToOurLog);
  });
}

}  // namespace wb
