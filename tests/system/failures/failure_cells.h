#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wb::test {

// What must happen when something fails in an update of policy/0 (node n0) to engine0, ranks 0 (n1)
// and 1 (n2), and to engine1/0 (n2), led by a daemon without workers. Written down from what is
// promised, not from what the code does.

enum class Victim : std::uint8_t { kTrainer, kRollout, kTrainerDaemon, kRolloutDaemon, kLeader };
enum class Fault : std::uint8_t { kKill, kStop, kCut };

/// Of the delivery to engine0, when the fault comes. kRegistering: the trainer, or engine0/0 unless
/// the victim is the trainer's, is inside Join, and nobody in an update. kOffered: engine0/0 has
/// not called Receive yet, and does when the fault has shown. From kMovingFirst on engine1 has the
/// version already; from kInstalling on the sources are released: policy/0's Publish has returned.
enum class Stage : std::uint8_t {
  kRegistering,
  kOffered,
  kPrepared,      // the leader waits for engine1 before it says go
  kMovingFirst,   // no payload has landed at n1
  kMovingMiddle,  // some have
  kMovingLast,    // all but one have
  kStaged,        // all daemons are; the leader has not heard it of n1
  kInstalling,    // the leader has decided; n1 has not heard it
  kCommitting,    // n1 has committed; the leader has not heard it
};

/// How a call in progress ends: alternatives with " | " between them, each a code and a part of the
/// text. "-": there is no call. "gone": the process is.
using Ending = std::string;

struct Cell {
  Victim victim = Victim::kTrainer;
  Fault fault = Fault::kKill;
  Stage stage = Stage::kRegistering;
  Ending policy;    // policy/0's Publish, or its Join
  Ending engine00;  // engine0/0's Receive, or its Join
  Ending engine01;
  Ending engine1;
  /// What a rank of engine0 whose Receive fails holds then: "old" (as before), "invalid" or "in
  /// doubt" (so its client says); alternatives as above. A rank whose Receive succeeds holds the
  /// new version, and one in doubt learns that its group has it, or has not.
  std::string failed_memory;
};

/// All cells of a victim, by fault and stage.
[[nodiscard]] std::vector<Cell> CellsOf(Victim victim);

[[nodiscard]] const char* NameOf(Victim victim);
[[nodiscard]] const char* NameOf(Fault fault);
[[nodiscard]] const char* NameOf(Stage stage);

/// The victim's process: "policy/0", "engine0/0", "n0", "n1" or "lead".
[[nodiscard]] std::string ProcessOf(Victim victim);
[[nodiscard]] inline bool IsWorker(Victim victim) {
  return victim == Victim::kTrainer || victim == Victim::kRollout;
}

}  // namespace wb::test
