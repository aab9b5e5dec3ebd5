#pragma once

#include <memory>
#include <string>

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include "daemon/rpc/tls/tls_identity.h"

namespace wb {

/// What a gRPC server is made with: mutual TLS by `identity`, or nothing where it is null (on a
/// loopback address, see options.h). A client without a certificate of our CA is refused before it
/// can say anything, and a line of the log says who it was and why.
[[nodiscard]] std::shared_ptr<grpc::ServerCredentials> ServerCredentialsFor(
    const std::shared_ptr<const TlsIdentity>& identity);

/// As above for a gRPC channel to a server whose certificate must be for `name`. Why a server was
/// refused is in the status of the call.
[[nodiscard]] std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsFor(
    const std::shared_ptr<const TlsIdentity>& identity, const std::string& name);

}  // namespace wb
