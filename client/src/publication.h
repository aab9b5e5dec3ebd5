#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/src/call.h"
#include "client/src/errors.h"
#include "proto/v1.h"

namespace wb::client {

/// What a trainer says of a version.
struct PublishWish {
  std::string label;
  std::vector<std::string> required_groups;
  bool snapshot = false;
};

/// A version whose snapshot is taken: it moves while the worker goes on.
struct Publication {
  Call call;             // the Publish, whose deadline the daemon keeps
  std::uint64_t id = 0;  // of its request, which is still to be answered
  /// What an in place Publish would have returned; unset while it moves.
  std::optional<Result<v1::PublishReply>> end;
  std::vector<v1::GroupOutcome> outcomes;
  bool told = false;  // the caller knows of its end
};

/// How a publication ended that the caller had not asked for.
struct PastPublication {
  std::uint64_t version = 0;  // 0: none
  wb_status code = WB_OK;
  std::string message;
};

}  // namespace wb::client
