#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace wb {

/// Objects that are named by a number which is never given twice. Slots are used again, so a table
/// that has grown to its working size allocates no more; an object's address stays until Give.
/// Invariant: at most 2^24 objects at a time. Loop-confined.
template <typename T>
class SlotTable {
 public:
  struct Taken {
    std::uint64_t id;
    T& object;
  };

  /// An object as its last user left it.
  Taken Take() {
    if (free_.empty()) {
      free_.push_back(slots_.size());
      slots_.push_back(std::make_unique<Slot>());
    }
    const std::size_t index = free_.back();
    free_.pop_back();
    Slot& slot = *slots_[index];
    ++slot.uses;
    slot.taken = true;
    return {slot.uses << kIndexBits | index, slot.object};
  }

  /// Null for a number that was given back, or was never given.
  T* Find(std::uint64_t id) {
    const std::uint64_t index = id & kIndexMask;
    if (index >= slots_.size()) return nullptr;
    Slot& slot = *slots_[index];
    return slot.taken && slot.uses == id >> kIndexBits ? &slot.object : nullptr;
  }

  void Give(std::uint64_t id) {
    Slot& slot = *slots_[id & kIndexMask];
    slot.taken = false;
    free_.push_back(id & kIndexMask);
  }

  /// Calls `visit(id, object)` for each object that is taken; it may give that one back.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (std::size_t index = 0; index < slots_.size(); ++index) {
      Slot& slot = *slots_[index];
      if (slot.taken) visit(slot.uses << kIndexBits | index, slot.object);
    }
  }

  std::size_t size() const { return slots_.size() - free_.size(); }

 private:
  static constexpr unsigned kIndexBits = 24;
  static constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << kIndexBits) - 1;
  struct Slot {
    std::uint64_t uses = 0;
    bool taken = false;
    T object;
  };

  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::size_t> free_;
};

}  // namespace wb
