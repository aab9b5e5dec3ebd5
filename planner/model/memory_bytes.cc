#include "planner/model/memory_bytes.h"

#include <string>
#include <vector>

namespace wb {
namespace {

// Beyond the object itself: a block of the allocator, if there is one.
std::uint64_t BlockBytes(std::uint64_t bytes) {
  constexpr std::uint64_t kBlockHeader = 16;
  return bytes == 0 ? 0 : bytes + kBlockHeader;
}

std::uint64_t HeapBytes(const std::string& text) {
  return text.capacity() <= std::string().capacity() ? 0 : BlockBytes(text.capacity() + 1);
}

std::uint64_t HeapBytes(const Index& index) {
  return index.capacity() <= Index().capacity()
             ? 0
             : BlockBytes(index.capacity() * sizeof(Index::value_type));
}

std::uint64_t HeapBytes(const Tensor& tensor) {
  return HeapBytes(tensor.name) + HeapBytes(tensor.shape);
}

std::uint64_t HeapBytes(const Buffer& buffer) {
  return HeapBytes(buffer.name);
}

std::uint64_t HeapBytes(const Param& param) {
  return HeapBytes(param.name) + HeapBytes(param.shape) + HeapBytes(param.strides);
}

std::uint64_t HeapBytes(const Piece& piece) {
  return HeapBytes(piece.box.lo()) + HeapBytes(piece.box.hi()) + HeapBytes(piece.strides) +
         HeapBytes(piece.at) + HeapBytes(piece.axes);
}

template <typename T>
std::uint64_t HeapBytes(const std::vector<T>& parts) {
  std::uint64_t bytes = BlockBytes(parts.capacity() * sizeof(T));
  for (const T& part : parts) bytes += HeapBytes(part);
  return bytes;
}

}  // namespace

std::uint64_t MemoryBytes(const Registration& registration) {
  const Layout& layout = registration.layout;
  return sizeof(Registration) + HeapBytes(registration.tensors) +
         HeapBytes(layout.buffers.items()) + HeapBytes(layout.params.items()) +
         HeapBytes(layout.pieces.items());
}

}  // namespace wb
