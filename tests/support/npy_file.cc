#include "tests/support/npy_file.h"

#include <regex>

namespace wb::test {

NpyFile NpyFile::Parse(const std::string& file) {
  constexpr std::size_t kPrefixBytes = 10;
  if (file.size() < kPrefixBytes || file.substr(0, 8) != std::string("\x93NUMPY\x01\x00", 8))
    return {};
  const auto low = static_cast<unsigned char>(file[8]);
  const auto high = static_cast<unsigned char>(file[9]);
  const std::size_t header_bytes = low + 256U * high;
  if (file.size() < kPrefixBytes + header_bytes) return {};
  const std::string header = file.substr(kPrefixBytes, header_bytes);
  std::smatch match;
  static const std::regex kHeader(
      R"('descr': '([^']+)', 'fortran_order': False, 'shape': \(([^)]*)\))");
  if (!std::regex_search(header, match, kHeader)) return {};
  NpyFile npy{match[1], {}, file.substr(kPrefixBytes + header_bytes)};
  const std::string shape = match[2];
  static const std::regex kNumber("[0-9]+");
  for (std::sregex_iterator it(shape.begin(), shape.end(), kNumber), end; it != end; ++it) {
    npy.shape.push_back(std::stoll(it->str()));
  }
  return npy;
}

}  // namespace wb::test
