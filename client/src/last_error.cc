#include "client/src/last_error.h"

#include <array>

namespace wb::client {
namespace {

struct LastError {
  wb_status code = WB_OK;
  const char* fixed_message = "";  // when there is no memory for another
  Error error;
};

LastError& Last() {
  thread_local LastError last;
  return last;
}

constexpr std::array kNames{
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

}  // namespace

wb_status Report(const Result<void>& outcome) {
  LastError& last = Last();
  last.fixed_message = "";
  last.error = outcome.ok() ? Error{WB_OK, "", {}} : outcome.error();
  last.code = last.error.code;
  return last.code;
}

wb_status ReportOutOfMemory() {
  LastError& last = Last();
  last.code = WB_RESOURCE_EXHAUSTED;
  last.fixed_message = "out of memory";
  last.error.details.clear();
  return last.code;
}

}  // namespace wb::client

extern "C" {

const char* wb_status_name(wb_status status) {
  const auto& names = wb::client::kNames;
  const bool known = status >= 0 && static_cast<std::size_t>(status) < names.size();
  return known ? names[static_cast<std::size_t>(status)] : "UNKNOWN";
}

wb_status wb_last_error_code(void) {
  return wb::client::Last().code;
}

const char* wb_last_error_message(void) {
  const wb::client::LastError& last = wb::client::Last();
  return *last.fixed_message != '\0' ? last.fixed_message : last.error.message.c_str();
}

size_t wb_last_error_detail_count(void) {
  return wb::client::Last().error.details.size();
}

const char* wb_last_error_detail(size_t index) {
  const wb::client::LastError& last = wb::client::Last();
  return index < last.error.details.size() ? last.error.details[index].c_str() : nullptr;
}

const char* wb_library_version(void) {
  return WB_LIBRARY_VERSION;
}

}  // extern "C"
