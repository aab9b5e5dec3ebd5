#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace wb::test {

/// All bytes of a file; none when it cannot be read.
[[nodiscard]] std::string ReadWholeFile(const std::filesystem::path& path);

/// The bytes of each file in a folder, by name.
[[nodiscard]] std::map<std::string, std::string> ReadWholeFolder(const std::filesystem::path& path);

/// Whether all bytes were written.
[[nodiscard]] bool WriteWholeFile(const std::filesystem::path& path, const std::string& bytes);

}  // namespace wb::test
