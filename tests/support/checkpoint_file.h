#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace wb::test {

/// A safetensors file in the making: for contents that a test wants exact.
class CheckpointFile {
 public:
  /// `dtype` as safetensors names it ("F32"), whose elements `values` holds, row-major.
  template <typename T>
  void Add(const std::string& name,
           const std::string& dtype,
           const std::vector<std::int64_t>& shape,
           const std::vector<T>& values) {
    std::string bytes(values.size() * sizeof(T), '\0');
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    tensors_.push_back({name, dtype, shape, std::move(bytes)});
  }
  bool empty() const { return tensors_.empty(); }
  /// The file's bytes.
  std::string Bytes() const;

 private:
  struct Tensor {
    std::string name;
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::string bytes;
  };
  std::vector<Tensor> tensors_;
};

}  // namespace wb::test
