#include "client/wbctl/contents/runs.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace wb {
namespace {

/// A dimension of a box: how far a step goes in the tensor (elements) and in memory (bytes).
struct Step {
  std::uint64_t extent = 1;
  std::uint64_t in_tensor = 1;
  std::uint64_t in_memory = 0;
};

/// The dimensions of the piece's box, outermost first, neighbours merged where both the tensor's
/// order and the memory run on. The last one steps by one element of the tensor.
std::vector<Step> MergedSteps(const Tensor& tensor, const Piece& piece) {
  const auto element = static_cast<std::uint64_t>(DtypeBytes(tensor.dtype));
  std::vector<Step> steps{{1, 1, element}};  // innermost first, while they are merged
  std::uint64_t in_tensor = 1;
  for (int d = piece.box.ndim() - 1; d >= 0; --d) {
    const auto at = static_cast<std::size_t>(d);
    const Step step{static_cast<std::uint64_t>(piece.box.extent(d)), in_tensor,
                    static_cast<std::uint64_t>(piece.strides[at]) * element};
    in_tensor *= static_cast<std::uint64_t>(tensor.shape[at]);
    if (step.extent == 1) continue;
    Step& inner = steps.back();
    if (inner.extent == 1 && step.in_tensor == 1) {
      inner = step;
    } else if (step.in_tensor == inner.in_tensor * inner.extent &&
               step.in_memory == inner.in_memory * inner.extent) {
      inner.extent *= step.extent;
    } else {
      steps.push_back(step);
    }
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

std::uint64_t FirstElement(const Tensor& tensor, const Box& box) {
  std::uint64_t linear = 0;
  for (std::size_t d = 0; d < box.lo().size(); ++d) {
    linear = linear * static_cast<std::uint64_t>(tensor.shape[d]) +
             static_cast<std::uint64_t>(box.lo()[d]);
  }
  return linear;
}

void VisitInner(ElementRun run, const std::function<void(const ElementRun&)>& visit) {
  std::uint64_t left = run.count;
  while (left > 0) {
    run.count = std::min(left, kMaxRunElements);
    visit(run);
    run.begin += run.count;
    run.offset += run.count * run.stride;
    left -= run.count;
  }
}

/// Steps the outer dimensions on by one, like an odometer; false after the last.
bool Advance(const std::vector<Step>& steps, std::vector<std::uint64_t>& index, ElementRun& run) {
  for (std::size_t d = steps.size(); d > 0; --d) {
    const Step& step = steps[d - 1];
    if (++index[d - 1] < step.extent) {
      run.begin += step.in_tensor;
      run.offset += step.in_memory;
      return true;
    }
    run.begin -= (step.extent - 1) * step.in_tensor;
    run.offset -= (step.extent - 1) * step.in_memory;
    index[d - 1] = 0;
  }
  return false;
}

}  // namespace

void ForEachRun(const Tensor& tensor,
                const Piece& piece,
                const std::function<void(const ElementRun&)>& visit) {
  std::vector<Step> steps = MergedSteps(tensor, piece);
  const Step inner = steps.back();
  steps.pop_back();
  ElementRun run{FirstElement(tensor, piece.box), inner.extent, piece.offset_bytes,
                 inner.in_memory};
  std::vector<std::uint64_t> index(steps.size(), 0);
  do {
    VisitInner(run, visit);
  } while (Advance(steps, index, run));
}

}  // namespace wb
