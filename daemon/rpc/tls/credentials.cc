#include "daemon/rpc/tls/credentials.h"

#include <functional>
#include <string_view>
#include <utility>

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <spdlog/spdlog.h>

#include "daemon/rpc/grpc_options.h"

namespace wb {
namespace {

namespace tls = grpc::experimental;

std::string_view ViewOf(const grpc::string_ref& text) {
  return {text.data(), text.size()};
}

/// Decides on a peer when its handshake is done, before gRPC reads a byte of it. gRPC's own check
/// of the chain is left out for ours, which is the same one of OpenSSL's: gRPC keeps to itself
/// whether a certificate is of another CA or out of date, and an operator needs to know.
class PeerVerifier final : public tls::ExternalCertificateVerifier {
 public:
  PeerVerifier(std::shared_ptr<const TlsIdentity> identity, TlsPeer peer, std::string name)
      : identity_(std::move(identity)), peer_(peer), name_(std::move(name)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/,
              grpc::Status* sync_status) override {
    const absl::Status fine = identity_->CheckPeer(
        ViewOf(request->peer_cert()), ViewOf(request->peer_cert_full_chain()), peer_, name_);
    *sync_status = ToGrpc(fine);
    if (!fine.ok() && peer_ == TlsPeer::kClient) {
      spdlog::warn("tls: a client is refused: {}", std::string(fine.message()));
    }
    return true;  // decided here and now
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  const std::shared_ptr<const TlsIdentity> identity_;
  const TlsPeer peer_;
  const std::string name_;
};

std::shared_ptr<tls::CertificateVerifier> VerifierOf(
    const std::shared_ptr<const TlsIdentity>& identity, TlsPeer peer, const std::string& name) {
#ifdef __clang_analyzer__
  // It takes what gRPC counts by reference for a leak, in gRPC's own header.
  static_cast<void>(PeerVerifier(identity, peer, name));
  return nullptr;
#else
  return tls::ExternalCertificateVerifier::Create<PeerVerifier>(identity, peer, name);
#endif
}

std::shared_ptr<tls::CertificateProviderInterface> ProviderOf(const TlsIdentity& identity) {
  return std::make_shared<tls::StaticDataCertificateProvider>(
      identity.ca_pem(),
      std::vector<tls::IdentityKeyCertPair>{{identity.key_pem(), identity.cert_pem()}});
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> ServerCredentialsFor(
    const std::shared_ptr<const TlsIdentity>& identity) {
  if (identity == nullptr) return grpc::InsecureServerCredentials();
  tls::TlsServerCredentialsOptions options(ProviderOf(*identity));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_certificate_verifier(VerifierOf(identity, TlsPeer::kClient, ""));
  return tls::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsFor(
    const std::shared_ptr<const TlsIdentity>& identity, const std::string& name) {
  if (identity == nullptr) return grpc::InsecureChannelCredentials();
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(ProviderOf(*identity));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(false);  // by PeerVerifier, in full
  options.set_check_call_host(false);      // by PeerVerifier: `name`
  options.set_certificate_verifier(VerifierOf(identity, TlsPeer::kServer, name));
  return tls::TlsCredentials(options);
}

}  // namespace wb
