#include "tests/system/failures/failure_cells.h"

#include <array>

namespace wb::test {
namespace {

using enum Stage;
using enum Victim;
using enum Fault;

/// Cells of stages that end alike, of one victim and fault.
struct Row {
  std::vector<Stage> stages;
  Ending policy;
  Ending engine00;
  Ending engine01;
  Ending engine1;
  std::string failed_memory;
};

struct Block {
  Victim victim;
  Fault fault;
  std::vector<Row> rows;
};

const std::vector<Stage> kMoving = {kMovingFirst, kMovingMiddle, kMovingLast};
const std::vector<Stage> kDecided = {kInstalling, kCommitting};

// What is said of those that are lost.
const char* const kPolicy = "UNAVAILABLE policy/0";
const char* const kEngine = "UNAVAILABLE engine0/0";
const char* const kN0 = "UNAVAILABLE n0";
const char* const kN1 = "UNAVAILABLE n1";
const char* const kDoor = "UNAVAILABLE worker.sock";  // the caller's own daemon
const char* const kNoLeader = "UNAVAILABLE leader";
// By the daemon, or by the leader, that has lost all daemons at once.
const char* const kCutOff =
    "UNAVAILABLE has no leader | UNAVAILABLE lost | ABORTED leader was lost";
// Staged here, and not everywhere, when the leader was lost: by the next leader's word.
const char* const kUndecided = "UNAVAILABLE leader | ABORTED leader was lost";
const char* const kInDoubt = "UNAVAILABLE outcome unknown";
const char* const kInTime =
    "OK | UNAVAILABLE outcome unknown";  // the next leader is there, or late
const char* const kLate = "DEADLINE_EXCEEDED engine0/0";

const std::vector<Block>& Blocks() {
  static const std::vector<Block> blocks = {
      // A trainer's loss fails what is not decided yet, and changes nothing of what is.
      {kTrainer,
       kKill,
       {{{kRegistering}, "gone", "-", "-", "-", ""},
        {{kOffered, kPrepared}, "gone", kPolicy, kPolicy, kPolicy, "old"},
        {kMoving, "gone", kPolicy, kPolicy, "OK", "invalid"},
        {{kStaged}, "gone", kPolicy, kPolicy, "OK", "invalid"},
        {kDecided, "OK", "OK", "OK", "OK", ""}}},
      // Its memory is its daemon's as well: nobody needs it once it has published.
      {kTrainer,
       kStop,
       {{{kRegistering}, "OK", "-", "-", "-", ""},
        {{kOffered, kPrepared}, "OK", "OK", "OK", "OK", ""},
        {kMoving, "OK", "OK", "OK", "OK", ""},
        {{kStaged}, "OK", "OK", "OK", "OK", ""},
        {kDecided, "OK", "OK", "OK", "OK", ""}}},
      {kTrainer,
       kCut,
       {{{kRegistering}, kDoor, "-", "-", "-", ""},
        {{kOffered, kPrepared}, kDoor, kPolicy, kPolicy, kPolicy, "old"},
        {kMoving, kDoor, kPolicy, kPolicy, "OK", "invalid"},
        {{kStaged}, kDoor, kPolicy, kPolicy, "OK", "invalid"},
        {kDecided, "OK", "OK", "OK", "OK", ""}}},

      // A rollout's loss fails its own group, the other groups commit.
      {kRollout,
       kKill,
       {{{kRegistering}, "-", "gone", "-", "-", ""},
        {{kOffered}, kEngine, "-", kEngine, "OK", "old"},
        {{kPrepared}, kEngine, "gone", kEngine, "OK", "old"},
        {kMoving, kEngine, "gone", kEngine, "OK", "invalid"},
        {{kStaged}, kEngine, "gone", kEngine, "OK", "invalid"},
        {kDecided, "OK", "gone", "OK", "OK", ""}}},
      // It is waited for where its word is needed: to accept the version, and the go.
      {kRollout,
       kStop,
       {{{kRegistering}, "-", "OK", "-", "-", ""},
        {{kOffered}, kLate, kLate, kLate, "OK", "old"},
        {{kPrepared}, kLate, kLate, kLate, "OK", "invalid"},
        {kMoving, "OK", "OK", "OK", "OK", ""},
        {{kStaged}, "OK", "OK", "OK", "OK", ""},
        {kDecided, "OK", "OK", "OK", "OK", ""}}},
      {kRollout,
       kCut,
       {{{kRegistering}, "-", kDoor, "-", "-", ""},
        {{kOffered},
         kEngine,
         "UNAVAILABLE engine0/0 | DEADLINE_EXCEEDED engine0/0",
         kEngine,
         "OK",
         "old"},
        {{kPrepared}, kEngine, kDoor, kEngine, "OK", "old"},
        {kMoving, kEngine, kDoor, kEngine, "OK", "invalid"},
        {{kStaged}, kEngine, kDoor, kEngine, "OK", "invalid | in doubt"},
        {kDecided, "OK", kDoor, "OK", "OK", "in doubt"}}},

      // With a daemon its workers are lost, though they live.
      {kTrainerDaemon,
       kKill,
       {{{kRegistering}, kDoor, "-", "-", "-", ""},
        {{kOffered, kPrepared}, kDoor, kN0, kN0, kN0, "old"},
        {kMoving, kDoor, kN0, kN0, "OK", "invalid"},
        {{kStaged}, kDoor, kN0, kN0, "OK", "invalid"},
        {kDecided, "OK", "OK", "OK", "OK", ""}}},
      {kTrainerDaemon,
       kStop,
       {{{kRegistering}, "DEADLINE_EXCEEDED worker.sock", "-", "-", "-", ""},
        {{kOffered, kPrepared}, kNoLeader, kN0, kN0, kN0, "old"},
        {kMoving, kNoLeader, kN0, kN0, "OK", "invalid"},
        {{kStaged}, kNoLeader, kN0, kN0, "OK", "invalid"},
        {kDecided, "OK", "OK", "OK", "OK", ""}}},
      {kTrainerDaemon,
       kCut,
       {{{kRegistering}, "OK", "-", "-", "-", ""},
        {{kOffered, kPrepared}, kNoLeader, kN0, kN0, kN0, "old"},
        {kMoving, kNoLeader, kN0, kN0, "OK", "invalid"},
        {{kStaged}, kNoLeader, kN0, kN0, "OK", "invalid"},
        {kDecided, "OK", "OK", "OK", "OK", ""}}},

      {kRolloutDaemon,
       kKill,
       {{{kRegistering}, "-", kDoor, "-", "-", ""},
        {{kOffered}, kN1, "UNAVAILABLE", kN1, "OK", "old"},
        {{kPrepared}, kN1, kDoor, kN1, "OK", "old"},
        {kMoving, kN1, kDoor, kN1, "OK", "invalid"},
        {{kStaged}, kN1, kDoor, kN1, "OK", "invalid | in doubt"},
        {kDecided, "OK", kDoor, "OK", "OK", "in doubt"}}},
      {kRolloutDaemon,
       kStop,
       {{{kRegistering}, "-", "DEADLINE_EXCEEDED worker.sock", "-", "-", ""},
        {{kOffered}, kN1, "UNAVAILABLE", kN1, "OK", "old"},
        {{kPrepared}, kN1, kNoLeader, kN1, "OK", "old"},
        {{kMovingFirst, kMovingLast}, kN1, kNoLeader, kN1, "OK", "invalid"},
        // Its deadline passes meanwhile.
        {{kMovingMiddle}, kN1, "DEADLINE_EXCEEDED may still change", kN1, "OK", "invalid"},
        {{kStaged}, kN1, kUndecided, kN1, "OK", "invalid"},
        // It hears of the decision in the end.
        {{kInstalling}, "OK", "OK", "OK", "OK", ""},
        {{kCommitting}, "OK", "OK", "OK", "OK", ""}}},
      {kRolloutDaemon,
       kCut,
       {{{kRegistering}, "-", "OK", "-", "-", ""},
        {{kOffered}, kN1, "UNAVAILABLE | DEADLINE_EXCEEDED engine0/0", kN1, "OK", "old"},
        {{kPrepared}, kN1, kNoLeader, kN1, "OK", "old"},
        {kMoving, kN1, kNoLeader, kN1, "OK", "invalid"},
        {{kStaged}, kN1, kUndecided, kN1, "OK", "invalid"},
        {{kInstalling}, "OK", "OK", "OK", "OK", ""},
        {{kCommitting}, "OK", "OK", "OK", "OK", ""}}},

      // What is staged everywhere is committed by the next leader, what is decided all the more.
      {kLeader,
       kKill,
       {{{kRegistering}, "-", "OK", "-", "-", ""},
        {{kOffered, kPrepared}, kNoLeader, "UNAVAILABLE", kNoLeader, kNoLeader, "old"},
        {kMoving, kNoLeader, kNoLeader, kUndecided, "OK", "invalid"},
        {{kStaged}, "OK | UNAVAILABLE outcome unknown", kInTime, kInTime, "OK", "in doubt"},
        {kDecided, "OK", kInTime, "OK", "OK", "in doubt"}}},
      // It stands still for longer than timeouts.decision.
      {kLeader,
       kStop,
       {{{kRegistering}, "-", "OK", "-", "-", ""},
        {{kOffered, kPrepared}, kNoLeader, "UNAVAILABLE", kNoLeader, kNoLeader, "old"},
        {kMoving, kNoLeader, kNoLeader, kInDoubt, "OK", "invalid | in doubt"},
        {{kStaged}, "UNAVAILABLE outcome unknown", kInDoubt, kInDoubt, "OK", "in doubt"},
        {{kInstalling}, "OK", kInDoubt, "OK", "OK", "in doubt"},
        {{kCommitting}, "OK", "OK", "OK", "OK", ""}}},
      // It loses one daemon after the other, and tells the rest while it can.
      {kLeader,
       kCut,
       {{{kRegistering}, "-", "OK", "-", "-", ""},
        {{kOffered, kPrepared}, kCutOff, "UNAVAILABLE", kCutOff, kCutOff, "old | invalid"},
        {kMoving, kCutOff, kCutOff, kCutOff, "OK", "invalid"},
        {{kStaged},
         "OK | UNAVAILABLE",
         "OK | UNAVAILABLE | ABORTED",
         "OK | UNAVAILABLE | ABORTED",
         "OK",
         "invalid"},
        {kDecided, "OK", "OK", "OK", "OK", ""}}},
  };
  return blocks;
}

template <typename Enum, std::size_t kCount>
const char* NameAmong(const std::array<const char*, kCount>& names, Enum value) {
  return names.at(static_cast<std::size_t>(value));
}

}  // namespace

std::vector<Cell> CellsOf(Victim victim) {
  std::vector<Cell> cells;
  for (const Block& block : Blocks()) {
    if (block.victim != victim) continue;
    for (const Row& row : block.rows) {
      for (const Stage stage : row.stages) {
        cells.push_back({block.victim, block.fault, stage, row.policy, row.engine00, row.engine01,
                         row.engine1, row.failed_memory});
      }
    }
  }
  return cells;
}

const char* NameOf(Victim victim) {
  return NameAmong<Victim, 5>(
      {"trainer", "rollout", "daemon of trainer", "daemon of rollout", "leader"}, victim);
}

const char* NameOf(Fault fault) {
  return NameAmong<Fault, 3>({"SIGKILL", "SIGSTOP", "cut"}, fault);
}

const char* NameOf(Stage stage) {
  return NameAmong<Stage, 9>({"registering", "offered", "prepared", "moving first", "moving middle",
                              "moving last", "staged", "installing", "committing"},
                             stage);
}

std::string ProcessOf(Victim victim) {
  return NameAmong<Victim, 5>({"policy/0", "engine0/0", "n0", "n1", "lead"}, victim);
}

}  // namespace wb::test
