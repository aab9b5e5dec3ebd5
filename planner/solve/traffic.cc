#include "planner/solve/traffic.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>

#include <xxhash.h>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace wb {
namespace {

std::uint64_t Mix(std::uint64_t hash, std::uint64_t value) {
  return XXH3_64bits_withSeed(&value, sizeof(value), hash);
}

std::uint64_t Mix(std::uint64_t hash, const Box& box) {
  for (const std::int64_t lo : box.lo()) hash = Mix(hash, static_cast<std::uint64_t>(lo));
  for (const std::int64_t hi : box.hi()) hash = Mix(hash, static_cast<std::uint64_t>(hi));
  return hash;
}

// Positions of all workers when ordered by (key, index).
std::vector<std::uint32_t> OrderByKey(const std::vector<std::uint64_t>& keys) {
  std::vector<std::uint32_t> order(keys.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  std::vector<std::uint32_t> position(keys.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  return position;
}

// Used once by FindTraffic.
class TrafficFinder {
 public:
  TrafficFinder(const Job& job, const SliceIndex& index, const NodeMap& nodes)
      : job_(job), index_(index), nodes_(nodes) {}

  Traffic Find() && {
    NumberSenders();
    CollectClasses();
    OrderSlices();
    return std::move(traffic_);
  }

 private:
  // A trainer's key is the list of source boxes it holds, and in which piece of its own.
  void NumberSenders() {
    std::vector<std::uint64_t> keys(job_.layouts.size(), 0);
    for (std::uint32_t s = 0; s < index_.sources.size(); ++s) {
      const SourceBox& source = index_.sources[s];
      const std::span<const WorkerIndex> holders = index_.sets.members(source.holders);
      for (std::size_t i = 0; i < holders.size(); ++i) {
        std::uint64_t& key = keys[holders[i].value()];
        key = Mix(key, s);
        if (!source.holder_pieces.empty()) key = Mix(key, source.holder_pieces[i]);
      }
    }
    sender_ = OrderByKey(keys);
    traffic_.senders.resize(sender_.size());
    for (std::uint32_t w = 0; w < sender_.size(); ++w)
      traffic_.senders[sender_[w]] = WorkerIndex(w);
  }

  // A rollout worker's key is the list of its slices: where they land, and which of them cross.
  void CollectClasses() {
    std::vector<std::uint64_t> keys(job_.layouts.size(), 0);
    std::vector<std::uint64_t> ingress(job_.layouts.size(), 0);
    std::vector<std::optional<std::size_t>> class_of(index_.sets.size());
    for (std::uint32_t i = 0; i < index_.slices.size(); ++i) {
      const Slice& slice = index_.slices[i];
      const SourceSetId set = index_.sources[slice.source].holders;
      const bool local = !nodes_.HoldersNear(set, slice.dst).empty();
      std::uint64_t& key = keys[slice.dst.value()];
      key = Mix(Mix(Mix(Mix(key, slice.source), slice.box), slice.landing), local ? 1 : 0);
      if (local) {
        traffic_.local.push_back(i);
        continue;
      }
      ingress[slice.dst.value()] += slice.bytes;
      std::optional<std::size_t>& number = class_of[set.value()];
      if (!number.has_value()) number = AddClass(set);
      traffic_.classes[*number].slices.push_back(i);
      traffic_.classes[*number].bytes += slice.bytes;
    }
    receiver_ = OrderByKey(keys);
    for (const std::uint64_t bytes : ingress) {
      traffic_.max_ingress_bytes = std::max(traffic_.max_ingress_bytes, bytes);
    }
  }

  std::size_t AddClass(SourceSetId set) {
    TrafficClass added;
    for (const WorkerIndex holder : index_.sets.members(set)) {
      added.holders.push_back(sender_[holder.value()]);
    }
    std::sort(added.holders.begin(), added.holders.end());
    traffic_.classes.push_back(std::move(added));
    return traffic_.classes.size() - 1;
  }

  // Classes start out in the order of their first slice: by tensor and box. Stable from there.
  void OrderSlices() {
    MostBytesFirst(traffic_.local);
    for (TrafficClass& c : traffic_.classes) MostBytesFirst(c.slices);
    std::stable_sort(traffic_.classes.begin(), traffic_.classes.end(),
                     [](const TrafficClass& a, const TrafficClass& b) {
                       return a.holders.size() != b.holders.size()
                                  ? a.holders.size() < b.holders.size()
                                  : a.bytes > b.bytes;
                     });
  }

  // Slices stand in the order of the index: by tensor, box and source. Only those that differ in
  // nothing but the destination are there in the order of names; they go by receiver instead.
  void MostBytesFirst(std::vector<std::uint32_t>& slices) const {
    const auto less = [&](std::uint32_t a, std::uint32_t b) {
      return index_.slices[a].bytes > index_.slices[b].bytes;
    };
    if (!std::is_sorted(slices.begin(), slices.end(), less)) {
      std::stable_sort(slices.begin(), slices.end(), less);
    }
    for (auto begin = slices.begin(); begin != slices.end();) {
      const Slice& first = index_.slices[*begin];
      const auto end = std::find_if(begin, slices.end(), [&](std::uint32_t i) {
        return index_.slices[i].source != first.source || index_.slices[i].box != first.box;
      });
      std::sort(begin, end, [&](std::uint32_t a, std::uint32_t b) {
        return receiver_[index_.slices[a].dst.value()] < receiver_[index_.slices[b].dst.value()];
      });
      begin = end;
    }
  }

  const Job& job_;
  const SliceIndex& index_;
  const NodeMap& nodes_;
  std::vector<std::uint32_t> sender_;    // worker -> sender number
  std::vector<std::uint32_t> receiver_;  // worker -> position
  Traffic traffic_;
};

}  // namespace

Traffic FindTraffic(const Job& job, const SliceIndex& index, const NodeMap& nodes) {
  return TrafficFinder(job, index, nodes).Find();
}

NodeMap::NodeMap(const Job& job, const SourceSets& sets) {
  absl::flat_hash_map<absl::string_view, std::uint32_t> numbers;
  for (const Layout& layout : job.layouts) {
    node_.push_back(
        numbers.try_emplace(layout.node, static_cast<std::uint32_t>(numbers.size())).first->second);
  }
  for (std::uint32_t s = 0; s < sets.size(); ++s) {
    const std::span<const WorkerIndex> members = sets.members(SourceSetId(s));
    by_node_.emplace_back(members.begin(), members.end());
    std::sort(by_node_.back().begin(), by_node_.back().end(), [&](WorkerIndex a, WorkerIndex b) {
      return std::pair(node_[a.value()], a) < std::pair(node_[b.value()], b);
    });
  }
}

std::span<const WorkerIndex> NodeMap::HoldersNear(SourceSetId set, WorkerIndex dst) const {
  const std::vector<WorkerIndex>& members = by_node_[set.value()];
  const std::uint32_t node = node_[dst.value()];
  const auto begin = std::partition_point(members.begin(), members.end(),
                                          [&](WorkerIndex w) { return node_[w.value()] < node; });
  const auto end = std::partition_point(begin, members.end(),
                                        [&](WorkerIndex w) { return node_[w.value()] == node; });
  return std::span(members).subspan(static_cast<std::size_t>(begin - members.begin()),
                                    static_cast<std::size_t>(end - begin));
}

}  // namespace wb
