#include "tests/system/failures/cell_run.h"

#include <algorithm>
#include <csignal>
#include <stdexcept>

#include <poll.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "tests/support/time_slack.h"

namespace wb::test {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPatience{10'000};

/// How soon a call must end after what ends it: a death or a broken connection is known at once,
/// silence by timeouts.peer or a deadline of the call, and a second.
milliseconds BoundOf(Fault fault) {
  return fault == Fault::kStop ? milliseconds(4000) : milliseconds(2000);
}

bool Fits(const Ending& expected, const nlohmann::json& answer) {
  const std::string code = answer.at("code");
  const std::string text = answer.value("text", "");
  for (const absl::string_view one : absl::StrSplit(expected, " | ")) {
    const std::pair<std::string, std::string> wanted = absl::StrSplit(one, absl::MaxSplits(' ', 1));
    if (code == wanted.first && absl::StrContains(text, wanted.second)) return true;
  }
  return false;
}

}  // namespace

const Ending& CellRun::Expected(const std::string& worker) const {
  if (worker == "policy/0") return cell_.policy;
  if (worker == "engine0/0") return cell_.engine00;
  if (worker == "engine0/1") return cell_.engine01;
  return cell_.engine1;
}

bool CellRun::Expects(const std::string& worker, const std::string& code) const {
  return absl::StrContains(Expected(worker), code);
}

void CellRun::Tell(const std::string& worker, const std::string& command) {
  cluster_.worker(worker).Tell(command);
  in_call_[worker] = true;
}

void CellRun::Collect() {
  for (auto& [name, calls] : in_call_) {
    if (!calls) continue;
    std::optional<nlohmann::json> said = cluster_.worker(name).Take();
    if (!said.has_value()) continue;
    calls = false;
    Ended ended{*std::move(said), std::nullopt};
    if (acted_.has_value()) {
      ended.after = std::chrono::duration_cast<milliseconds>(Clock::now() - *acted_);
    }
    ended_[name] = std::move(ended);
  }
}

void CellRun::AwaitEnd(const std::string& worker) {
  const auto deadline = Clock::now() + Slack(kPatience);
  const auto calls = in_call_.find(worker);
  while (calls != in_call_.end() && calls->second) {
    Collect();
    if (!calls->second) return;
    if (Clock::now() > deadline) throw std::runtime_error(worker + "'s call does not end");
    ::poll(nullptr, 0, 2);
  }
}

void CellRun::DoFault() {
  const std::string process = ProcessOf(cell_.victim);
  acted_ = Clock::now();
  if (cell_.fault == Fault::kCut) {
    if (IsWorker(cell_.victim)) {
      cluster_.worker(process).Tell("cut");
    } else {
      cluster_.daemon(process).Order("cut");
    }
    return;
  }
  const pid_t pid = IsWorker(cell_.victim) ? cluster_.worker(process).pid()
                                           : cluster_.daemon(process).process().pid();
  if (cell_.fault == Fault::kKill) {
    ::kill(pid, SIGKILL);
  } else {
    Cluster::Stop(pid);
  }
}

/// What is held goes on, but at the victim.
void CellRun::LetGo() {
  acted_ = Clock::now();
  for (const std::string& node : ordered_) {
    const bool victim = node == ProcessOf(cell_.victim);
    if (!victim || cell_.fault == Fault::kCut) cluster_.daemon(node).Order("release");
  }
}

/// engine0/0 calls Receive only now.
void CellRun::ReceiveLate() {
  if (cell_.stage != Stage::kOffered || Expected("engine0/0") == "-") return;
  Tell("engine0/0", absl::StrCat("receive ", version_, " ", Deadline("engine0/0")));
}

bool CellRun::StandsStill(const std::string& worker) const {
  if (cell_.fault != Fault::kStop || Expects(worker, "DEADLINE_EXCEEDED worker.sock") ||
      Expects(worker, "may still change")) {
    return false;
  }
  if (IsWorker(cell_.victim)) return worker == ProcessOf(cell_.victim);
  if (cell_.victim == Victim::kTrainerDaemon) return worker == "policy/0";
  return cell_.victim == Victim::kRolloutDaemon && worker == "engine0/0";
}

void CellRun::Continue() {
  const std::string process = ProcessOf(cell_.victim);
  acted_ = Clock::now();
  if (IsWorker(cell_.victim)) {
    cluster_.worker(process).Signal(SIGCONT);
    return;
  }
  cluster_.daemon(process).process().Signal(SIGCONT);
  if (std::count(ordered_.begin(), ordered_.end(), process) > 0) {
    cluster_.daemon(process).Order("release");
  }
}

void CellRun::CheckEnding(const std::string& worker) {
  const auto ended = ended_.find(worker);
  if (ended == ended_.end()) {
    if (Expected(worker) != "-") Blame(absl::StrCat(worker, " was in no call"));
    return;
  }
  const nlohmann::json& answer = ended->second.answer;
  if (!Fits(Expected(worker), answer)) {
    Blame(absl::StrCat(worker, ": want ", Expected(worker), ", got ", answer.dump()));
  }
  const std::optional<milliseconds> after = ended->second.after;
  if (after.has_value() && *after > Slack(BoundOf(cell_.fault))) {
    Blame(absl::StrCat(worker, " ended after ", after->count(), " ms"));
  }
  if (worker != "policy/0" && cell_.stage != Stage::kRegistering && answer.at("code") != "gone") {
    CheckMemory(worker);
  }
}

void CellRun::CheckMemory(const std::string& worker) {
  const nlohmann::json& answer = ended_.at(worker).answer;
  const std::string memory = answer.at("memory");
  if (answer.at("as_said") != true)
    Blame(absl::StrCat(worker, " holds other bytes: ", answer.dump()));
  std::string wanted = cell_.failed_memory;
  std::string is = memory == "valid" || memory == "empty" ? "old" : memory;
  if (memory == "valid" && answer.at("held") == version_) is = "new";
  if (answer.at("code") == "OK") wanted = "new";
  // Its delivery fails before it is told to go, or not at all.
  if (answer.at("code") != "OK" && worker == "engine1/0" && wanted == "invalid") wanted = "old";
  if (!absl::StrContains(wanted, is)) {
    Blame(absl::StrCat(worker, ": want ", wanted, " memory, got ", answer.dump()));
  }
}

/// After all has ended nothing is written any more.
void CellRun::CheckQuiet() {
  for (const auto& [worker, ended] : ended_) {
    if (!ended.answer.contains("sum")) continue;
    const nlohmann::json now = cluster_.worker(worker).Ask("state 0 0", kPatience);
    const bool decided = ended.answer.at("memory") == "in doubt";
    if (now.at("sum") == ended.answer.at("sum") &&
        (decided || now.at("memory") == ended.answer.at("memory"))) {
      continue;
    }
    Blame(absl::StrCat(worker, " has changed since: ", ended.answer.dump(), " to ", now.dump()));
  }
}

void CellRun::Recover() {
  const std::string process = ProcessOf(cell_.victim);
  if (cell_.fault == Fault::kKill && IsWorker(cell_.victim)) cluster_.Replace(process);
  if (cell_.fault == Fault::kKill && !IsWorker(cell_.victim) && cell_.victim != Victim::kLeader) {
    cluster_.Restart(process);
  }
  for (const char* node : {"n0", "n1", "n2"}) cluster_.AwaitLeader(node, true);
  if (cell_.stage != Stage::kRegistering) return;
  for (const auto& [worker, ended] : ended_) {
    const std::string code = ended.answer.at("code");
    if (code == "OK" || code == "gone") continue;
    const nlohmann::json joined = cluster_.worker(worker).Ask("join 10000", kPatience);
    if (joined.at("code") != "OK") Blame(absl::StrCat(worker, " joins again: ", joined.dump()));
  }
}

/// Who was in doubt learns with its next call whether the version counts, as its group has it.
void CellRun::ResolveDoubts() {
  std::map<std::string, bool> has;  // of the ranks of engine0 that live: the version
  for (const char* rank : {"engine0/0", "engine0/1"}) {
    const auto ended = ended_.find(rank);
    if (ended == ended_.end() || !ended->second.answer.contains("memory")) continue;
    has[rank] = ended->second.answer.at("code") == "OK";
    if (ended->second.answer.at("memory") != "in doubt") continue;
    cluster_.worker(rank).Ask(absl::StrCat("wait ", version_ + 1, " 500"), kPatience);
    const nlohmann::json now = cluster_.worker(rank).Ask("state 0 0", kPatience);
    has[rank] = now.at("memory") == "valid" && now.at("held") == version_;
    if (now.at("as_said") != true || (!has[rank] && now.at("memory") != "invalid")) {
      Blame(absl::StrCat(rank, " was in doubt: ", now.dump()));
    }
  }
  const bool whole = cell_.stage != Stage::kRegistering && has.size() == 2;
  if (whole && has.begin()->second != has.rbegin()->second) {
    Blame("one rank of engine0 has the version and the other has not");
  }
}

void CellRun::DeliverNext() {
  const auto start = Clock::now();
  const std::string faults = cluster_.Deliver(++version_);
  faults_ += faults;
  const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
  next_ = faults.empty() ? absl::StrCat("good, ", took.count(), " ms") : "BAD";
}

/// What fails does so though messages are held, and what the victim holds it holds for good.
void CellRun::AwaitFailures() {
  if (cell_.victim == Victim::kLeader) return AwaitLeaderLost();
  if (IsWorker(cell_.victim) && cell_.fault == Fault::kStop) return;
  if (!Expects("engine0/1", "OK") || cell_.victim == Victim::kRolloutDaemon) AwaitEnd("engine0/1");
  if (IsWorker(cell_.victim)) AwaitEnd(ProcessOf(cell_.victim));
}

void CellRun::AwaitLeaderLost() {
  if (cell_.fault == Fault::kCut) {  // it is found again at once
    if (cell_.stage == Stage::kOffered) AwaitEnd("engine0/1");
    return;
  }
  for (const char* node : {"n0", "n1", "n2"}) cluster_.AwaitLeader(node, false);
  if (cell_.fault == Fault::kKill || cell_.stage == Stage::kRegistering) return;
  AwaitEnd("engine0/1");
  AwaitEnd("engine0/0");
}

std::string CellRun::Run() {
  Reach();
  DoFault();
  AwaitFailures();
  ReceiveLate();
  const bool leads = cell_.victim == Victim::kLeader;
  if (leads && cell_.stage == Stage::kOffered) AwaitEnd("engine0/0");
  LetGo();
  if (leads && cell_.fault == Fault::kKill) cluster_.Restart("lead");
  for (const auto& [worker, calls] : in_call_) {
    if (!StandsStill(worker) && !leads) AwaitEnd(worker);
  }
  if (cell_.fault == Fault::kStop) Continue();
  for (const auto& [worker, calls] : in_call_) AwaitEnd(worker);
  for (const char* worker : {"policy/0", "engine0/0", "engine0/1", "engine1/0"}) {
    CheckEnding(worker);
  }
  CheckQuiet();
  Recover();
  ResolveDoubts();
  DeliverNext();
  return faults_;
}

std::string CellRun::Row() const {
  const auto ended = [this](const std::string& worker) -> std::string {
    const auto found = ended_.find(worker);
    if (found == ended_.end()) return "-";
    const nlohmann::json& answer = found->second.answer;
    const std::optional<milliseconds> after = found->second.after;
    std::string text =
        absl::StrCat(answer.at("code").get<std::string>(), " ",
                     after.has_value() ? absl::StrCat(after->count(), " ms") : "before");
    if (answer.contains("memory")) {
      absl::StrAppend(&text, ", ", answer.at("memory").get<std::string>(), " ",
                      answer.at("bytes").get<std::string>());
    }
    return text;
  };
  return absl::StrCat("| ", NameOf(cell_.victim), " | ", NameOf(cell_.fault), " | ",
                      NameOf(cell_.stage), " | ", ended("policy/0"), " | ", ended("engine0/0"),
                      " | ", ended("engine0/1"), " | ", ended("engine1/0"), " | ", next_, " |");
}

}  // namespace wb::test
