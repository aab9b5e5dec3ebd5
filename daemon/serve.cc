#include "daemon/serve.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <sys/random.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "daemon/daemon.h"
#include "daemon/data_interface.h"
#include "daemon/log/log_setup.h"
#include "daemon/notify.h"
#include "daemon/options.h"
#include "daemon/tls_setup.h"
#include "planner/base/descriptor_limit.h"
#include "transport/ucx/ucx_environment.h"

namespace wb {
namespace {

enum ExitCode : int { kDone = 0, kFailed = 1, kRefused = 2, kUsage = 3 };

std::string Variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread runs yet
  return value == nullptr ? "" : value;
}

std::string DefaultRunDir() {
  const std::string user = Variable("XDG_RUNTIME_DIR");
  return user.empty() ? "/run/weightbridge" : user + "/weightbridge";
}

std::uint64_t RandomBits() {
  std::uint64_t bits = 0;
  // The kernel's pool cannot be short of 8 bytes once it is up; without it there is no identity.
  if (::getrandom(&bits, sizeof(bits), 0) != static_cast<ssize_t>(sizeof(bits))) std::abort();
  return bits;
}

DaemonIdentity DrawIdentity() {
  using std::chrono::microseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  DaemonIdentity identity;
  identity.incarnation = Incarnation(RandomBits() | 1);  // 0 means none
  identity.term =
      Term(static_cast<std::uint64_t>(std::chrono::duration_cast<microseconds>(now).count()));
  identity.software = WB_VERSION;
  identity.host = host.data();
  identity.pid = ::getpid();
  identity.new_session_id = [] {
    return absl::StrFormat("%016x%016x", RandomBits(), RandomBits());
  };
  return identity;
}

/// What main waits for; blocked before the first thread, so that no other one takes them.
sigset_t BlockSignals() {
  TakeBackUcxSignals();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a log at its limit is as one on a full disk
  return signals;
}

void Notify(const std::string& socket, const std::string& state) {
  if (socket.empty()) return;
  const absl::Status told = NotifyServiceManager(socket, state);
  if (!told.ok()) spdlog::warn("{}", told.ToString());
}

std::string ReadyState(const Daemon& daemon) {
  std::string state = absl::StrCat("READY=1\nMAINPID=", ::getpid(),
                                   "\nX_WB_LEADER=", daemon.leader_address().ToString());
  if (daemon.control_address().has_value()) {
    absl::StrAppend(&state, "\nX_WB_CONTROL=", daemon.control_address()->ToString());
  }
  return state;
}

ExitCode CheckConfig(const DaemonOptions& options) {
  const absl::Status usable = CheckDataInterface(options.data_interface, options.data_insecure);
  const absl::Status tls = LoadTls(options).status();
  for (const absl::Status* one : {&usable, &tls}) {
    if (!one->ok()) std::cerr << one->message() << "\n";
  }
  if (!usable.ok() || !tls.ok()) return kRefused;
  std::cout << "weightbridged: the configuration of node " << options.node << " is good\n";
  return kDone;
}

/// The signal that ends us. SIGHUP is none: who sends it means a configuration that is read again,
/// or has closed the terminal we were started from.
int AwaitEnd(const sigset_t& signals) {
  while (true) {
    int caught = 0;
    if (sigwait(&signals, &caught) != 0) continue;
    if (caught != SIGHUP) return caught;
    spdlog::info("SIGHUP: nothing is read again, a restart reads the configuration");
  }
}

ExitCode Serve(const DaemonOptions& options, const DaemonSeams& seams) {
  const sigset_t signals = BlockSignals();
  RaiseDescriptorLimit();
  const std::string notify_socket = Variable("NOTIFY_SOCKET");
  // A shell's UCX_* are for the programs it was set up for; every setting of ours is pinned. Before
  // the first thread: this changes the environment.
  const std::vector<std::string> dropped = DropInheritedUcxVariables();
  SetUpLog(options.log_level, options.log_json);
  if (!dropped.empty()) {
    spdlog::warn("node={} dropped from the environment: {}", options.node,
                 absl::StrJoin(dropped, ", "));
  }
  DaemonIdentity identity = DrawIdentity();
  identity.tell = [&notify_socket](const std::string& line) {
    Notify(notify_socket, "STATUS=" + line);
  };
  absl::StatusOr<std::unique_ptr<Daemon>> daemon =
      Daemon::Start(options, std::move(identity), seams);
  if (!daemon.ok()) {
    spdlog::error("node={} cannot start: {}", options.node, daemon.status().ToString());
    return kFailed;
  }
  spdlog::info("node={} version={} pid={} ready", options.node, WB_VERSION, ::getpid());
  Notify(notify_socket, ReadyState(**daemon));
  const int caught = AwaitEnd(signals);
  spdlog::info("node={} signal={} draining", options.node, caught);
  Notify(notify_socket, "STOPPING=1\nSTATUS=draining");
  (*daemon)->Drain(options.timeouts_drain);
  daemon->reset();
  spdlog::info("node={} stopped", options.node);
  return kDone;
}

ExitCode Main(int argc, char** argv, const DaemonSeams& seams) {
  CLI::App app{"weightbridged: moves model weights between the nodes of a training job"};
  app.set_version_flag("--version", std::string("weightbridged ") + WB_VERSION);
  std::string config;
  bool check_only = false;
  app.add_option("--config", config, "configuration file (YAML)")->required();
  app.add_flag("--check-config", check_only, "check the configuration and exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, std::cout, std::cerr) == 0 ? kDone : kUsage;
  }
  const absl::StatusOr<DaemonOptions> options = LoadOptions(config, DefaultRunDir());
  if (!options.ok()) {
    std::cerr << options.status().message() << "\n";
    return kRefused;
  }
  return check_only ? CheckConfig(*options) : Serve(*options, seams);
}

}  // namespace

int RunDaemon(int argc, char** argv, const DaemonSeams& seams) {
  KeepStandardDescriptors();
  try {
    return Main(argc, argv, seams);
  } catch (const std::exception& error) {
    std::cerr << "weightbridged: " << error.what() << "\n";
    return kFailed;
  }
}

}  // namespace wb
