#pragma once

#include "absl/status/status.h"

#include "daemon/rpc/tls/tls_identity.h"

namespace wb {

/// Why a stream to the leader failed, in an operator's words: `why` is what gRPC says, `tls` what
/// we showed the leader, null for nothing. gRPC's wrapping goes; where one side has TLS and the
/// other has not, or the leader does not take our certificate, the text says so. Stateless.
[[nodiscard]] absl::Status ExplainConnectFailure(const absl::Status& why, const TlsIdentity* tls);

}  // namespace wb
