#include "tests/support/whole_file.h"

#include <fstream>
#include <iterator>

namespace wb::test {

std::string ReadWholeFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::map<std::string, std::string> ReadWholeFolder(const std::filesystem::path& path) {
  std::map<std::string, std::string> files;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(path)) {
    files[entry.path().filename()] = ReadWholeFile(entry.path());
  }
  return files;
}

bool WriteWholeFile(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return out.flush().good();
}

}  // namespace wb::test
