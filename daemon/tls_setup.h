#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "daemon/options.h"
#include "daemon/rpc/tls/tls_identity.h"

namespace wb {

/// The identity that `options` name, null where they have no tls. INVALID_ARGUMENT as
/// TlsIdentity::Load, and for a leader whose certificate no daemon could take it by.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const TlsIdentity>> LoadTls(
    const DaemonOptions& options);

/// The name that the leader's certificate must be for: tls.leader_name, else the address that is
/// dialled; for the leader's own stream, one of its own certificate's names. Empty without TLS.
[[nodiscard]] std::string LeaderNameFor(const DaemonOptions& options, const TlsIdentity* identity);

}  // namespace wb
