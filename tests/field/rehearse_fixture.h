#pragma once

#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/rehearse.h"

namespace wb::test {

/// Fails the test unless the rehearsal passed, every element checked in its own process, with all
/// bytes brought by `path`.
inline void CheckPassed(const Rehearsal& rehearsal,
                        const std::string& path,
                        std::uint64_t versions) {
  INFO(path << ": " << rehearsal.story());
  REQUIRE(rehearsal.passed());
  REQUIRE(rehearsal.versions().size() == versions);
  for (const RehearsedVersion& version : rehearsal.versions()) {
    CHECK(version.bytes_moved == version.bytes_planned);
    CHECK(version.bytes_by_path.at(path) == version.bytes_moved);
  }
}

/// A rehearsal over TCP that must pass. Its last version is rehearsed over shared memory and with
/// one daemon for all as well, at the same time, and must come to the same bytes.
inline Rehearsal Pass(const LayoutFileSpec& file, const RehearseOptions& options = {}) {
  RehearseOptions last = options;
  last.first_version = options.versions;
  last.versions = 1;
  LayoutFileSpec on_one_node = file;
  for (WorkerFileSpec& worker : on_one_node.workers) worker.node = "n0";
  auto local = std::async(std::launch::async, [&, last] { return Rehearsal(on_one_node, last); });
  last.transport = "shm";
  auto shm = std::async(std::launch::async, [&, last] { return Rehearsal(file, last); });
  Rehearsal rehearsal(file, options);
  CheckPassed(rehearsal, "tcp", options.versions);
  for (const auto& [path, other] : {std::pair{"local", local.get()}, std::pair{"shm", shm.get()}}) {
    CheckPassed(other, path, 1);
    CHECK(other.Dumps() == rehearsal.Dumps());
  }
  return rehearsal;
}

/// The plan of a file that must have one.
inline nlohmann::json Planned(const LayoutFileSpec& file) {
  const ProgramEnd finished = PlanFile(file);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return nlohmann::json::parse(finished.out);
}

/// Why a file is refused: exit 2 and the reasons, from `plan` and in the same words from
/// `rehearse`, which starts nothing.
inline std::string Refused(const LayoutFileSpec& file) {
  const ProgramEnd planned = PlanFile(file);
  INFO(planned.out << planned.err);
  CHECK(planned.exit_code == 2);
  const Rehearsal rehearsal(file, {});
  INFO(rehearsal.story());
  CHECK(rehearsal.run().exit_code == 2);
  CHECK(rehearsal.versions().empty());
  CHECK(rehearsal.run().err == planned.err);
  return planned.err;
}

inline bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Each of `values` `times` times: rows of a matrix.
template <typename T>
std::vector<T> Repeat(const std::vector<T>& values, std::size_t times) {
  std::vector<T> repeated;
  for (const T value : values) repeated.insert(repeated.end(), times, value);
  return repeated;
}

/// first, first + 1, ..., `count` of them.
inline std::vector<float> CountUp(std::int64_t first, std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(first + static_cast<std::int64_t>(i)));
  }
  return values;
}

/// A rollout's FP32 param after the last version.
inline std::vector<float> Floats(const Rehearsal& rehearsal,
                                 const std::string& group,
                                 std::int32_t rank,
                                 const std::string& param) {
  const NpyFile npy = rehearsal.Dumped(group, rank, param);
  CHECK(npy.descr == "<f4");
  return npy.As<float>();
}

/// A param that is one box of a tensor, whole, from its first element.
inline ParamSpec Whole(const std::string& name, const std::string& tensor, Indices lo, Indices hi) {
  ParamSpec param{.name = name, .shape = {}};
  for (std::size_t d = 0; d < lo.size(); ++d) param.shape.push_back(hi[d] - lo[d]);
  const Indices at(lo.size(), 0);
  param.pieces.push_back({.tensor = tensor, .lo = std::move(lo), .hi = std::move(hi), .at = at});
  return param;
}

}  // namespace wb::test
