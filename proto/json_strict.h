#pragma once

#include <cstddef>
#include <string_view>

#include <google/protobuf/descriptor.h>

#include "proto/door/reasons.h"

namespace wb {

/// Limits of a layout file's text.
inline constexpr std::size_t kMaxJsonBytes = 268'435'456;
inline constexpr std::size_t kMaxJsonDepth = 32;
inline constexpr std::size_t kMaxJsonObjects = 8'388'608;

/// What protobuf's lenient JSON parser lets pass and a layout file may not hold: two equal keys in
/// an object (for one field also by its other spelling), null, a list in a list, one value where a
/// list is wanted, NaN, comments, trailing commas, unquoted keys, broken UTF-8, too much depth, too
/// many objects, too many bytes; and fields that the message `type` does not have. Every such
/// reason is told, with line, column and path; a syntax error ends the reading.
///
/// What scalars hold (a number, a known name) is left to protobuf's parser. Without a `type` any
/// JSON will do.
void CheckStrictJson(std::string_view json,
                     const google::protobuf::Descriptor* type,
                     Reasons& reasons);

}  // namespace wb
