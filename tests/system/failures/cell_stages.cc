#include <algorithm>

#include "absl/strings/str_cat.h"

#include "tests/support/time_slack.h"
#include "tests/system/failures/cell_run.h"

namespace wb::test {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPatience{10'000};

/// What holds the update at a stage: an order to a daemon, and what it says then.
struct Stop {
  std::string node;
  std::string order;
  std::string reached;
};

Stop StopOf(Stage stage) {
  switch (stage) {
    case Stage::kRegistering:
    case Stage::kOffered:
      return {};
    case Stage::kPrepared:
      return {"n2", "hold prepared engine1", "prepared"};
    case Stage::kMovingFirst:
      return {"n1", "payload hold 0", "payload"};
    case Stage::kMovingMiddle:
      return {"n1", "payload hold 1", "payload"};
    case Stage::kMovingLast:
      return {"n1", "payload hold 2", "payload"};
    case Stage::kStaged:
      return {"n1", "hold staged", "staged"};
    case Stage::kInstalling:
      return {"n1", "hold commit", "commit"};
    case Stage::kCommitting:
      return {"n1", "hold committed", "committed"};
  }
  return {};
}

}  // namespace

void CellRun::Reach() {
  if (cell_.stage == Stage::kRegistering) {
    ReachRegistering();
  } else {
    ReachInUpdate();
  }
}

void CellRun::ReachRegistering() {
  const bool trainer = cell_.victim == Victim::kTrainer || cell_.victim == Victim::kTrainerDaemon;
  const std::string worker = trainer ? "policy/0" : "engine0/0";
  const std::string node = trainer ? "n0" : "n1";
  cluster_.worker(worker).Ask("leave 0 0", kPatience);
  cluster_.daemon(node).Order("hold register_worker");
  ordered_.push_back(node);
  Tell(worker, absl::StrCat("join ", Deadline(worker)));
  cluster_.daemon(node).AwaitReached("register_worker");
}

/// In ms. Short where the cell is about the caller's own deadline.
std::string CellRun::Deadline(const std::string& worker) const {
  const bool stops = cell_.fault == Fault::kStop;
  if (cell_.stage == Stage::kRegistering && stops && !IsWorker(cell_.victim) &&
      cell_.victim != Victim::kLeader) {
    return "1000";
  }
  // engine0/0 comes late, and may well be let in: engine1 has the version.
  const bool late_rank = cell_.victim == Victim::kRollout && cell_.stage == Stage::kOffered;
  const bool back_in_time = cell_.victim == Victim::kRolloutDaemon && cell_.fault == Fault::kCut &&
                            cell_.stage == Stage::kOffered;
  if (back_in_time && worker == "engine0/0") return "1500";
  if (late_rank && (worker == "engine0/0" || (stops && worker == "engine0/1"))) return "1500";
  const bool own = cell_.victim == Victim::kRolloutDaemon && cell_.stage == Stage::kMovingMiddle;
  if (stops && own && worker == "engine0/0") return "2500";
  return absl::StrCat(Slack(std::chrono::seconds(20)).count());
}

void CellRun::ReachInUpdate() {
  ++version_;
  const Stop stop = StopOf(cell_.stage);
  if (!stop.node.empty()) {
    cluster_.daemon(stop.node).Order(stop.order);
    ordered_.push_back(stop.node);
  }
  Tell("policy/0", absl::StrCat("publish ", version_, " ", Deadline("policy/0")));
  for (const char* worker : {"engine0/1", "engine1/0", "engine0/0"}) {
    const bool waits = cell_.stage == Stage::kOffered && worker == std::string("engine0/0");
    const std::string command = absl::StrCat(version_, " ", Deadline(worker));
    if (!waits) {
      Tell(worker, absl::StrCat("take ", command));
      continue;
    }
    const nlohmann::json said = cluster_.worker(worker).Ask("wait " + command, kPatience);
    if (said.at("code") != "OK") Blame(absl::StrCat(worker, " waits: ", said.dump()));
  }
  AwaitOffered();
  if (!stop.node.empty()) cluster_.daemon(stop.node).AwaitReached(stop.reached);
  if (cell_.stage == Stage::kPrepared) cluster_.AwaitDelivery(version_, "engine0", "prepared");
  if (cell_.stage >= Stage::kMovingFirst) AwaitEnd("engine1/0");
  if (cell_.stage >= Stage::kInstalling) AwaitEnd("policy/0");
}

/// Everyone who takes the version has seen it.
void CellRun::AwaitOffered() {
  for (const auto& [worker, calls] : in_call_) {
    if (worker == "policy/0") continue;
    const nlohmann::json said = cluster_.worker(worker).Await(kPatience);
    if (said.at("call") != "offered") Blame(absl::StrCat(worker, " takes: ", said.dump()));
  }
}

}  // namespace wb::test
