#include "tests/support/checkpoint_file.h"

#include <nlohmann/json.hpp>

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
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + text + data;
}

}  // namespace wb::test
