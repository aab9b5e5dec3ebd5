#pragma once

#include <string>

namespace wb::test {

/// A safetensors file: the length of the header, the header, the data.
inline std::string SafetensorsBytes(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i) & 0xFF));
  return bytes + header + data;
}

}  // namespace wb::test
