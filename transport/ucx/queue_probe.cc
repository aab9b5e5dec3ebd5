#include "transport/ucx/queue_probe.h"

#include <utility>

#include <spdlog/spdlog.h>

#include "planner/base/status_macros.h"
#include "transport/ucx/ucx_calls.h"
#include "transport/ucx/ucx_status.h"
#include "transport/ucx/wire_header.h"

namespace wb {

absl::StatusOr<std::unique_ptr<QueueProbe>> QueueProbe::Open(ucp_worker_h worker) {
  std::unique_ptr<QueueProbe> probe(new QueueProbe());
  WB_RETURN_IF_ERROR(
      SetMessageHandler(worker, WireKind::kProbe, &QueueProbe::OnArrival, probe.get()));
  WB_RETURN_IF_ERROR(probe->Connect(worker));
  return probe;
}

absl::Status QueueProbe::Connect(ucp_worker_h worker) {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  WB_RETURN_IF_ERROR(
      FromUcs(ucp_worker_get_address(worker, &address, &bytes), "ucx: ucp_worker_get_address"));
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.address = address;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;  // without it it cannot be closed by force
  const ucs_status_t created = ucp_ep_create(worker, &params, &ep_);
  ucp_worker_release_address(worker, address);
  return FromUcs(created, "ucx: ucp_ep_create to oneself");
}

absl::Status QueueProbe::Send() {
  if (sent_ > arrivals_) return absl::OkStatus();
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = &QueueProbe::OnDone;
  params.user_data = this;
  const ucs_status_ptr_t request =
      ucp_am_send_nbx(ep_, static_cast<unsigned>(WireKind::kProbe), header_.data(), header_.size(),
                      nullptr, 0, &params);
  if (UCS_PTR_IS_ERR(request)) return FromUcs(UCS_PTR_STATUS(request), "ucx: ucp_am_send_nbx");
  if (request != nullptr) ++requests_;
  ++sent_;
  return absl::OkStatus();
}

// NOLINTNEXTLINE(readability-function-size): the signature is UCX's.
ucs_status_t QueueProbe::OnArrival(void* argument,
                                   const void* /*header*/,
                                   std::size_t /*header_bytes*/,
                                   void* /*data*/,
                                   std::size_t /*bytes*/,
                                   const ucp_am_recv_param_t* /*param*/) {
  ++static_cast<QueueProbe*>(argument)->arrivals_;
  return UCS_OK;
}

void QueueProbe::OnDone(void* request, ucs_status_t /*status*/, void* argument) {
  ucp_request_free(request);
  --static_cast<QueueProbe*>(argument)->requests_;
}

void QueueProbe::Close() {
  if (ep_ == nullptr) return;
  const ucs_status_ptr_t request =
      CloseByForce(std::exchange(ep_, nullptr), &QueueProbe::OnDone, this);
  if (UCS_PTR_IS_PTR(request)) ++requests_;
  if (UCS_PTR_IS_ERR(request)) {
    spdlog::error("ucx: closing the endpoint to oneself: {}",
                  ucs_status_string(UCS_PTR_STATUS(request)));
  }
}

}  // namespace wb
