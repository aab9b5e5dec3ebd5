#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wb {

/// The paths of the configuration's `tls` section.
struct TlsFiles {
  std::string cert;  // ours, then those between it and the CA
  std::string key;   // ours; not for everyone to read
  std::string ca;    // of the cluster: whoever holds a certificate of it is a member
  friend bool operator==(const TlsFiles&, const TlsFiles&) = default;
};

/// What the other end of a connection is to us.
enum class TlsPeer { kServer, kClient };

/// Who this daemon is to others, and by which CA it knows them: certificate, key and CA as they
/// were read at start. Immutable and thread-safe.
class TlsIdentity {
 public:
  /// INVALID_ARGUMENT with every reason, one a line, each with its key of the configuration and the
  /// file: missing, unreadable, no regular file, a key that everyone may read, no PEM, a key of
  /// another certificate. A certificate that is out of date is none of them: peers refuse it.
  static absl::StatusOr<std::shared_ptr<const TlsIdentity>> Load(const TlsFiles& files);

  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;
  ~TlsIdentity();

  const std::string& cert_pem() const { return cert_pem_; }
  const std::string& key_pem() const { return key_pem_; }
  const std::string& ca_pem() const { return ca_pem_; }
  /// DNS names and IP addresses of our certificate.
  const std::vector<std::string>& names() const { return names_; }
  bool IsFor(const std::string& name) const;

  /// Our certificate for people: subject, names and validity.
  std::string ToString() const;
  /// Whether a peer with our CA would take our certificate now.
  absl::Status CheckOwn() const;

  /// Whether a peer may be talked to: its certificate is of our CA, within its time, made for that
  /// use, and, where `name` is not empty, for that name. The status says which certificate it is
  /// and what is wrong with it. `leaf` and `chain` are PEM; the chain may hold the leaf again.
  absl::Status CheckPeer(std::string_view leaf,
                         std::string_view chain,
                         TlsPeer peer,
                         const std::string& name) const;

 private:
  struct Trusted;
  TlsIdentity();
  std::string cert_pem_;
  std::string key_pem_;
  std::string ca_pem_;
  std::vector<std::string> names_;
  std::unique_ptr<const Trusted> trusted_;
};

}  // namespace wb
