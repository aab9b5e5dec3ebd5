#pragma once

#include <ucp/api/ucp.h>

#include "absl/status/status.h"

#include "transport/ucx/wire_header.h"

namespace wb {

/// Has UCX call `callback` with `argument` for each whole active message of the kind.
absl::Status SetMessageHandler(ucp_worker_h worker,
                               WireKind kind,
                               ucp_am_recv_callback_t callback,
                               void* argument);

/// Closes an endpoint by force: a flush of one that has failed never ends. As ucp_ep_close_nbx
/// returns: a request, which `done` is called for with `argument`, an error, or null.
ucs_status_ptr_t CloseByForce(ucp_ep_h ep, ucp_send_nbx_callback_t done, void* argument);

}  // namespace wb
