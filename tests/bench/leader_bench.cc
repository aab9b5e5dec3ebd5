// What a leader costs at the sizes that the field runs: daemons without workers or memory, a stream
// each, that register a deployment's workers with a real leader and take the parts of its plans.
// They move nothing: what is ready is said to be done. Then one engine leaves and joins again.
//
// usage: leader_bench DEPLOYMENT.yaml HOST:PORT PID      (of a leader that knows no worker yet)
//
// Prints a figure a line: name, value, unit, what it must be at most or 0 (tabs between). Seconds
// are the clock's: leader and daemons share this machine's cores, as they would not in the field.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <unistd.h>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "daemon/rpc/cluster/cluster_client.h"
#include "daemon/rpc/sha256.h"
#include "daemon/rpc/tcp_address.h"
#include "daemon/state/members.h"
#include "planner/frameworks/deployment.h"
#include "planner/frameworks/hf_config.h"
#include "planner/model/registration.h"
#include "proto/convert.h"
#include "tests/support/whole_file.h"
#include "transport/loop/event_loop.h"

namespace wb {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{120};  // for all of it
constexpr std::chrono::milliseconds kProbeEvery{5};
constexpr double kMiB = 1 << 20;

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "leader_bench: %s\n", why.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

void Print(const std::string& name, double value, const char* unit, double must = 0) {
  std::printf("%s\t%.6g\t%s\t%g\n", name.c_str(), value, unit, must);
}

double Seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

template <typename T>
T Need(std::variant<T, Refusals> made) {
  if (const auto* refusals = std::get_if<Refusals>(&made)) Fail(ToStatus(*refusals).ToString());
  return std::get<T>(std::move(made));
}

Job JobOf(const fs::path& path) {
  const auto deployment = Need(ParseDeployment(test::ReadWholeFile(path), path.string()));
  const fs::path config = path.parent_path() / deployment.config;
  const auto model = Need(ParseHfConfig(test::ReadWholeFile(config), config.string()));
  return Need(LayOut(deployment, model, HfConfig::kMaxLayers));
}

ClusterClientOptions StreamOf(const std::string& node, const TcpAddress& leader) {
  ClusterClientOptions options;
  options.leader = leader;
  options.hello = {node, Incarnation(1), absl::StrCat("address of ", node), "tcp", "host", 1};
  options.grpc.message_bytes = std::uint64_t{256} << 20;
  return options;
}

/// What the streams report. Loop-confined, as all of them are.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  virtual void OnConnected() = 0;
  virtual void OnMessage(std::size_t node, FromLeader message) = 0;
};

/// A stream of one node.
class Stream final : public LeaderEvents {
 public:
  Stream(EventLoop& loop,
         const std::string& node,
         const TcpAddress& leader,
         std::size_t index,
         StreamEvents& events)
      : client_(loop, StreamOf(node, leader)), index_(index), events_(events) {}

  void Start() { client_.Start(*this); }
  void Stop() { client_.Stop(); }
  void Send(ToLeader message) { client_.Send(std::move(message)); }
  const LinkCounters& counters() const { return client_.counters(); }

  void OnLeaderConnected() override { events_.OnConnected(); }
  void OnLeaderLost(const absl::Status& why) override { Fail(why.ToString()); }
  void OnLeaderMessage(FromLeader message) override {
    events_.OnMessage(index_, std::move(message));
  }

 private:
  ClusterClient client_;
  const std::size_t index_;
  StreamEvents& events_;
};

/// Asks the leader's loop what it answers at once, again and again: how long it leaves a daemon
/// waiting, whatever else it does. On a loop of its own.
class Probe final : public StreamEvents {
 public:
  explicit Probe(const TcpAddress& leader)
      : loop_(*EventLoop::Create()), stream_(*loop_, "probe", leader, 0, *this) {
    loop_->Post([this] { stream_.Start(); });
    thread_ = std::thread([this] { loop_->Run(); });
  }
  ~Probe() override { Stop(); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  void Stop() {
    if (!thread_.joinable()) return;
    loop_->Post([this] {
      stream_.Stop();
      loop_->Stop();
    });
    thread_.join();
  }
  /// After Stop.
  double longest() const { return Seconds(longest_); }

  void OnConnected() override { Ask(); }
  void OnMessage(std::size_t /*node*/, FromLeader message) override {
    if (!std::holds_alternative<FinishReceive>(message)) return;
    longest_ = std::max(longest_, Clock::now() - asked_);
    loop_->At(Clock::now() + kProbeEvery, [this] { Ask(); });
  }

 private:
  void Ask() {
    asked_ = Clock::now();
    stream_.Send(AcceptVersion{SessionId(32, '0'), Version(1)});
  }

  std::unique_ptr<EventLoop> loop_;
  Stream stream_;
  Clock::time_point asked_;
  Clock::duration longest_{};
  std::thread thread_;
};

/// A rank of the job.
struct Worker {
  std::size_t node = 0;
  SessionId session;
  RegisterWorker call;
};

/// One version from its workers' registrations to its end, as times.
struct Round {
  Clock::time_point begun;       // streams or registrations
  Clock::time_point registered;  // the last of them
  Clock::time_point offered;     // to the first group: there is a plan
  Clock::time_point first_part;
  Clock::time_point last_part;
  Clock::time_point ended;
  std::size_t parts = 0;                       // received
  std::map<std::string, std::uint64_t> moved;  // bytes into each group, by the parts received
};

/// All daemons, on a loop of their own, which another thread leads step by step.
class Daemons final : public StreamEvents {
 public:
  Daemons(const Job& job, const TcpAddress& leader);

  std::size_t streams() const { return streams_.size(); }
  std::size_t workers() const { return workers_.size(); }
  /// Connects, registers all and brings them the first version.
  Round All();
  /// The ranks of `group` leave, come back under new sessions, and all get the next version.
  Round Rejoin(const std::string& group);
  /// Bytes of each engine's pieces.
  const std::map<std::string, std::uint64_t>& wanted() const { return wanted_; }
  std::uint64_t sent_bytes() const;
  /// Of each stream.
  std::vector<std::uint64_t> received_bytes() const;
  ~Daemons() override;
  Daemons(const Daemons&) = delete;
  Daemons& operator=(const Daemons&) = delete;

  void OnConnected() override {
    ++connected_;
    Step();
  }
  void OnMessage(std::size_t node, FromLeader message) override {
    std::visit([&](auto& body) { On(node, body); }, message);
    Step();
  }

 private:
  /// Runs `begin` on the loop, and waits until `done` is true there.
  void Run(std::function<void()> begin, std::function<bool()> done, const std::string& what);
  void Step() {
    if (!done_ || !done_()) return;
    done_ = nullptr;
    reached_.set_value();
  }
  void Register(const std::function<bool(const WorkerName&)>& wanted);
  /// Publishes the next version, until it is released.
  void Update();

  void On(std::size_t node, const WorkerRegistered& answer);
  void On(std::size_t node, const VersionOffered& offer);
  void On(std::size_t node, const PrepareAttempt& prepare);
  void On(std::size_t node, const GoAttempt& go) {
    streams_[node]->Send(AttemptStaged{go.attempt, {}});
  }
  void On(std::size_t node, const CommitAttempt& commit) {
    streams_[node]->Send(AttemptCommitted{commit.attempt});
  }
  void On(std::size_t node, const FinishPublish& end);
  // An engine that comes back is offered what others hold until there is a newer version.
  void On(std::size_t /*node*/, const FinishReceive& end) {
    if (!end.status.ok() && end.version == Version(version_)) Fail(end.status.ToString());
  }
  void On(std::size_t /*node*/, const VersionFailed& failed) {
    if (failed.version == Version(version_)) Fail(failed.status.ToString());
  }
  void On(std::size_t node, const AbortAttempt& abort) {
    streams_[node]->Send(AttemptAborted{abort.attempt});
  }
  void On(std::size_t /*node*/, const Welcome& /*welcome*/) {}
  void On(std::size_t /*node*/, const VersionOutcome& /*outcome*/) {}
  void On(std::size_t node, const Heartbeat& beat) { streams_[node]->Send(beat); }

  std::unique_ptr<EventLoop> loop_;
  std::vector<std::string> nodes_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Worker> workers_;
  std::map<std::string, std::uint64_t> wanted_;  // bytes of each engine
  std::size_t trainers_ = 0;
  std::function<bool()> done_;  // of the step that is waited for
  std::promise<void> reached_;  // as done_
  std::size_t connected_ = 0;
  std::size_t registered_ = 0;
  std::size_t published_ = 0;
  std::uint64_t version_ = 0;
  std::uint64_t sessions_ = 0;
  Round round_;
  std::thread thread_;
};

std::unique_ptr<EventLoop> NewLoop() {
  absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create();
  if (!loop.ok()) Fail(loop.status().ToString());
  return *std::move(loop);
}

Daemons::Daemons(const Job& job, const TcpAddress& leader) : loop_(NewLoop()) {
  std::map<std::string, std::size_t> numbers;
  for (const Layout& layout : job.layouts) {
    const auto [number, fresh] = numbers.try_emplace(layout.node, nodes_.size());
    if (fresh) {
      nodes_.push_back(layout.node);
      streams_.push_back(
          std::make_unique<Stream>(*loop_, layout.node, leader, number->second, *this));
    }
    Worker& worker = workers_.emplace_back();
    worker.node = number->second;
    worker.call.incarnation = Incarnation(1);
    worker.call.epoch = Epoch(1);
    worker.call.world_size = static_cast<std::int32_t>(
        std::count_if(job.layouts.begin(), job.layouts.end(),
                      [&](const Layout& other) { return other.name.group == layout.name.group; }));
    worker.call.registration = std::make_shared<const Registration>(RegistrationOf(job, layout));
    const std::string contents = ContentsOf(*worker.call.registration);
    worker.call.contents = {Sha256(contents), contents.size()};
    if (layout.role == Role::kTrainer) {
      ++trainers_;
    } else {
      wanted_[layout.name.group] += PieceBytes(*worker.call.registration);
    }
  }
  thread_ = std::thread([this] { loop_->Run(); });
}

Daemons::~Daemons() {
  loop_->Post([this] {
    for (const auto& stream : streams_) stream->Stop();
    loop_->Stop();
  });
  thread_.join();
}

void Daemons::Run(std::function<void()> begin,
                  std::function<bool()> done,
                  const std::string& what) {
  reached_ = std::promise<void>();
  std::future<void> reached = reached_.get_future();
  loop_->Post([this, begin = std::move(begin), done = std::move(done)] {
    done_ = done;
    begin();
    Step();
  });
  if (reached.wait_for(kPatience) != std::future_status::ready) Fail("no end of: " + what);
}

void Daemons::Register(const std::function<bool(const WorkerName&)>& wanted) {
  Run(
      [this, wanted] {
        registered_ = 0;
        for (Worker& worker : workers_) {
          if (!wanted(worker.call.registration->layout.name)) {
            ++registered_;
            continue;
          }
          worker.call.session = absl::StrFormat("%032x", ++sessions_);
          streams_[worker.node]->Send(worker.call);
        }
      },
      [this] { return registered_ == workers_.size(); }, "registering");
  round_.registered = Clock::now();
}

void Daemons::Update() {
  Run(
      [this] {
        ++version_;
        published_ = 0;
        for (const Worker& worker : workers_) {
          if (worker.call.registration->layout.role != Role::kTrainer) continue;
          streams_[worker.node]->Send(PublishVersion{worker.call.session, Version(version_), {}});
        }
      },
      [this] { return published_ == trainers_; }, "the update");
  round_.ended = Clock::now();
}

Round Daemons::All() {
  round_ = Round();
  round_.begun = Clock::now();
  Run(
      [this] {
        for (const auto& stream : streams_) stream->Start();
      },
      [this] { return connected_ == streams_.size(); }, "connecting");
  Register([](const WorkerName&) { return true; });
  Update();
  return round_;
}

Round Daemons::Rejoin(const std::string& group) {
  const auto of_group = [group](const WorkerName& name) { return name.group == group; };
  round_ = Round();
  round_.begun = Clock::now();
  loop_->Post([this, of_group] {
    for (const Worker& worker : workers_) {
      if (!of_group(worker.call.registration->layout.name)) continue;
      streams_[worker.node]->Send(UnregisterWorker{worker.call.session, "restarts", true});
    }
  });
  Register(of_group);
  Update();
  return round_;
}

void Daemons::On(std::size_t /*node*/, const WorkerRegistered& answer) {
  if (!answer.status.ok()) Fail(answer.status.ToString());
  ++registered_;
}

void Daemons::On(std::size_t node, const VersionOffered& offer) {
  if (offer.version != Version(version_)) return;
  if (round_.offered == Clock::time_point()) round_.offered = Clock::now();
  for (const Worker& worker : workers_) {
    if (worker.node != node || worker.call.registration->layout.name.group != offer.group) continue;
    streams_[node]->Send(AcceptVersion{worker.call.session, offer.version});
  }
}

void Daemons::On(std::size_t node, const PrepareAttempt& prepare) {
  round_.last_part = Clock::now();
  if (round_.first_part == Clock::time_point()) round_.first_part = round_.last_part;
  if (prepare.plan.has_value()) {
    ++round_.parts;
    for (const Move& move : prepare.plan->moves) {
      if (prepare.plan->workers[move.dst.value()].node == nodes_[node]) {
        round_.moved[prepare.group] += move.bytes;
      }
    }
  }
  streams_[node]->Send(AttemptPrepared{prepare.attempt});
}

void Daemons::On(std::size_t /*node*/, const FinishPublish& end) {
  if (!end.status.ok()) Fail(end.status.ToString());
  for (const GroupOutcome& outcome : end.outcomes) {
    if (!outcome.status.ok()) Fail(outcome.status.ToString());
  }
  ++published_;
}

std::uint64_t Daemons::sent_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& stream : streams_) sum += stream->counters().sent_bytes;
  return sum;
}

std::vector<std::uint64_t> Daemons::received_bytes() const {
  std::vector<std::uint64_t> received;
  for (const auto& stream : streams_) received.push_back(stream->counters().received_bytes);
  return received;
}

/// Seconds of the processor that a process has had.
double ProcessorOf(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string stat;
  std::getline(file, stat);
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));  // its name may have spaces
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0;
  double system = 0;
  if (!(fields >> user >> system)) Fail("no process " + pid);
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// The most memory that a process has had, in MiB.
double PeakOf(const std::string& pid) {
  std::ifstream status("/proc/" + pid + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  Fail("no process " + pid);
}

void PrintTimes(const std::string& name, const Round& round) {
  Print(name + ": registration", Seconds(round.registered - round.begun), "s");
  Print(name + ": solve", Seconds(round.offered - round.registered), "s");
  Print(name + ": accepts and first part", Seconds(round.first_part - round.offered), "s");
  Print(name + ": all parts made and handed out", Seconds(round.last_part - round.first_part), "s");
  Print(name + ": last part to the end of the update", Seconds(round.ended - round.last_part), "s");
}

int Main(const std::string& file, const std::string& address, const std::string& pid) {
  spdlog::set_level(spdlog::level::warn);
  const absl::StatusOr<TcpAddress> leader = ParseTcpAddress(address);
  if (!leader.ok()) Fail(leader.status().ToString());
  const Job job = JobOf(file);
  Daemons daemons(job, *leader);
  Probe probe(*leader);

  const double before = ProcessorOf(pid);
  const Round first = daemons.All();
  if (first.moved != daemons.wanted()) Fail("the parts do not move what the engines want");
  const std::string all =
      absl::StrCat("leader, ", daemons.workers(), " workers on ", daemons.streams(), " streams");
  Print(all + ": to the last part", Seconds(first.last_part - first.begun), "s", 3);
  PrintTimes(all, first);
  Print(all + ": the leader's processor, to the end", ProcessorOf(pid) - before, "s");
  const std::vector<std::uint64_t> received = daemons.received_bytes();
  Print(all + ": registered", static_cast<double>(daemons.sent_bytes()) / kMiB, "MiB");
  Print(all + ": handed out",
        static_cast<double>(std::accumulate(received.begin(), received.end(), std::uint64_t{0})) /
            kMiB,
        "MiB");
  Print(all + ": most to one stream",
        static_cast<double>(*std::max_element(received.begin(), received.end())) / kMiB, "MiB", 8);
  Print(all + ": parts", static_cast<double>(first.parts), "");

  const Round again = daemons.Rejoin("engine0");
  const std::string rejoin = "leader, engine0 leaves and joins again";
  Print(rejoin + ": to the last part", Seconds(again.last_part - again.begun), "s");
  PrintTimes(rejoin, again);
  Print(rejoin + ": parts", static_cast<double>(again.parts), "");
  probe.Stop();
  Print("leader, longest answer meanwhile", probe.longest(), "s");
  Print("leader, peak", PeakOf(pid), "MiB");
  return 0;
}

}  // namespace
}  // namespace wb

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: leader_bench DEPLOYMENT.yaml HOST:PORT PID\n");
    return 3;
  }
  return wb::Main(argv[1], argv[2], argv[3]);
}
