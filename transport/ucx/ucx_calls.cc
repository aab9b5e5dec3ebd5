#include "transport/ucx/ucx_calls.h"

#include "transport/ucx/ucx_status.h"

namespace wb {

absl::Status SetMessageHandler(ucp_worker_h worker,
                               WireKind kind,
                               ucp_am_recv_callback_t callback,
                               void* argument) {
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = static_cast<unsigned>(kind);
  params.flags = UCP_AM_FLAG_WHOLE_MSG;
  params.cb = callback;
  params.arg = argument;
  return FromUcs(ucp_worker_set_am_recv_handler(worker, &params),
                 "ucx: ucp_worker_set_am_recv_handler");
}

ucs_status_ptr_t CloseByForce(ucp_ep_h ep, ucp_send_nbx_callback_t done, void* argument) {
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  params.cb.send = done;
  params.user_data = argument;
  return ucp_ep_close_nbx(ep, &params);
}

}  // namespace wb
