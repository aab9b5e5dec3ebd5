#pragma once

#include <cstddef>
#include <string>

#include "planner/model/registration.h"
#include "proto/door/reasons.h"
#include "proto/door/tensor_table.h"
#include "proto/v1.h"

namespace wb {

/// More params than this on one worker are refused.
inline constexpr std::size_t kMaxParamsPerWorker = 4'000'000;

/// A worker as far as it was accepted.
struct CheckedWorker {
  Registration registration;  // whole when no reason was added
  bool identified = false;    // role, group and rank were accepted, whatever the rest is like
};

/// Checks one worker against the tensors it may name: the one path for layouts on the wire and in
/// files. `place` names the worker in texts until its own name is known ("workers[3]").
[[nodiscard]] CheckedWorker CheckWorker(const v1::Worker& wire,
                                        const std::string& place,
                                        const TensorTable& table,
                                        Reasons& reasons);

void CheckJobName(const std::string& job, Reasons& reasons);

}  // namespace wb
