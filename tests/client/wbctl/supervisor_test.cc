#include "client/wbctl/process/supervisor.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "client/wbctl/rehearse/messages.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/support/whole_file.h"

namespace wb {
namespace {

using test::ReadWholeFile;
using test::Slack;
using test::TempFolder;
using Kind = SupervisorEvent::Kind;

std::chrono::steady_clock::time_point In(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + Slack(time);
}

ChildOptions Shell(const TempFolder& scratch, const std::string& script) {
  return {.name = "child",
          .argv = {"/bin/sh", "-c", script},
          .environment = {},
          .log = scratch.File("log")};
}

SupervisorEvent Awaited(Supervisor& supervisor) {
  auto event = supervisor.Next(In(std::chrono::seconds(5)));
  REQUIRE(event.ok());
  REQUIRE(event->has_value());
  return **event;
}

bool Alive(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

/// For what is not our child and so can only be watched: whether it is gone within its time.
bool Vanishes(const std::function<bool()>& gone) {
  const auto deadline = In(std::chrono::seconds(5));
  while (!gone() && std::chrono::steady_clock::now() < deadline) ::usleep(1000);
  return gone();
}

TEST_CASE("a child's end is told once, with how it ended", "[wbctl][process]") {
  const TempFolder scratch;
  const auto signals = StopSignals::Block();
  auto supervisor = Supervisor::Create(scratch.File("notify"), *signals);
  REQUIRE(supervisor.ok());
  const auto [script, text] = GENERATE(
      table<std::string, std::string>({{"exit 0", "exited with code 0"},
                                       {"exit 7", "exited with code 7"},
                                       {"kill -9 $$", "was killed by signal 9 (Killed)"}}));
  const auto child = supervisor->StartControlled(Shell(scratch, script));
  REQUIRE(child.ok());
  REQUIRE(Awaited(*supervisor).kind == Kind::kEnded);
  REQUIRE(supervisor->child(*child).Ended() == text);
  REQUIRE(supervisor->child(*child).succeeded() == (script == "exit 0"));
  const auto none = supervisor->Next(std::chrono::steady_clock::now());
  REQUIRE_FALSE(none->has_value());
}

TEST_CASE("what a child printed is the tail of its log", "[wbctl][process]") {
  const TempFolder scratch;
  const auto signals = StopSignals::Block();
  auto supervisor = Supervisor::Create(scratch.File("notify"), *signals);
  const auto child = supervisor->StartControlled(Shell(scratch, "seq 1 30; echo bad >&2; exit 1"));
  REQUIRE(child.ok());
  REQUIRE(Awaited(*supervisor).kind == Kind::kEnded);
  REQUIRE(Tail(supervisor->child(*child).log(), 3, "| ") == "| 29\n| 30\n| bad\n");
  REQUIRE(Tail(scratch.File("missing"), 3, "").empty());
}

TEST_CASE("a program that cannot be run is an error that names it", "[wbctl][process]") {
  const TempFolder scratch;
  const auto signals = StopSignals::Block();
  auto supervisor = Supervisor::Create(scratch.File("notify"), *signals);
  ChildOptions options = Shell(scratch, "");
  options.argv = {"/nonexistent/program"};
  const auto child = supervisor->StartControlled(options);
  REQUIRE_THAT(std::string(child.status().message()),
               Catch::Contains("cannot start child, /nonexistent/program: No such file"));
}

TEST_CASE("readiness comes from the child that sent it", "[wbctl][process]") {
  const TempFolder scratch;
  const auto signals = StopSignals::Block();
  auto supervisor = Supervisor::Create(scratch.File("notify"), *signals);
  REQUIRE(supervisor->StartNotifying(Shell(scratch, "exec cat /dev/zero > /dev/null")).ok());
  const std::string send =
      "import os,socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto("
      "b'READY=1\\nX_WB_LEADER=127.0.0.1:1', os.environ['NOTIFY_SOCKET'])";
  ChildOptions options = Shell(scratch, "");
  options.argv = {"/usr/bin/env", "python3", "-c", send};
  const auto child = supervisor->StartNotifying(options);
  REQUIRE(child.ok());
  const SupervisorEvent event = Awaited(*supervisor);
  REQUIRE(event.kind == Kind::kNotified);
  REQUIRE(event.child == *child);
  REQUIRE(event.text == "READY=1\nX_WB_LEADER=127.0.0.1:1");
}

TEST_CASE("all children and their children end with the supervisor", "[wbctl][process]") {
  const TempFolder scratch;
  pid_t pid = 0;
  const auto start = std::chrono::steady_clock::now();
  {
    const auto signals = StopSignals::Block();
    auto supervisor = Supervisor::Create(scratch.File("notify"), *signals);
    const auto child = supervisor->StartControlled(
        Shell(scratch, "sleep 600 & echo started >&3; trap '' TERM; wait"));
    REQUIRE(child.ok());
    REQUIRE(Awaited(*supervisor).text == "started\n");
    pid = supervisor->child(*child).pid();
    REQUIRE(Alive(pid));
  }
  REQUIRE(std::chrono::steady_clock::now() - start < Slack(std::chrono::seconds(5)));
  REQUIRE_FALSE(Alive(pid));
  REQUIRE(Vanishes([&] { return !Alive(-pid); }));  // the group: init reaps the orphan
  REQUIRE_FALSE(std::filesystem::exists(scratch.File("notify")));
}

TEST_CASE("children end when the process that started them is killed", "[wbctl][process]") {
  const TempFolder scratch;
  const pid_t middle = ::fork();
  REQUIRE(middle >= 0);
  if (middle == 0) {
    const auto signals = StopSignals::Block();
    auto supervisor = Supervisor::Create(scratch.File("notify"), *signals);
    const auto child = supervisor->StartControlled(Shell(scratch, "exec sleep 600"));
    std::ofstream(scratch.File("pid.new")) << supervisor->child(*child).pid();
    std::filesystem::rename(scratch.File("pid.new"), scratch.File("pid"));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(middle, &status, 0) == middle);
  const pid_t pid = std::stoi(ReadWholeFile(scratch.File("pid")));
  REQUIRE(Vanishes([&] {
    const std::string stat = ReadWholeFile("/proc/" + std::to_string(pid) + "/stat");
    return stat.empty() || stat.find(") Z ") != std::string::npos;
  }));
}

TEST_CASE("a signal to us is an event while a supervisor lives", "[wbctl][process]") {
  const TempFolder scratch;
  const auto signals = StopSignals::Block();
  auto supervisor = Supervisor::Create(scratch.File("notify"), *signals);
  REQUIRE(::raise(SIGTERM) == 0);
  const SupervisorEvent event = Awaited(*supervisor);
  REQUIRE(event.kind == Kind::kSignal);
  REQUIRE(event.signal == SIGTERM);
}

TEST_CASE("what a child said comes before its end", "[wbctl][process]") {
  const TempFolder scratch;
  const auto signals = StopSignals::Block();
  auto supervisor = Supervisor::Create(scratch.File("notify"), *signals);
  REQUIRE(supervisor->StartControlled(Shell(scratch, "echo one >&3; echo two >&3")).ok());
  REQUIRE(Awaited(*supervisor).text == "one\n");
  REQUIRE(Awaited(*supervisor).text == "two\n");
  REQUIRE(Awaited(*supervisor).kind == Kind::kEnded);
}

TEST_CASE("a child has its descriptors and no other of ours", "[wbctl][process]") {
  const TempFolder scratch;
  const auto signals = StopSignals::Block();
  auto supervisor = Supervisor::Create(scratch.File("notify"), *signals);
  REQUIRE(supervisor->StartControlled(Shell(scratch, "ls /proc/self/fd >&3")).ok());
  // 0 to 2 and the channel; 4 is ls's own, reading the folder
  REQUIRE(Awaited(*supervisor).text == "0\n1\n2\n3\n4\n");
}

TEST_CASE("the notify socket's path must be free and short", "[wbctl][process]") {
  const TempFolder scratch;
  const auto signals = StopSignals::Block();
  const auto taken = Supervisor::Create(scratch.Write("file", ""), *signals);
  REQUIRE_THAT(std::string(taken.status().message()), Catch::Contains("Address already in use"));
  const auto deep = Supervisor::Create(scratch.File(std::string(120, 'x')), *signals);
  REQUIRE_THAT(std::string(deep.status().message()), Catch::Contains("want less than 108"));
}

TEST_CASE("orders, reports and specs survive their JSON", "[wbctl]") {
  const Order order{.step = Step::kDump, .version = 1ULL << 63, .paths = {"a", "b\"\n"}};
  const auto order_back = OrderFromJson(ToJson(order));
  REQUIRE(order_back.ok());
  REQUIRE(order_back->step == order.step);
  REQUIRE(order_back->version == order.version);
  REQUIRE(order_back->paths == order.paths);

  const StepReport report{
      .step = Step::kCheck,
      .error = "bad \xFF byte",
      .check = {
          .element_bytes = 1,
          .hole_bytes = 2,
          .mismatches = 3,
          .first = {
              {.param = "p", .tensor = "t", .index = {1, 2}, .got = "0x1", .wanted = "0x2"}}}};
  const auto report_back = StepReportFromJson(ToJson(report));
  REQUIRE(report_back.ok());
  REQUIRE(report_back->check.first == report.check.first);
  REQUIRE(report_back->check.mismatches == 3);

  const WorkerSpec spec{.layout = "l",
                        .socket = "s",
                        .world_size = 4,
                        .timeout_ms = 5,
                        .fill = Fill::kIndex,
                        .checkpoint = "c",
                        .ties = {{"a", "b"}},
                        .flip = true,
                        .snapshot = true};
  const auto spec_back = WorkerSpecFromJson(ToJson(spec));
  REQUIRE(spec_back.ok());
  REQUIRE(spec_back->ties == spec.ties);
  REQUIRE(spec_back->fill == Fill::kIndex);
  REQUIRE(spec_back->snapshot);
}

TEST_CASE("a message that is none is refused with its text", "[wbctl]") {
  const std::string text = GENERATE("", "{", "[]", R"({"step":"fly","version":1,"paths":[]})",
                                    R"({"step":"move","version":"x","paths":[]})");
  REQUIRE_THAT(std::string(OrderFromJson(text).status().message()),
               Catch::Contains("control message \"" + text + "\""));
}

}  // namespace
}  // namespace wb
