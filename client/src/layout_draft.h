#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/include/weightbridge/weightbridge.h"
#include "client/src/errors.h"
#include "client/src/shared_buffer.h"
#include "planner/base/fd_handle.h"
#include "proto/v1.h"

namespace wb::client {

/// The memory of one buffer, as the caller handed it over. The descriptor is a duplicate of our
/// own, shared by the draft and the sessions made from it.
struct BufferMemory {
  std::shared_ptr<const FdHandle> fd;
  std::shared_ptr<const SealedBuffer> shared;  // that it is, whole; null: the caller's own memory
  std::uint64_t offset_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t epoch = 0;
};

/// A layout under construction: the wire message, and the memory of its buffers. Methods check what
/// they need to stay memory-safe and to blame the right argument; whether the layout makes sense is
/// checked by the daemon alone.
class LayoutDraft {
 public:
  static Result<LayoutDraft> FromBytes(std::string_view bytes);

  Result<void> AddTensor(const wb_tensor& tensor);
  Result<void> AddAlias(const char* alias, const char* target);
  /// The param's index.
  Result<std::uint32_t> AddParam(const wb_param& param);
  Result<void> AddPiece(std::uint32_t param, const wb_piece& piece);
  /// `shared` is the buffer that the memory is of, if it is one of ours.
  Result<void> SetMemory(const char* buffer,
                         const wb_memory& memory,
                         std::shared_ptr<const SealedBuffer> shared = nullptr);

  const v1::Layout& wire() const { return wire_; }
  /// By buffer name.
  const std::map<std::string, BufferMemory>& memory() const { return memory_; }

 private:
  v1::Layout wire_;
  std::map<std::string, BufferMemory> memory_;
};

/// The buffer that a param lies in.
[[nodiscard]] const std::string& BufferOf(const v1::Param& param);

}  // namespace wb::client
