#include "daemon/leader/works.h"

#include <functional>
#include <utility>

namespace wb {

void Works::Begin(std::function<void(const Report& report)> work) {
  background_.Submit(
      [work = std::move(work), &background = background_, turn = turns_.FromOutside()] {
        work([&](Turns::Task task) { background.Report(std::bind_front(turn, std::move(task))); });
      });
}

}  // namespace wb
