#include "daemon/tls_setup.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "planner/base/status_macros.h"

namespace wb {

absl::StatusOr<std::shared_ptr<const TlsIdentity>> LoadTls(const DaemonOptions& options) {
  if (!options.has_tls()) return nullptr;
  WB_ASSIGN_OR_RETURN(std::shared_ptr<const TlsIdentity> identity, TlsIdentity::Load(options.tls));
  if (!options.leader_listen.has_value()) return identity;
  if (identity->names().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tls.cert: ", options.tls.cert,
                     " has no names (subjectAltName), want the IP address that daemons have as "
                     "leader.address, or the name that they have as tls.leader_name"));
  }
  if (!options.tls_leader_name.empty() && !identity->IsFor(options.tls_leader_name)) {
    return absl::InvalidArgumentError(absl::StrCat("tls.leader_name: '", options.tls_leader_name,
                                                   "' is none of the names in ", options.tls.cert,
                                                   ": ", absl::StrJoin(identity->names(), ", ")));
  }
  return identity;
}

std::string LeaderNameFor(const DaemonOptions& options, const TlsIdentity* identity) {
  if (identity == nullptr) return "";
  if (!options.tls_leader_name.empty()) return options.tls_leader_name;
  if (options.leader_address.has_value()) return options.leader_address->host;
  const std::string& listens = options.leader_listen->host;
  return identity->IsFor(listens) ? listens : identity->names().front();
}

}  // namespace wb
