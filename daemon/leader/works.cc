#include "daemon/leader/works.h"

#include <utility>

namespace wb {

void Works::Begin(std::function<void(const Report& report)> work) {
  background_.Submit(
      [work = std::move(work), &background = background_, turn = turns_.FromOutside()] {
        work([&](Turns::Task task) {
          background.Report([turn, task = std::move(task)] { turn(task); });
        });
      });
}

}  // namespace wb
