#include "transport/ucx/ucx_stack.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "planner/base/status_macros.h"
#include "transport/ucx/ucx_environment.h"
#include "transport/ucx/ucx_status.h"

namespace wb {
namespace {

// A TCP segment: with UCX's default of 8 KiB a transfer of 1 MiB is up to ten times slower.
constexpr std::uint64_t kTcpSegmentBytes = std::uint64_t{1} << 20;

// UCX's own choice for shared memory, pinned: its receive queue is made of such pieces. 64 KiB ends
// in an assertion inside UCX 1.13.
constexpr std::uint64_t kShmSegmentBytes = 8256;

/// Whether transport keys are named with their transport (TCP_TX_SEG_SIZE), as from UCX 1.17 on.
/// Before, that spelling is taken without an error and without effect.
bool TransportKeysHavePrefix() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return major > 1 || (major == 1 && minor >= 17);
}

absl::StatusOr<UcpConfigHandle> PinnedConfig(const UcxStackOptions& options) {
  ucp_config_t* raw = nullptr;
  WB_RETURN_IF_ERROR(FromUcs(ucp_config_read(nullptr, nullptr, &raw), "ucx: ucp_config_read"));
  UcpConfigHandle config(raw);
  const std::string tcp = TransportKeysHavePrefix() ? "TCP_" : "";
  const std::string segment = absl::StrCat(kTcpSegmentBytes);
  std::vector<std::pair<std::string, std::string>> settings = {
      {"TLS", options.shm ? "tcp,posix" : "tcp"},
      {"NET_DEVICES", options.interface},
      {"SOCKADDR_TLS_PRIORITY", "tcp"},
      {"RNDV_THRESH", absl::StrCat(kRendezvousBytes)},
      // The sender streams as soon as it knows the receive has begun. UCX's own choice on TCP, puts
      // that are acknowledged, measured a quarter slower.
      {"RNDV_SCHEME", "am"},
      // With shared memory no lane for remote reads and writes: it would be TCP's, and UCX would
      // take it for payloads instead of the one that it sends messages over.
      {"MAX_RNDV_RAILS", options.shm ? "0" : "1"},
      {"KEEPALIVE_INTERVAL", "1s"},
      // For a worker that takes over another's port (UcxFabric), whose connections linger there.
      {tcp + "CM_REUSEADDR", "y"},
      // With remote writes, an endpoint that is closed by force flushes itself by one, and UCX 1.13
      // aborts the process when the answer comes after the end. Nothing of ours needs them.
      {tcp + "PUT_ENABLE", "n"},
      // Nor is a payload sent from where it lies: when the peer goes amid such a send, UCX 1.13
      // ends it twice and aborts. Its copy into a segment costs no rate that is seen beside the
      // kernel's.
      {"ZCOPY_THRESH", "inf"},
      {tcp + "TX_SEG_SIZE", segment},
      {tcp + "RX_SEG_SIZE", segment},
  };
  if (options.shm) {
    // Without it UCX uses no shared memory where the death of peers is to be told.
    settings.emplace_back("MM_ERROR_HANDLING", "y");
    settings.emplace_back("MM_SEG_SIZE", absl::StrCat(kShmSegmentBytes));
  }
  for (const auto& [name, value] : settings) {
    const ucs_status_t status = ucp_config_modify(config.get(), name.c_str(), value.c_str());
    const std::string what = absl::StrCat("ucx: setting ", name, "=", value);
    WB_RETURN_IF_ERROR(FromUcs(status, what.c_str()));
  }
  return config;
}

absl::StatusOr<UcpContextHandle> OpenContext(const UcxStackOptions& options) {
  WB_ASSIGN_OR_RETURN(const UcpConfigHandle config, PinnedConfig(options));
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "weightbridge";
  ucp_context_h context = nullptr;
  WB_RETURN_IF_ERROR(FromUcs(ucp_init(&params, config.get(), &context), "ucx: ucp_init"));
  return UcpContextHandle(context);
}

absl::StatusOr<UcpWorkerHandle> OpenWorker(ucp_context_h context) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucp_worker_h worker = nullptr;
  WB_RETURN_IF_ERROR(
      FromUcs(ucp_worker_create(context, &params, &worker), "ucx: ucp_worker_create"));
  return UcpWorkerHandle(worker);
}

/// The only way to see whether a segment size was applied: a header must fit one segment of each
/// transport of the worker.
absl::Status CheckSegment(ucp_worker_h worker, const char* name, std::uint64_t segment_bytes) {
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  WB_RETURN_IF_ERROR(FromUcs(ucp_worker_query(worker, &attributes), "ucx: ucp_worker_query"));
  const std::uint64_t header_bytes = attributes.max_am_header;
  if (header_bytes >= segment_bytes / 2 && header_bytes <= segment_bytes) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "ucx: %s=%d was not applied: headers may have %d bytes", name, segment_bytes, header_bytes));
}

absl::StatusOr<UcxStack> OpenStack(const UcxStackOptions& options) {
  UcxStack stack;
  WB_ASSIGN_OR_RETURN(stack.context, OpenContext(options));
  WB_ASSIGN_OR_RETURN(stack.worker, OpenWorker(stack.context.get()));
  return stack;
}

}  // namespace

absl::StatusOr<UcxStack> OpenUcxStack(const UcxStackOptions& options) {
  if (const std::vector<std::string> set = InheritedUcxVariables(); !set.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("ucx: the environment sets ", absl::StrJoin(set, ", "), ", want none"));
  }
  RouteUcxLog();
  if (options.shm) {
    // TCP by itself first: beside shared memory, whose segments are smaller, its own do not show.
    WB_ASSIGN_OR_RETURN(const UcxStack probe, OpenStack({options.interface, false}));
    WB_RETURN_IF_ERROR(CheckSegment(probe.worker.get(), "TX_SEG_SIZE", kTcpSegmentBytes));
  }
  WB_ASSIGN_OR_RETURN(UcxStack stack, OpenStack(options));
  WB_RETURN_IF_ERROR(options.shm
                         ? CheckSegment(stack.worker.get(), "MM_SEG_SIZE", kShmSegmentBytes)
                         : CheckSegment(stack.worker.get(), "TX_SEG_SIZE", kTcpSegmentBytes));
  stack.tcp_segment_bytes = kTcpSegmentBytes;
  stack.shm_segment_bytes = options.shm ? kShmSegmentBytes : 0;
  WB_RETURN_IF_ERROR(
      FromUcs(ucp_worker_get_efd(stack.worker.get(), &stack.wakeup_fd), "ucx: ucp_worker_get_efd"));
  return stack;
}

}  // namespace wb
