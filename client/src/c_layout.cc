// The C functions of shared buffers and layouts.
#include <cstdint>
#include <memory>
#include <utility>

#include "client/include/weightbridge/weightbridge.h"
#include "client/src/c_handles.h"
#include "client/src/last_error.h"
#include "client/src/sized_struct.h"

namespace wb::client {
namespace {

Error IsNull(const char* what) {
  return Invalid(std::string(what) + " is NULL");
}

}  // namespace
}  // namespace wb::client

using wb::client::IsNull;
using wb::client::LayoutDraft;
using wb::client::Result;
using wb::client::Run;
using wb::client::SealedBuffer;
using wb::client::TakeStruct;

extern "C" {

wb_status wb_shared_buffer_create(uint64_t bytes, wb_shared_buffer** buffer) {
  return Run([&]() -> Result<void> {
    if (buffer == nullptr) return IsNull("buffer");
    Result<SealedBuffer> made = SealedBuffer::Create(bytes);
    if (!made.ok()) return made.error();
    *buffer = std::make_unique<wb_shared_buffer>(std::move(*made)).release();
    return {};
  });
}

void* wb_shared_buffer_data(const wb_shared_buffer* buffer) {
  return buffer != nullptr ? buffer->sealed->data() : nullptr;
}

uint64_t wb_shared_buffer_bytes(const wb_shared_buffer* buffer) {
  return buffer != nullptr ? buffer->sealed->bytes() : 0;
}

int wb_shared_buffer_fd(const wb_shared_buffer* buffer) {
  return buffer != nullptr ? buffer->sealed->fd() : -1;
}

void wb_shared_buffer_destroy(wb_shared_buffer* buffer) {
  const std::unique_ptr<wb_shared_buffer> owned(buffer);
}

wb_status wb_layout_create(wb_layout** layout) {
  return Run([&]() -> Result<void> {
    if (layout == nullptr) return IsNull("layout");
    *layout = std::make_unique<wb_layout>().release();
    return {};
  });
}

wb_status wb_layout_from_bytes(const void* data, size_t bytes, wb_layout** layout) {
  return Run([&]() -> Result<void> {
    if (layout == nullptr) return IsNull("layout");
    if (data == nullptr && bytes > 0) return IsNull("data");
    Result<LayoutDraft> draft =
        LayoutDraft::FromBytes(std::string_view(static_cast<const char*>(data), bytes));
    if (!draft.ok()) return draft.error();
    *layout = std::make_unique<wb_layout>(wb_layout{std::move(*draft)}).release();
    return {};
  });
}

void wb_layout_destroy(wb_layout* layout) {
  const std::unique_ptr<wb_layout> owned(layout);
}

wb_status wb_layout_add_tensor(wb_layout* layout, const wb_tensor* tensor) {
  return Run([&]() -> Result<void> {
    if (layout == nullptr) return IsNull("layout");
    const Result<wb_tensor> taken = TakeStruct(tensor, "wb_tensor");
    if (!taken.ok()) return taken.error();
    return layout->draft.AddTensor(*taken);
  });
}

wb_status wb_layout_add_alias(wb_layout* layout, const char* alias, const char* target) {
  return Run([&]() -> Result<void> {
    if (layout == nullptr) return IsNull("layout");
    return layout->draft.AddAlias(alias, target);
  });
}

wb_status wb_layout_add_param(wb_layout* layout, const wb_param* param, uint32_t* index) {
  return Run([&]() -> Result<void> {
    if (layout == nullptr) return IsNull("layout");
    const Result<wb_param> taken = TakeStruct(param, "wb_param");
    if (!taken.ok()) return taken.error();
    const Result<std::uint32_t> added = layout->draft.AddParam(*taken);
    if (!added.ok()) return added.error();
    if (index != nullptr) *index = *added;
    return {};
  });
}

wb_status wb_layout_add_piece(wb_layout* layout, uint32_t param, const wb_piece* piece) {
  return Run([&]() -> Result<void> {
    if (layout == nullptr) return IsNull("layout");
    const Result<wb_piece> taken = TakeStruct(piece, "wb_piece");
    if (!taken.ok()) return taken.error();
    return layout->draft.AddPiece(param, *taken);
  });
}

wb_status wb_layout_set_memory(wb_layout* layout, const char* buffer, const wb_memory* memory) {
  return Run([&]() -> Result<void> {
    if (layout == nullptr) return IsNull("layout");
    const Result<wb_memory> taken = TakeStruct(memory, "wb_memory");
    if (!taken.ok()) return taken.error();
    return layout->draft.SetMemory(buffer, *taken);
  });
}

wb_status wb_layout_set_shared_buffer(wb_layout* layout,
                                      const char* buffer,
                                      const wb_shared_buffer* memory) {
  return Run([&]() -> Result<void> {
    if (layout == nullptr) return IsNull("layout");
    if (memory == nullptr) return IsNull("shared buffer");
    wb_memory whole{};
    whole.provider = WB_PROVIDER_FD;
    whole.handle = memory->sealed->fd();
    whole.bytes = memory->sealed->bytes();
    return layout->draft.SetMemory(buffer, whole, memory->sealed);
  });
}

}  // extern "C"
