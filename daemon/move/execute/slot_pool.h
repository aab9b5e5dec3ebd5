#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/memory/region.h"

namespace wb {

/// Equal slots of one stretch of an arena, each free or taken. Loop-confined.
class SlotPool {
 public:
  /// Slots of `slot_bytes` in `memory`, which is `stretch` of an arena.
  SlotPool(const MemoryRef& stretch, std::span<std::byte> memory, std::uint64_t slot_bytes)
      : stretch_(stretch), memory_(memory), slot_bytes_(slot_bytes) {
    const std::uint64_t slots = memory.size() / slot_bytes;
    free_.reserve(slots);
    for (std::uint64_t slot = slots; slot > 0; --slot) {
      free_.push_back(static_cast<std::uint32_t>(slot - 1));
    }
  }

  std::uint64_t slot_bytes() const { return slot_bytes_; }
  std::size_t free() const { return free_.size(); }
  /// There is a free one.
  std::uint32_t Take() {
    const std::uint32_t slot = free_.back();  // the last given back: it may still be in a cache
    free_.pop_back();
    return slot;
  }
  void Give(std::uint32_t slot) { free_.push_back(slot); }

  /// The first `bytes` of a slot.
  MemoryRef Ref(std::uint32_t slot, std::uint64_t bytes) const {
    return {stretch_.region, stretch_.offset + slot * slot_bytes_, bytes};
  }
  std::span<std::byte> Memory(std::uint32_t slot, std::uint64_t bytes) const {
    return memory_.subspan(slot * slot_bytes_, bytes);
  }

 private:
  MemoryRef stretch_;
  std::span<std::byte> memory_;
  std::uint64_t slot_bytes_;
  std::vector<std::uint32_t> free_;
};

}  // namespace wb
