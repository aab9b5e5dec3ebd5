#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace wb::test {

/// A NumPy file in C order, read.
struct NpyFile {
  std::string descr;  // "<f4"; empty: not such a file
  std::vector<std::int64_t> shape;
  std::string bytes;  // of the elements

  /// Not such a file: `descr` is empty.
  static NpyFile Parse(const std::string& file);

  /// The elements, which have the size of a T.
  template <typename T>
  std::vector<T> As() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
};

}  // namespace wb::test
