#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace wb {

/// A queue that allocates only when it grows beyond its largest size so far.
template <typename T>
class Fifo {
 public:
  bool empty() const { return head_ == items_.size(); }
  std::size_t size() const { return items_.size() - head_; }
  const T& front() const { return items_[head_]; }
  void push(T item) {
    if (head_ > items_.size() / 2 && items_.size() == items_.capacity()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    items_.push_back(std::move(item));
  }
  T pop() {
    T item = std::move(items_[head_]);
    if (++head_ == items_.size()) {
      items_.clear();
      head_ = 0;
    }
    return item;
  }
  /// Takes out all that `matches`; the rest keep their order. Calls `taken` with each.
  template <typename Predicate, typename Taken>
  void Extract(const Predicate& matches, const Taken& taken) {
    std::size_t kept = 0;
    for (std::size_t i = head_; i < items_.size(); ++i) {
      if (matches(items_[i])) {
        taken(items_[i]);
      } else {
        items_[kept++] = std::move(items_[i]);
      }
    }
    items_.resize(kept);
    head_ = 0;
  }

 private:
  std::vector<T> items_;
  std::size_t head_ = 0;
};

}  // namespace wb
