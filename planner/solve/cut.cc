#include "planner/solve/cut.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/model/box_tree.h"

namespace wb {
namespace {

using Ids = std::vector<std::uint32_t>;

struct Plane {
  int dim = 0;
  std::int64_t at = 0;
};

// The boundaries of the boxes `ids` in dimension `dim` that pass through the inside of `region`.
std::vector<std::int64_t> Boundaries(const Box& region,
                                     std::size_t dim,
                                     std::span<const Box> boxes,
                                     const Ids& ids) {
  std::vector<std::int64_t> inside;
  const auto add = [&](std::int64_t at) {
    if (region.lo()[dim] < at && at < region.hi()[dim]) inside.push_back(at);
  };
  for (const std::uint32_t id : ids) {
    add(boxes[id].lo()[dim]);
    add(boxes[id].hi()[dim]);
  }
  return inside;
}

// Their median, in the first dimension that has any; std::nullopt when every box of `ids` holds
// all of the region.
std::optional<Plane> FindCut(const Box& region, std::span<const Box> boxes, const Ids& ids) {
  for (int dim = 0; dim < region.ndim(); ++dim) {
    std::vector<std::int64_t> inside =
        Boundaries(region, static_cast<std::size_t>(dim), boxes, ids);
    if (inside.empty()) continue;
    const auto middle = inside.begin() + static_cast<std::ptrdiff_t>(inside.size() / 2);
    std::nth_element(inside.begin(), middle, inside.end());
    return Plane{dim, *middle};
  }
  return std::nullopt;
}

Ids Meeting(const Box& region, std::span<const Box> boxes, const Ids& among) {
  Ids found;
  for (const std::uint32_t id : among) {
    if (Meet(boxes[id], region)) found.push_back(id);
  }
  return found;
}

Box BoundingBox(std::span<const Box> boxes) {
  Index lo = boxes.front().lo();
  Index hi = boxes.front().hi();
  for (const Box& box : boxes) {
    for (std::size_t dim = 0; dim < lo.size(); ++dim) {
      lo[dim] = std::min(lo[dim], box.lo()[dim]);
      hi[dim] = std::max(hi[dim], box.hi()[dim]);
    }
  }
  return *Box::Create(std::move(lo), std::move(hi));  // inside the tensor, so it fits 64 bits
}

Ids AllIds(std::size_t count) {
  Ids ids(count);
  std::iota(ids.begin(), ids.end(), 0U);
  return ids;
}

class AtomCutter {
 public:
  AtomCutter(std::span<const Box> boxes, std::size_t max_work)
      : boxes_(boxes), work_left_(max_work) {}

  // False when out of work.
  bool Cut(const Box& region, Ids ids) {
    if (ids.empty()) return true;
    if (work_left_ < ids.size()) return false;
    work_left_ -= ids.size();
    const std::optional<Plane> plane = FindCut(region, boxes_, ids);
    if (!plane.has_value()) {
      atoms_.push_back({region, std::move(ids)});
      return true;
    }
    const auto [below, above] = Split(region, plane->dim, plane->at);
    return Cut(below, Meeting(below, boxes_, ids)) && Cut(above, Meeting(above, boxes_, ids));
  }

  std::vector<Atom> Take() && { return std::move(atoms_); }

 private:
  std::span<const Box> boxes_;
  std::size_t work_left_;
  std::vector<Atom> atoms_;
};

class HoleFinder {
 public:
  HoleFinder(std::span<const Box> boxes, std::size_t max_work)
      : boxes_(boxes), work_left_(max_work) {}

  std::optional<Box> Find(const Box& region, const Ids& ids) {
    if (work_left_ < ids.size() || ids.empty()) return region;
    work_left_ -= ids.size();
    for (const std::uint32_t id : ids) {
      if (Contains(boxes_[id], region)) return std::nullopt;
    }
    const std::optional<Plane> plane = FindCut(region, boxes_, ids);
    if (!plane.has_value()) return std::nullopt;
    const auto [below, above] = Split(region, plane->dim, plane->at);
    std::optional<Box> hole = Find(below, Meeting(below, boxes_, ids));
    if (hole.has_value()) return hole;
    return Find(above, Meeting(above, boxes_, ids));
  }

 private:
  std::span<const Box> boxes_;
  std::size_t work_left_;
};

}  // namespace

std::optional<std::vector<Atom>> CutIntoAtoms(std::span<const Box> boxes, std::size_t max_work) {
  if (boxes.empty()) return std::vector<Atom>{};
  AtomCutter cutter(boxes, max_work);
  if (!cutter.Cut(BoundingBox(boxes), AllIds(boxes.size()))) return std::nullopt;
  std::vector<Atom> atoms = std::move(cutter).Take();
  std::sort(atoms.begin(), atoms.end(), [](const Atom& a, const Atom& b) { return a.box < b.box; });
  return atoms;
}

std::optional<Box> FirstUncovered(const Box& region,
                                  std::span<const Box> boxes,
                                  std::size_t max_work) {
  return HoleFinder(boxes, max_work).Find(region, Meeting(region, boxes, AllIds(boxes.size())));
}

}  // namespace wb
