#pragma once

#include <filesystem>
#include <string>

namespace wb::test {

/// All bytes of a file; none when it cannot be read.
[[nodiscard]] std::string ReadWholeFile(const std::filesystem::path& path);

/// Whether all bytes were written.
[[nodiscard]] bool WriteWholeFile(const std::filesystem::path& path, const std::string& bytes);

}  // namespace wb::test
