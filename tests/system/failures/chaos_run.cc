#include "tests/system/failures/chaos_run.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <stdexcept>

#include <poll.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "client/wbctl/process/child.h"
#include "tests/support/time_slack.h"

namespace wb::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDeadline{3'000};    // of each call
constexpr milliseconds kRound{4'000};       // of faults, before a calm
constexpr milliseconds kLongStop{30'000};   // each tenth round, of one process
constexpr milliseconds kRest{30};           // of a worker whose call has failed
constexpr milliseconds kCalmBound{15'000};  // until all groups have a version again
constexpr std::array<const char*, 4> kNodes = {"lead", "n0", "n1", "n2"};

std::set<std::string> SharedMemory() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    names.insert(entry.path().filename());
  }
  return names;
}

bool IsNode(const std::string& process) {
  return !absl::StrContains(process, "/");
}

/// What calls may end with when anything may be gone.
bool IsHonest(const std::string& code) {
  return code == "OK" || code == "UNAVAILABLE" || code == "DEADLINE_EXCEEDED" ||
         code == "FAILED_PRECONDITION" || code == "CANCELLED" || code == "ABORTED" ||
         code == "ALREADY_EXISTS" || code == "NOT_JOINED";
}

}  // namespace

ChaosRun::ChaosRun(std::uint64_t seed)
    : rng_(seed),
      shm_before_(SharedMemory()),
      cluster_({.bytes = 4 << 20,
                .more = "timeouts: {peer: 1s, start: 2s}\n",
                .transports = seed % 2 == 0 ? "tcp" : "shm"}) {
  for (const auto& [name, worker] : cluster_.workers()) workers_[name].joined = true;
}

std::uint64_t ChaosRun::Draw(std::uint64_t from, std::uint64_t to) {
  return from + rng_() % (to - from + 1);
}

std::string ChaosRun::Run(std::chrono::seconds length) {
  const auto end = Clock::now() + length;
  try {
    Calm();
    while (Clock::now() < end) {
      Round();
      Calm();
    }
  } catch (const std::exception& error) {
    std::string what = error.what();
    for (const char* node : kNodes) {
      absl::StrAppend(&what, "\n", node, ":\n",
                      Tail(cluster_.daemon(node).process().log(), 40, "  "));
    }
    return what;
  }
  return "";
}

std::string ChaosRun::Summary() const {
  std::string text = absl::StrCat(published_, " versions published, ", released_,
                                  " of them to all groups, ", verified_, " verified whole");
  for (const auto& [what, count] : faults_) absl::StrAppend(&text, ", ", count, " ", what);
  absl::StrAppend(&text, "; calls at most ", longest_over_ms_,
                  " ms over their deadlines, at rights again within ", longest_calm_.count(),
                  " ms");
  const auto n2 = footprints_.find("n2");
  if (n2 == footprints_.end()) return text;
  const Footprint& first = n2->second.second;
  absl::StrAppend(&text, "; n2, which lives on, has ", last_.descriptors, " descriptors (",
                  first.descriptors, " at first), ", last_.mappings, " mappings (", first.mappings,
                  "), ", last_.rss_anon_bytes >> 20, " MiB (", first.rss_anon_bytes >> 20, ")");
  return text;
}

void ChaosRun::Round() {
  if (++rounds_ % 10 == 0) {
    LongStop();
  } else {
    RunUntil(Clock::now() + kRound, /*faults=*/true);
  }
}

/// Of those that wait for it all calls end in time, and who does not need it goes on.
void ChaosRun::LongStop() {
  const std::string process = DrawProcess();
  ++faults_["long stops"];
  Stop(process, kLongStop);
  received_.clear();
  RunUntil(Clock::now() + kLongStop, /*faults=*/false);
  const bool of_engine0 = process == "n1" || absl::StartsWith(process, "engine0/");
  if (of_engine0 && !received_.contains("engine1/0")) {
    throw std::runtime_error(process + " stands still, and engine1 has received nothing since");
  }
}

void ChaosRun::RunUntil(Clock::time_point until, bool faults) {
  auto next_fault = Clock::now();
  while (Clock::now() < until) {
    if (faults && Clock::now() >= next_fault) {
      Inject();
      next_fault = Clock::now() + milliseconds(Draw(10, 400));
    }
    std::vector<std::string> due;
    for (const auto& [process, down] : down_) {
      if (Clock::now() >= down.until) due.push_back(process);
    }
    for (const std::string& process : due) BringBack(process);
    for (auto& [name, state] : workers_) Drive(name, /*calm=*/false);
    Step();
  }
}

/// No faults; until every worker has a version that came to all, and what daemons use is as before.
void ChaosRun::Calm() {
  const auto start = Clock::now();
  BringBackAll();
  received_.clear();
  const std::uint64_t released = released_;
  const auto all_good = [&] {
    return released_ > released && received_.size() == workers_.size() - 1;
  };
  while (!all_good()) {
    if (Clock::now() - start > Slack(kCalmBound)) {
      throw std::runtime_error("no version reaches all groups after the faults have ended");
    }
    for (auto& [name, state] : workers_) Drive(name, /*calm=*/true);
    Step();
  }
  longest_calm_ =
      std::max(longest_calm_, std::chrono::duration_cast<milliseconds>(Clock::now() - start));
  CheckDaemons();
  CheckFootprints();
}

/// Sleeps until a worker has said something, a few ms at most, and takes it.
void ChaosRun::Step() {
  std::vector<pollfd> watched;
  for (auto& [name, worker] : cluster_.workers()) watched.push_back({worker.fd(), POLLIN, 0});
  ::poll(watched.data(), watched.size(), 5);
  for (auto& [name, worker] : cluster_.workers()) {
    while (const std::optional<nlohmann::json> said = worker.Take()) Take(name, *said);
  }
  CheckDaemons();
}

/// Has a worker do its next call, when it is in none.
void ChaosRun::Drive(const std::string& name, bool calm) {
  WorkerState& state = workers_[name];
  const auto now = Clock::now();
  if (state.busy.has_value()) {
    // Two calls, each with the second that is allowed, and what the machine needs.
    const auto bound = 2 * kDeadline + Slack(milliseconds(4'000)) + state.busy->stopped;
    if (!down_.contains(name) && now - state.busy->since > bound) {
      throw std::runtime_error(name + " hangs in a call");
    }
    return;
  }
  if (down_.contains(name) || now < state.rests_until) return;
  const std::string ms = absl::StrCat(" ", kDeadline.count());
  std::string command;
  if (!state.joined) {
    command = "join" + ms;
  } else if (name != "policy/0") {
    command = absl::StrCat("next ", 1, ms);
  } else {
    // In a calm a version starts when all groups are there, or it would be for some.
    if (calm && !cluster_.KnowsRollouts()) return;
    command = absl::StrCat("publish ", ++version_, ms);
    ++published_;
  }
  cluster_.worker(name).Tell(command);
  state.busy = Busy{now, milliseconds(0)};
}

void ChaosRun::Take(const std::string& name, const nlohmann::json& answer) {
  WorkerState& state = workers_[name];
  const std::string code = answer.value("code", "");
  if (answer.value("call", "") == "offered") return;
  if (code == "gone") {
    if (!down_.contains(name)) throw std::runtime_error(name + " has died of itself");
    state = {};
    return;
  }
  if (!IsHonest(code)) throw std::runtime_error(name + ": " + answer.dump());
  if (!answer.value("as_said", true)) {
    throw std::runtime_error(name + " holds other bytes than it says: " + answer.dump());
  }
  const milliseconds stopped = state.busy.has_value() ? state.busy->stopped : milliseconds(0);
  const std::int64_t over = answer.value("over_ms", std::int64_t{0}) - stopped.count();
  longest_over_ms_ = std::max(longest_over_ms_, over);
  // The second that is promised, and what it takes to see it.
  if (over > Slack(milliseconds(1'000)).count() + 100) {
    throw std::runtime_error(
        absl::StrCat(name, " is ", over, " ms over its deadline: ", answer.dump()));
  }
  state.busy.reset();
  const std::string call = answer.at("call");
  if (call == "join") state.joined = code == "OK" || state.joined;
  if (code == "NOT_JOINED") state.joined = false;
  if (code != "OK") {
    state.rests_until = Clock::now() + kRest;
    return;
  }
  if (call == "publish") ++released_;
  if (call == "next") {
    ++verified_;
    ++received_[name];
  }
}

std::string ChaosRun::DrawProcess() {
  std::vector<std::string> processes(kNodes.begin(), kNodes.end());
  for (const auto& [name, worker] : cluster_.workers()) processes.push_back(name);
  return processes[Draw(0, processes.size() - 1)];
}

void ChaosRun::Stop(const std::string& process, milliseconds length) {
  const auto now = Clock::now();
  down_[process] = {/*killed=*/false, now, now + length};
  Signal(process, SIGSTOP);
}

void ChaosRun::Signal(const std::string& process, int signal) {
  if (IsNode(process)) {
    cluster_.daemon(process).process().Signal(signal);
  } else {
    cluster_.worker(process).Signal(signal);
  }
}

void ChaosRun::Inject() {
  const std::string process = DrawProcess();
  if (cluster_.transports() == "shm" && Draw(0, 20) == 0) return Gap(process);
  const std::uint64_t what = Draw(0, 2);
  // One lives through all of it: what leaks shows there.
  if (down_.contains(process) || (what == 0 && process == "n2")) return;
  if (what == 0) {
    ++faults_["kills"];
    const auto now = Clock::now();
    down_[process] = {/*killed=*/true, now, now + milliseconds(Draw(0, 300))};
    Signal(process, SIGKILL);
  } else if (what == 1) {
    ++faults_["stops"];
    Stop(process, milliseconds(Draw(0, 2'500)));
  } else {
    ++faults_["cuts"];
    if (IsNode(process)) {
      cluster_.daemon(process).Order("cut");
    } else {
      cluster_.worker(process).Tell("cut");
    }
  }
}

/// As by a peer that is killed amid sending to it through shared memory, which seldom hits.
void ChaosRun::Gap(const std::string& process) {
  if (down_.contains(process) || !IsNode(process)) return;
  ++faults_["gaps"];
  cluster_.daemon(process).Order("gap");
}

void ChaosRun::BringBack(const std::string& process) {
  const Down down = down_.at(process);
  if (!down.killed) {
    Signal(process, SIGCONT);
    if (const auto worker = workers_.find(process);
        worker != workers_.end() && worker->second.busy.has_value()) {
      worker->second.busy->stopped += std::chrono::ceil<milliseconds>(Clock::now() - down.since);
    }
  } else if (IsNode(process)) {
    cluster_.daemon(process).process().Ends();
    cluster_.Restart(process);
  } else {
    cluster_.worker(process).Start();
    workers_[process] = {};
  }
  down_.erase(process);
}

void ChaosRun::BringBackAll() {
  while (!down_.empty()) BringBack(down_.begin()->first);
}

void ChaosRun::CheckDaemons() {
  for (const char* node : kNodes) {
    if (down_.contains(node)) continue;
    const std::string end = cluster_.daemon(node).process().Ends(milliseconds(0));
    if (end != "runs") throw std::runtime_error(absl::StrCat("daemon ", node, " ", end));
  }
}

void ChaosRun::CheckFootprints() {
  for (const char* node : kNodes) {
    const pid_t pid = cluster_.daemon(node).process().pid();
    const Footprint now = FootprintOf(pid).value();
    if (node == std::string("n2")) last_ = now;
    auto& [first_pid, first] = footprints_[node];
    if (first_pid != pid) {
      first_pid = pid;
      first = now;
    }
    // Lanes and threads come and go; what leaks does so with every fault.
    const bool grown = now.descriptors > first.descriptors + 30 ||
                       now.mappings > first.mappings + 30 ||
                       now.rss_anon_bytes > first.rss_anon_bytes + (std::uint64_t{64} << 20);
    if (!grown) continue;
    throw std::runtime_error(
        absl::StrCat("daemon ", node, " grows: descriptors ", first.descriptors, " to ",
                     now.descriptors, ", mappings ", first.mappings, " to ", now.mappings,
                     ", memory ", first.rss_anon_bytes, " to ", now.rss_anon_bytes, " bytes"));
  }
  for (const std::string& name : SharedMemory()) {
    if (shm_before_.contains(name) || cluster_.transports() == "shm") continue;
    throw std::runtime_error("left in /dev/shm: " + name);
  }
}

}  // namespace wb::test
