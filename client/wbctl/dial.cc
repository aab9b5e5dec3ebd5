#include "client/wbctl/dial.h"

#include <charconv>
#include <string_view>

#include <sys/un.h>

#include <arpa/inet.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <netinet/in.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "client/wbctl/process/mapped_file.h"
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

/// gRPC would take a port modulo 65536, and look for other schemes than ours.
absl::Status CheckAddress(const std::string& daemon) {
  const auto wanted = [&daemon](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("--daemon '", daemon, "': want ",
                                                   what.empty() ? "" : what + ", as in ",
                                                   "unix:PATH or HOST:PORT"));
  };
  if (IsUnix(daemon)) {
    constexpr std::size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
    const std::size_t bytes = daemon.size() - std::string_view("unix:").size();
    return bytes >= 1 && bytes <= kMost ? absl::OkStatus()
                                        : wanted(absl::StrCat("a path of 1 to ", kMost, " bytes"));
  }
  const std::size_t colon = daemon.rfind(':');
  if (colon == std::string::npos || colon == 0) return wanted("");
  unsigned port = 0;
  const char* const end = daemon.data() + daemon.size();
  const auto [stop, error] = std::from_chars(daemon.data() + colon + 1, end, port);
  if (error != std::errc() || stop != end || port < 1 || port > 65'535) {
    return wanted("a port from 1 to 65535");
  }
  const bool bare = daemon.front() != '[' && daemon.find(':') != colon;
  return bare ? wanted("an IPv6 address in [ ]") : absl::OkStatus();
}

absl::StatusOr<std::string> Read(const char* option, const std::string& path) {
  const absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(option, ": ", file.status().message()));
  }
  const std::span<const std::byte> bytes = file->bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
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
  WB_RETURN_IF_ERROR(CheckAddress(address.daemon));
  // What gRPC has to say comes with the status of the call; its own log would say it twice.
  gpr_set_log_function([](gpr_log_func_args* /*line*/) {});
  WB_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                      Credentials(address));
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  if (!address.tls_name.empty()) arguments.SetSslTargetNameOverride(address.tls_name);
  return grpc::CreateCustomChannel(address.daemon, credentials, arguments);
}

}  // namespace wb
