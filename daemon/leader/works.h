#pragma once

#include <functional>

#include "daemon/leader/background.h"
#include "transport/loop/turns.h"

namespace wb {

/// How the leader's verbs get long work done: off the loop, with reports that come back as turns.
/// A work owns all that it touches. Loop-confined.
class Works {
 public:
  /// From inside a work: runs a task as a turn, after those reported before; not at all once the
  /// leader is gone.
  using Report = std::function<void(Turns::Task)>;

  Works(Background& background, Turns& turns) : background_(background), turns_(turns) {}
  void Begin(std::function<void(const Report& report)> work);
  Turns::Clock::time_point Now() const { return turns_.Now(); }

 private:
  Background& background_;
  Turns& turns_;
};

}  // namespace wb
