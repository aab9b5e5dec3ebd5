#pragma once

#include <string>

namespace wb {

/// A JSON value as text: on one line, or indented by `indent` columns. Names and texts may hold any
/// bytes that a file or a peer brought in: what is not UTF-8 is replaced, nothing throws.
template <typename Json>
[[nodiscard]] std::string JsonText(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace wb
