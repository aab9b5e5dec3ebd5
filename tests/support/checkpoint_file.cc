#include "tests/support/checkpoint_file.h"

#include <nlohmann/json.hpp>

#include "tests/support/safetensors_bytes.h"

namespace wb::test {

std::string CheckpointFile::Bytes() const {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const Tensor& tensor : tensors_) {
    const std::size_t begin = data.size();
    data += tensor.bytes;
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  return SafetensorsBytes(header.dump(), data);
}

}  // namespace wb::test
