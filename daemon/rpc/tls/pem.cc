#include "daemon/rpc/tls/pem.h"

#include <array>
#include <climits>
#include <cstddef>
#include <ctime>
#include <memory>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace wb {
namespace {

using BioHandle = UniqueHandle<OpensslTraits<BIO, &BIO_free>>;

BioHandle Reader(std::string_view text) {
  if (text.size() > INT_MAX) return {};
  return BioHandle(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// OpenSSL's own one would ask at the terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*argument*/) {
  return -1;
}

std::string TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

/// From the bytes of an address in a certificate; "" where they are none.
std::string IpTextOf(const ASN1_STRING* bytes) {
  const bool v4 = ASN1_STRING_length(bytes) == static_cast<int>(sizeof(in_addr));
  if (!v4 && ASN1_STRING_length(bytes) != static_cast<int>(sizeof(in6_addr))) return "";
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(v4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), text.data(),
              static_cast<socklen_t>(text.size()));
  return text.data();
}

std::string OneLine(const X509_NAME* name) {
  const BioHandle out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  char* text = nullptr;
  const long bytes = BIO_get_mem_data(out.get(), &text);  // NOLINT: a macro of OpenSSL's
  return bytes > 0 ? std::string(text, static_cast<std::size_t>(bytes)) : "(no subject)";
}

std::string TimeText(const ASN1_TIME* time) {
  std::tm fields{};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return "?";
  return absl::StrFormat("%04d-%02d-%02dT%02d:%02d:%02dZ", fields.tm_year + 1900, fields.tm_mon + 1,
                         fields.tm_mday, fields.tm_hour, fields.tm_min, fields.tm_sec);
}

}  // namespace

absl::StatusOr<std::vector<X509Handle>> CertificatesOf(std::string_view pem) {
  const BioHandle reader = Reader(pem);
  std::vector<X509Handle> found;
  ERR_clear_error();
  while (X509* one = PEM_read_bio_X509(reader.get(), nullptr, &NoPassphrase, nullptr)) {
    found.emplace_back(one);
  }
  // The end of the text shows as "no start line".
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (found.empty() || !at_end) {
    return absl::InvalidArgumentError(found.empty() ? "has no certificate in PEM"
                                                    : "has a broken certificate in it");
  }
  return found;
}

absl::StatusOr<KeyHandle> PrivateKeyOf(std::string_view pem) {
  const BioHandle reader = Reader(pem);
  ERR_clear_error();
  KeyHandle key(PEM_read_bio_PrivateKey(reader.get(), nullptr, &NoPassphrase, nullptr));
  ERR_clear_error();
  if (key.get() != nullptr) return key;
  const bool locked = pem.find("ENCRYPTED") != std::string_view::npos;
  return absl::InvalidArgumentError(locked ? "has a passphrase, want a key without one"
                                           : "has no private key in PEM");
}

std::vector<std::string> NamesOf(X509* certificate) {
  const auto free = [](GENERAL_NAMES* names) { GENERAL_NAMES_free(names); };
  const std::unique_ptr<GENERAL_NAMES, decltype(free)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      free);
  std::vector<std::string> found;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    std::string text;
    if (name->type == GEN_DNS) text = TextOf(name->d.dNSName);
    if (name->type == GEN_IPADD) text = IpTextOf(name->d.iPAddress);
    if (!text.empty()) found.push_back(std::move(text));
  }
  return found;
}

bool IsFor(X509* certificate, const std::string& name) {
  if (X509_check_ip_asc(certificate, name.c_str(), 0) == 1) return true;
  return X509_check_host(certificate, name.data(), name.size(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT,
                         nullptr) == 1;
}

std::string Describe(X509* certificate) {
  const std::vector<std::string> names = NamesOf(certificate);
  // From a stranger perhaps, and goes into the log: a name may not end its line.
  return absl::StrCat(OneLine(X509_get_subject_name(certificate)), " (",
                      names.empty() ? "no names" : absl::CHexEscape(absl::StrJoin(names, ", ")),
                      ")");
}

std::string IssuerOf(X509* certificate) {
  return OneLine(X509_get_issuer_name(certificate));
}

std::string ValidityOf(X509* certificate) {
  return absl::StrCat("valid from ", TimeText(X509_get0_notBefore(certificate)), " to ",
                      TimeText(X509_get0_notAfter(certificate)));
}

}  // namespace wb
