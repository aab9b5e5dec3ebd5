#include "client/wbctl/dial.h"

#include <fstream>
#include <iterator>

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <netinet/in.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "planner/base/status_macros.h"

namespace wb {
namespace {

bool IsUnix(const std::string& daemon) {
  return absl::StartsWith(daemon, "unix:");
}

/// By its text: a name that is looked up may be anyone's.
bool IsLoopback(const std::string& daemon) {
  std::string host = daemon.substr(0, daemon.rfind(':'));
  if (host == "localhost") return true;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

absl::StatusOr<std::string> Read(const char* option, const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad() || text.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(option, ": ", path, " cannot be read"));
  }
  return text;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(
    const DaemonAddress& address) {
  const bool all = !address.tls_cert.empty() && !address.tls_key.empty() && !address.tls_ca.empty();
  const bool any = !address.tls_cert.empty() || !address.tls_key.empty() || !address.tls_ca.empty();
  if (any && !all) {
    return absl::InvalidArgumentError("want --tls-cert, --tls-key and --tls-ca, or none of them");
  }
  if (IsUnix(address.daemon) || (!all && IsLoopback(address.daemon))) {
    return grpc::InsecureChannelCredentials();
  }
  if (!all) {
    return absl::InvalidArgumentError(
        absl::StrCat("daemon at ", address.daemon,
                     ": want --tls-cert, --tls-key and --tls-ca, or a loopback address: nothing "
                     "else is asked without TLS"));
  }
  grpc::SslCredentialsOptions options;
  WB_ASSIGN_OR_RETURN(options.pem_root_certs, Read("--tls-ca", address.tls_ca));
  WB_ASSIGN_OR_RETURN(options.pem_private_key, Read("--tls-key", address.tls_key));
  WB_ASSIGN_OR_RETURN(options.pem_cert_chain, Read("--tls-cert", address.tls_cert));
  return grpc::SslCredentials(options);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const DaemonAddress& address) {
  WB_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                      Credentials(address));
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  if (!address.tls_name.empty()) arguments.SetSslTargetNameOverride(address.tls_name);
  return grpc::CreateCustomChannel(address.daemon, credentials, arguments);
}

}  // namespace wb
