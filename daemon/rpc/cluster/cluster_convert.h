#pragma once

#include "absl/status/statusor.h"
#include "weightbridge/v1/cluster.pb.h"

#include "daemon/state/cluster_messages.h"
#include "planner/model/ids.h"
#include "proto/v1.h"

namespace wb {

// The cluster door's messages as values and back: every untrusted field is checked here (layouts
// and plan parts by proto/convert). Stateless; thread-safe.

[[nodiscard]] v1::ClusterRequest ToProto(const ToLeader& message, Term term);
[[nodiscard]] v1::ClusterReply ToProto(const FromLeader& message, Term term);

/// INVALID_ARGUMENT names the field and what was wanted. The term is the caller's to compare.
[[nodiscard]] absl::StatusOr<ToLeader> ToLeaderFromProto(const v1::ClusterRequest& wire);
[[nodiscard]] absl::StatusOr<FromLeader> FromLeaderFromProto(const v1::ClusterReply& wire);

/// The message's name, for logs and refusals.
[[nodiscard]] const char* NameOf(const v1::ClusterRequest& wire);
[[nodiscard]] const char* NameOf(const v1::ClusterReply& wire);

}  // namespace wb
