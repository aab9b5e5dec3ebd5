#pragma once

#include <cstddef>
#include <string_view>

#include "proto/reasons.h"

namespace wb {

/// Limits of a layout file's text.
inline constexpr std::size_t kMaxJsonBytes = 268'435'456;
inline constexpr std::size_t kMaxJsonDepth = 32;
inline constexpr std::size_t kMaxJsonObjects = 16'777'216;

/// What protobuf's lenient JSON parser lets pass and a layout file may not hold: two equal keys in
/// an object (for one field also by its other spelling), null, NaN, comments, trailing commas,
/// unquoted keys, broken UTF-8, too much depth, too many objects, too many bytes. Every reason of
/// the first kinds is told, with line, column and path; a syntax error ends the reading.
void CheckStrictJson(std::string_view json, Reasons& reasons);

}  // namespace wb
