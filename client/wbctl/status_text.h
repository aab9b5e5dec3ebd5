#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "weightbridge/v1/status.pb.h"

#include "proto/v1.h"

namespace wb {

// A daemon's replies as people and programs read them. JSON has the messages' names in snake_case,
// integers as numbers, empty fields present. Stateless.

[[nodiscard]] nlohmann::ordered_json ToJson(const v1::StatusReply& reply);
[[nodiscard]] nlohmann::ordered_json ToJson(const v1::WorkersReply& reply);
[[nodiscard]] nlohmann::ordered_json ToJson(const v1::VersionsReply& reply);
[[nodiscard]] nlohmann::ordered_json ToJson(const v1::RefusalsReply& reply);

[[nodiscard]] std::string ToTable(const v1::StatusReply& reply);
[[nodiscard]] std::string ToTable(const v1::WorkersReply& reply);
[[nodiscard]] std::string ToTable(const v1::VersionsReply& reply);
[[nodiscard]] std::string ToTable(const v1::RefusalsReply& reply);

}  // namespace wb
