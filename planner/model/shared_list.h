#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace wb {

/// A list that its copies share until one of them is edited: the workers of a hundred engines hold
/// what one engine's do, once. Reads like a const vector. A value: one copy is not to be edited
/// while another thread reads or copies that same object.
template <typename T>
class SharedList {
 public:
  using value_type = T;
  using const_iterator = typename std::vector<T>::const_iterator;

  SharedList() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): where a vector is made and then kept
  SharedList(std::vector<T> items)
      : items_(items.empty() ? nullptr : std::make_shared<std::vector<T>>(std::move(items))) {}
  SharedList(std::initializer_list<T> items) : SharedList(std::vector<T>(items)) {}

  const std::vector<T>& items() const { return items_ == nullptr ? Empty() : *items_; }
  const_iterator begin() const { return items().begin(); }
  const_iterator end() const { return items().end(); }
  std::size_t size() const { return items().size(); }
  bool empty() const { return items().empty(); }
  const T& operator[](std::size_t i) const { return items()[i]; }
  const T& front() const { return items().front(); }
  const T& back() const { return items().back(); }
  const T* data() const { return items().data(); }

  /// The list for changes, which no other copy sees.
  std::vector<T>& Edit() {
    if (items_ == nullptr) {
      items_ = std::make_shared<std::vector<T>>();
    } else if (items_.use_count() > 1) {
      items_ = std::make_shared<std::vector<T>>(*items_);
    }
    return *items_;
  }
  void push_back(T item) { Edit().push_back(std::move(item)); }

  /// Whether the items are equal because they are the same.
  bool SharesWith(const SharedList& other) const { return items_ == other.items_; }
  friend bool operator==(const SharedList& a, const SharedList& b) {
    return a.SharesWith(b) || a.items() == b.items();
  }

 private:
  static const std::vector<T>& Empty() {
    static const std::vector<T> empty;
    return empty;
  }
  std::shared_ptr<std::vector<T>> items_;  // null: empty
};

}  // namespace wb
