#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace wb {

/// "17 B", "1.5 KiB", "70.4 GiB": at most four digits, for people.
[[nodiscard]] std::string ReadableBytes(std::uint64_t bytes);

/// "1 trainer", "2 trainers".
[[nodiscard]] std::string Count(std::size_t count, const std::string& noun);

}  // namespace wb
