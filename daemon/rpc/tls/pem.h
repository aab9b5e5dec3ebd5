#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "absl/status/statusor.h"

#include "planner/base/unique_handle.h"

namespace wb {

/// The traits of OpenSSL's objects, each of which has a function of its own that frees it.
template <typename T, auto Free>
struct OpensslTraits {
  using Raw = T*;
  static constexpr Raw kNull = nullptr;
  static void Close(Raw object) noexcept { Free(object); }
};
using X509Handle = UniqueHandle<OpensslTraits<X509, &X509_free>>;
using KeyHandle = UniqueHandle<OpensslTraits<EVP_PKEY, &EVP_PKEY_free>>;

/// Every certificate in `pem`, in its order; INVALID_ARGUMENT when there is none or one is broken.
[[nodiscard]] absl::StatusOr<std::vector<X509Handle>> CertificatesOf(std::string_view pem);

/// The private key in `pem`. One with a passphrase is refused: nobody is there to be asked.
[[nodiscard]] absl::StatusOr<KeyHandle> PrivateKeyOf(std::string_view pem);

/// The DNS names and IP addresses that a certificate is for (its subjectAltName), as text.
[[nodiscard]] std::vector<std::string> NamesOf(X509* certificate);

/// Whether a certificate is for `name`, a DNS name (wildcards count) or an IP address.
[[nodiscard]] bool IsFor(X509* certificate, const std::string& name);

/// "CN=n0 (n0.cluster, 10.0.0.7)" for people.
[[nodiscard]] std::string Describe(X509* certificate);
/// "CN=our CA": who signed it.
[[nodiscard]] std::string IssuerOf(X509* certificate);
/// "valid from 2026-01-01T00:00:00Z to 2027-01-01T00:00:00Z".
[[nodiscard]] std::string ValidityOf(X509* certificate);

}  // namespace wb
