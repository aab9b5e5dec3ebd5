#include "daemon/rpc/tls/tls_identity.h"

#include <utility>

#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "daemon/rpc/small_file.h"
#include "daemon/rpc/tls/pem.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

using StoreHandle = UniqueHandle<OpensslTraits<X509_STORE, &X509_STORE_free>>;
using StoreContextHandle = UniqueHandle<OpensslTraits<X509_STORE_CTX, &X509_STORE_CTX_free>>;

/// Certificates between a leaf and its CA; borrows them. Its function is a macro.
struct StackTraits {
  using Raw = STACK_OF(X509) *;
  static constexpr Raw kNull = nullptr;
  static void Close(Raw stack) noexcept { sk_X509_free(stack); }
};
using StackHandle = UniqueHandle<StackTraits>;

enum class Readers { kAnyone, kOwnerAndGroup };

absl::StatusOr<std::string> ReadFile(const std::string& path, Readers readers) {
  WB_ASSIGN_OR_RETURN(SmallFile file, ReadSmallFile(path, kMaxFileBytes));
  if (readers == Readers::kOwnerAndGroup && (file.mode & S_IRWXO) != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("has mode %04o: everyone may use it, want 0640 or less", file.mode));
  }
  return std::move(file.text);
}

/// Adds what is wrong with the file of a key of the configuration to `reasons`.
template <typename T>
void Note(const absl::StatusOr<T>& read,
          const std::string& key,
          const std::string& path,
          std::vector<std::string>& reasons) {
  if (!read.ok()) reasons.push_back(absl::StrCat(key, ": ", path, " ", read.status().message()));
}

const char* UseOf(TlsPeer peer) {
  return peer == TlsPeer::kServer ? "ssl_server" : "ssl_client";
}

}  // namespace

/// What OpenSSL holds of an identity. Not changed once it is made, so that any thread may use it.
struct TlsIdentity::Trusted {
  std::vector<X509Handle> own;  // the leaf first
  StoreHandle store;

  absl::Status Check(X509* leaf, const std::vector<X509Handle>& between, TlsPeer peer) const;
};

absl::Status TlsIdentity::Trusted::Check(X509* leaf,
                                         const std::vector<X509Handle>& between,
                                         TlsPeer peer) const {
  const StackHandle untrusted(sk_X509_new_null());
  for (const X509Handle& one : between) sk_X509_push(untrusted.get(), one.get());
  const StoreContextHandle context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), store.get(), leaf, untrusted.get()) != 1 ||
      X509_STORE_CTX_set_default(context.get(), UseOf(peer)) != 1) {
    return absl::InternalError("tls: OpenSSL has no memory");
  }
  if (X509_verify_cert(context.get()) == 1) return absl::OkStatus();
  const int error = X509_STORE_CTX_get_error(context.get());
  X509* const at = X509_STORE_CTX_get_current_cert(context.get());
  ERR_clear_error();
  const bool above = at != nullptr && X509_cmp(at, leaf) != 0;
  return absl::UnauthenticatedError(absl::StrCat(
      "certificate ", Describe(leaf), ", issued by ", IssuerOf(leaf), ", ", ValidityOf(leaf), ": ",
      above ? absl::StrCat("above it, ", Describe(at), ", ", ValidityOf(at), ": ") : "",
      X509_verify_cert_error_string(error)));
}

TlsIdentity::TlsIdentity() = default;
TlsIdentity::~TlsIdentity() = default;

absl::StatusOr<std::shared_ptr<const TlsIdentity>> TlsIdentity::Load(const TlsFiles& files) {
  std::vector<std::string> reasons;
  const auto read = [&reasons](const std::string& key, const std::string& path, Readers readers) {
    absl::StatusOr<std::string> text = ReadFile(path, readers);
    Note(text, key, path, reasons);
    return text.ok() ? *std::move(text) : std::string();
  };
  std::shared_ptr<TlsIdentity> identity(new TlsIdentity());
  identity->cert_pem_ = read("tls.cert", files.cert, Readers::kAnyone);
  identity->key_pem_ = read("tls.key", files.key, Readers::kOwnerAndGroup);
  identity->ca_pem_ = read("tls.ca", files.ca, Readers::kAnyone);
  const auto refused = [&reasons] {
    return absl::InvalidArgumentError(absl::StrJoin(reasons, "\n"));
  };
  if (!reasons.empty()) return refused();

  auto own = CertificatesOf(identity->cert_pem_);
  Note(own, "tls.cert", files.cert, reasons);
  const auto key = PrivateKeyOf(identity->key_pem_);
  Note(key, "tls.key", files.key, reasons);
  const auto authorities = CertificatesOf(identity->ca_pem_);
  Note(authorities, "tls.ca", files.ca, reasons);
  if (!reasons.empty()) return refused();
  if (X509_check_private_key(own->front().get(), key->get()) != 1) {
    ERR_clear_error();
    reasons.push_back(absl::StrCat("tls.key: ", files.key, " is not the key of the certificate ",
                                   Describe(own->front().get()), " in ", files.cert));
    return refused();
  }
  auto trusted = std::make_unique<Trusted>();
  trusted->store = StoreHandle(X509_STORE_new());
  for (const X509Handle& one : *authorities) X509_STORE_add_cert(trusted->store.get(), one.get());
  identity->names_ = NamesOf(own->front().get());
  trusted->own = *std::move(own);
  identity->trusted_ = std::move(trusted);
  return std::shared_ptr<const TlsIdentity>(std::move(identity));
}

bool TlsIdentity::IsFor(const std::string& name) const {
  return wb::IsFor(trusted_->own.front().get(), name);
}

std::string TlsIdentity::ToString() const {
  X509* const leaf = trusted_->own.front().get();
  return absl::StrCat("certificate ", Describe(leaf), ", issued by ", IssuerOf(leaf), ", ",
                      ValidityOf(leaf));
}

absl::Status TlsIdentity::CheckOwn() const {
  return trusted_->Check(trusted_->own.front().get(), trusted_->own, TlsPeer::kClient);
}

absl::Status TlsIdentity::CheckPeer(std::string_view leaf,
                                    std::string_view chain,
                                    TlsPeer peer,
                                    const std::string& name) const {
  absl::StatusOr<std::vector<X509Handle>> certificate = CertificatesOf(leaf);
  if (!certificate.ok()) {
    return absl::UnauthenticatedError(
        absl::StrCat("what was sent ", certificate.status().message()));
  }
  absl::StatusOr<std::vector<X509Handle>> between = CertificatesOf(chain);
  if (!between.ok()) between.emplace();
  X509* const own = certificate->front().get();
  WB_RETURN_IF_ERROR(trusted_->Check(own, *between, peer));
  if (name.empty() || wb::IsFor(own, name)) return absl::OkStatus();
  return absl::UnauthenticatedError(
      absl::StrCat("certificate ", Describe(own), " is not for ", name));
}

}  // namespace wb
