// weightbridged as a service: what it tells its service manager and probes, whom it runs as, what
// it leaves alone of its environment, and how much it logs.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "tests/support/catch.h"
#include "tests/support/run_to_end.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/support/whole_file.h"
#include "tests/system/daemon_process.h"
#include "tests/system/daemon_talk.h"
#include "tests/system/health.h"
#include "tests/system/raw_rpc.h"
#include "tests/system/tensor_worker.h"

namespace wb {
namespace {

using test::AddressOf;
using test::AskDaemon;
using test::BinaryOf;
using test::ChannelTo;
using test::DaemonProcess;
using test::Exited;
using test::HealthBecomes;
using test::HealthOf;
using test::kListen;
using test::LogShows;
using test::Slack;
using test::StatusBecomes;
using test::TempFolder;
using test::TensorWorker;
using test::TextOf;
using namespace std::chrono_literals;

/// The lines of /proc/PID/status, by their name.
std::string ProcStatus(pid_t pid, const std::string& name) {
  std::istringstream lines(test::ReadWholeFile(absl::StrCat("/proc/", pid, "/status")));
  for (std::string line; std::getline(lines, line);) {
    if (absl::StartsWith(line, name + ":")) return line.substr(name.size() + 2);
  }
  return "";
}

unsigned ModeOf(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 07777U : 0;
}

TEST_CASE("A daemon is healthy while it has a leader, on both its ops doors", "[system][service]") {
  const TempFolder folder;
  DaemonProcess leader({folder.path(), "n0", kListen, "control: {listen: '127.0.0.1:0'}"});
  REQUIRE(leader.Start());
  REQUIRE(leader.Ready());
  for (const std::string& door : {leader.control(), leader.Said("X_WB_CONTROL")}) {
    CAPTURE(door);
    REQUIRE(HealthBecomes(door, "SERVING"));
    REQUIRE(HealthOf(door, "weightbridge.v1.StatusService") == "SERVING");
    REQUIRE(HealthOf(door, "no.such.Service") == "code 5");  // NOT_FOUND
  }
  DaemonProcess follower(
      {folder.path(), "n1", AddressOf(leader), "timeouts: {peer: 2s, drain: 2s}"});
  REQUIRE(follower.Start());
  REQUIRE(follower.Ready());
  REQUIRE(follower.Says("STATUS",
                        absl::StrCat("connected to the leader ", leader.Said("X_WB_LEADER"))));
  REQUIRE(HealthBecomes(follower.control(), "SERVING"));
  leader.Signal(SIGKILL);
  REQUIRE(absl::StrContains(leader.Ends(), "signal 9"));
  REQUIRE(HealthBecomes(follower.control(), "NOT_SERVING"));
}

TEST_CASE("A daemon whose leader is not there is ready to be asked, and not healthy",
          "[system][service]") {
  const TempFolder folder;
  DaemonProcess gone({folder.path(), "n0", kListen, ""});
  REQUIRE(gone.Start());
  REQUIRE(gone.Ready());
  const std::string address = AddressOf(gone);
  gone.Signal(SIGTERM);
  REQUIRE(gone.Ends() == Exited(0));
  DaemonProcess daemon({folder.path(), "n1", address, ""});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  REQUIRE(absl::StartsWith(daemon.Said("STATUS"), "waiting for the leader 127.0.0.1:"));
  REQUIRE(HealthOf(daemon.control()) == "NOT_SERVING");
  REQUIRE(test::WaitsShow(folder, daemon, "Connection refused"));
}

TEST_CASE("The ops door lists its services by reflection", "[system][service]") {
  const TempFolder folder;
  DaemonProcess daemon({folder.path(), "n0", kListen, ""});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  const test::RawReply listed =
      test::CallRaw(ChannelTo(daemon.control()),
                    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*");
  CAPTURE(listed.status.error_message());
  REQUIRE(listed.status.ok());
  REQUIRE(absl::StrContains(listed.bytes, "weightbridge.v1.StatusService"));
  REQUIRE(absl::StrContains(listed.bytes, "grpc.health.v1.Health"));
}

TEST_CASE("A service manager is told of readiness and of the stop", "[system][service]") {
  const TempFolder folder;
  DaemonProcess daemon({folder.path(), "n0", kListen, ""});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  REQUIRE(
      daemon.Says("STATUS", absl::StrCat("connected to the leader ", daemon.Said("X_WB_LEADER"))));
  REQUIRE(daemon.Said("STOPPING").empty());
  daemon.Signal(SIGTERM);
  REQUIRE(daemon.Says("STOPPING", "1"));
  REQUIRE(daemon.Said("STATUS") == "draining");
  REQUIRE(daemon.Ends() == Exited(0));
}

TEST_CASE("A daemon has no signal handlers of UCX, and SIGHUP ends nothing", "[system][service]") {
  const TempFolder folder;
  DaemonProcess daemon({folder.path(), "n0", kListen, ""});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  daemon.Signal(SIGHUP);
  REQUIRE(LogShows(daemon, "SIGHUP: nothing is read again"));
  REQUIRE(daemon.Ends(50ms) == "runs");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  SUCCEED("a sanitizer has handlers of its own");
#elif defined(__has_feature)
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define WB_NO_SANITIZER
#endif
#else
#define WB_NO_SANITIZER
#endif
#ifdef WB_NO_SANITIZER
  const std::uint64_t caught = std::stoull(ProcStatus(daemon.pid(), "SigCgt"), nullptr, 16);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGHUP}) {
    CAPTURE(signal);
    CHECK((caught >> (signal - 1) & 1) == 0);
  }
#endif
}

TEST_CASE("Proxy variables touch nothing", "[system][service]") {
  const TempFolder folder;
  // Nobody listens on the discard port; gRPC and curl know these names.
  const std::string dead = "http://127.0.0.1:9";
  for (const char* name : {"http_proxy", "https_proxy", "grpc_proxy", "all_proxy", "HTTP_PROXY",
                           "HTTPS_PROXY", "ALL_PROXY"}) {
    REQUIRE(::setenv(name, dead.c_str(), 1) == 0);
  }
  ::unsetenv("no_proxy");
  DaemonProcess n0({folder.path(), "n0", kListen, "control: {listen: '127.0.0.1:0'}"});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  DaemonProcess n1({folder.path(), "n1", AddressOf(n0), ""});
  REQUIRE(n1.Start());
  REQUIRE(n1.Ready());
  REQUIRE(absl::StrContains(test::ReadWholeFile(absl::StrCat("/proc/", n1.pid(), "/environ")),
                            "grpc_proxy=http://127.0.0.1:9"));
  test::MoveVersions(n0.worker_socket(), n1.worker_socket(), 1, 2);
  for (const std::string& door : {n0.control(), n0.Said("X_WB_CONTROL")}) {
    const test::Finished asked =
        test::RunProgram(folder.path(), {BinaryOf("wbctl"), "status", "--daemon", door});
    CAPTURE(asked.output);
    REQUIRE(asked.code == 0);
  }
}

TEST_CASE("A version is a few lines of log, however many chunks it has", "[system][service]") {
  const TempFolder folder;
  DaemonProcess n0({folder.path(), "n0", kListen, ""});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  DaemonProcess n1({folder.path(), "n1", AddressOf(n0), ""});
  REQUIRE(n1.Start());
  REQUIRE(n1.Ready());
  const auto lines = [](const DaemonProcess& daemon, const std::string& version) {
    std::istringstream log(daemon.Log());
    std::vector<std::string> found;
    for (std::string line; std::getline(log, line);) {
      if (absl::StrContains(line, "version=" + version + " ")) found.push_back(line);
    }
    return found;
  };
  // Version 1 is 256 KiB, one chunk; version 2 is 16 MiB, 16 chunks.
  std::uint64_t version = 0;
  for (const std::int64_t rows : {256, 16 * 1024}) {
    TensorWorker source(n0.worker_socket(), "policy", rows, 256);
    TensorWorker target(n1.worker_socket(), "engine0", rows, 256);
    source.options.job = target.options.job = absl::StrCat("job", rows);
    auto trainer = weightbridge::Trainer::Join(source.options, source.layout);
    auto rollout = weightbridge::Rollout::Join(target.options, target.layout);
    REQUIRE(TextOf(trainer) == "OK");
    REQUIRE(TextOf(rollout) == "OK");
    Update(*trainer, source, *rollout, target, ++version);
    // The last word on a version comes after its calls have returned.
    REQUIRE(
        LogShows(n0, absl::StrCat("version=", version, " group=engine0 installing->committed")));
  }
  CAPTURE(n0.Log(), n1.Log());
  // At the leader: offered, prepared, moving, staged, installing, committed, released; there and at
  // the other daemon the steps of its own attempt: prepared, (asking,) moving, staged, finishing.
  REQUIRE(lines(n0, "1").size() <= 7 + 4);
  REQUIRE(lines(n0, "2").size() <= 7 + 4);
  REQUIRE(lines(n1, "1").size() <= 5);
  REQUIRE(lines(n1, "2").size() <= 5);
  REQUIRE(lines(n1, "2").size() >= 4);
}

/// The unit with this build's daemon in it, in `folder`.
std::string UnitIn(const TempFolder& folder) {
  const std::string path = folder.path() + "/weightbridged.service";
  const std::string text =
      test::ReadWholeFile(WB_SOURCE_DIR "/deploy/systemd/weightbridged.service");
  REQUIRE(absl::StrContains(text, "/usr/bin/weightbridged"));
  REQUIRE(test::WriteWholeFile(
      path, absl::StrReplaceAll(text, {{"/usr/bin/weightbridged", BinaryOf("weightbridged")}})));
  return path;
}

TEST_CASE("systemd takes the unit as it is, and its exposure stays low", "[system][service]") {
  const std::string analyze = "/usr/bin/systemd-analyze";
  if (!std::filesystem::exists(analyze)) {
    WARN("skipped: there is no systemd-analyze (package systemd)");
    return;
  }
  const TempFolder folder;
  const std::string unit = UnitIn(folder);
  const test::ProgramEnd verified =
      test::RunToEnd({analyze, "verify", "--man=no", unit}, {}, Slack(20s));
  CAPTURE(verified.out, verified.err);
  REQUIRE(verified.exit_code == 0);
  REQUIRE_FALSE(absl::StrContains(verified.err, "weightbridged.service"));
  // 1.6 when it was written; the threshold is in tenths.
  const test::ProgramEnd exposed =
      test::RunToEnd({analyze, "security", "--offline=true", "--no-pager", "--threshold=20", unit},
                     {}, Slack(20s));
  CAPTURE(exposed.out, exposed.err);
  REQUIRE(exposed.exit_code == 0);
  REQUIRE(absl::StrContains(exposed.out, "Overall exposure level"));
}

TEST_CASE("The run directory lets in its owner and group", "[system][service]") {
  const TempFolder folder;
  const mode_t before = ::umask(0);
  DaemonProcess daemon({folder.path(), "n0", kListen, ""});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  ::umask(before);
  REQUIRE(ModeOf(daemon.run_dir()) == 0750);
  REQUIRE(ModeOf(daemon.run_dir() + "/worker.sock") == 0660);
  REQUIRE(ModeOf(daemon.run_dir() + "/control.sock") == 0660);
  REQUIRE(ModeOf(daemon.run_dir() + "/lock") == 0640);
}

TEST_CASE("A daemon runs as a normal user, and weights move", "[system][service]") {
  if (::geteuid() != 0) {
    WARN("skipped: the tests are not run by root, so every other one is this one");
    return;
  }
  constexpr uid_t kNobody = 65534;
  const TempFolder folder;
  REQUIRE(::chown(folder.path().c_str(), kNobody, kNobody) == 0);
  const std::vector<std::string> as_nobody = {
      "/usr/bin/setpriv",    "--reuid=65534",   "--regid=65534", "--clear-groups",
      "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"};
  // The build may lie where only root comes.
  const std::string binary = folder.path() + "/weightbridged";
  std::filesystem::copy_file(BinaryOf("weightbridged"), binary);
  DaemonProcess n0({folder.path(), "n0", kListen, "", {}, {}, "lo", binary, as_nobody});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  DaemonProcess n1({folder.path(), "n1", AddressOf(n0), "", {}, {}, "lo", binary, as_nobody});
  REQUIRE(n1.Start());
  REQUIRE(n1.Ready());
  REQUIRE(absl::StartsWith(ProcStatus(n0.pid(), "Uid"), "65534\t65534"));
  REQUIRE(ProcStatus(n0.pid(), "CapEff") == "0000000000000000");
  test::MoveVersions(n0.worker_socket(), n1.worker_socket(), 1, 2);
  // A file that it may not read is refused by name.
  const std::string secret = folder.path() + "/secret.key";
  REQUIRE(test::WriteWholeFile(secret, "x"));
  REQUIRE(::chmod(secret.c_str(), 0600) == 0);
  DaemonProcess locked_out(
      {folder.path(),
       "n2",
       AddressOf(n0),
       absl::StrCat("tls: {cert: ", n0.config(), ", key: ", secret, ", ca: ", n0.config(), "}"),
       {},
       {},
       "lo",
       binary,
       as_nobody});
  REQUIRE(locked_out.Start());
  REQUIRE(locked_out.Ends() == Exited(1));
  REQUIRE(absl::StrContains(locked_out.Log(),
                            absl::StrCat(secret, " cannot be read: Permission denied")));
}

}  // namespace
}  // namespace wb
