#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>

#include "planner/explain/nic_loads.h"

namespace wb {

/// "17 B", "1.5 KiB", "70.4 GiB": at most four digits, for people.
[[nodiscard]] std::string ReadableBytes(std::uint64_t bytes);

/// "1.509 s", "12.3 ms", "4.0 us".
[[nodiscard]] std::string ReadableSeconds(double seconds);

/// "1 trainer", "2 trainers".
[[nodiscard]] std::string Count(std::size_t count, const std::string& noun);

/// "a, b, c, d, ...": the first four.
[[nodiscard]] std::string FirstOf(std::span<const std::string> names);

[[nodiscard]] const char* NameOf(Direction direction);

/// A line of a table: a name, in a column of its own, and what there is to say.
void WriteLine(std::ostream& out, const char* name, const std::string& value);

}  // namespace wb
