#include "tests/system/daemon_process.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/time_slack.h"
#include "tests/support/whole_file.h"

namespace wb::test {
namespace {

FdHandle BindNotify(const std::string& path) {
  ::unlink(path.c_str());
  FdHandle socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) throw std::runtime_error(path + " is too long");
  std::memcpy(address.sun_path, path.data(), path.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::runtime_error("cannot bind " + path);
  }
  return socket;
}

bool Readable(int fd, std::chrono::milliseconds bound) {
  pollfd waited{fd, POLLIN, 0};
  return ::poll(&waited, 1, static_cast<int>(Slack(bound).count())) > 0;
}

}  // namespace

std::string BinaryOf(const std::string& name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

std::string AddressOf(const DaemonProcess& leader) {
  return "address: '" + leader.Said("X_WB_LEADER") + "'";
}

DaemonProcess::DaemonProcess(Options options)
    : options_(std::move(options)),
      config_(options_.folder + "/" + options_.node + ".yaml"),
      log_(options_.folder + "/" + options_.node + ".log"),
      notify_path_(options_.folder + "/" + options_.node + ".notify") {
  std::ofstream(config_) << "node: " << options_.node << "\nrun_dir: " << run_dir() << "\nleader: {"
                         << options_.leader
                         << "}\ndata: {interface: " << options_.interface << ", transports: ["
                         << options_.transports << "]}\n"
                         << options_.more;
}

bool DaemonProcess::Start(int control_fd) {
  child_.reset();
  said_.clear();
  std::filesystem::remove(log_);  // a child adds to it
  notify_ = BindNotify(notify_path_);
  std::vector<std::string> environment = options_.environment;
  environment.push_back("NOTIFY_SOCKET=" + notify_path_);
  std::vector<std::string> argv = options_.prefix;
  argv.push_back(options_.binary.empty() ? BinaryOf("weightbridged") : options_.binary);
  argv.insert(argv.end(), {"--config", config_});
  ::chmod(notify_path_.c_str(), 0777);  // the daemon may run as another user
  absl::StatusOr<Child> child = Child::Start({.name = options_.node,
                                              .argv = std::move(argv),
                                              .environment = std::move(environment),
                                              .log = log_,
                                              .control_fd = control_fd});
  if (!child.ok()) return false;
  child_.emplace(*std::move(child));
  return true;
}

bool DaemonProcess::Ready(std::chrono::milliseconds bound) {
  return Says("READY", "1", bound);
}

bool DaemonProcess::Says(const std::string& name,
                         const std::string& value,
                         std::chrono::milliseconds bound) {
  const auto deadline = std::chrono::steady_clock::now() + Slack(bound);
  while (Said(name) != value) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waited{notify_.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waited, 1, static_cast<int>(left.count())) <= 0) return false;
    std::array<char, 4096> text{};
    const ssize_t got = ::recv(notify_.get(), text.data(), text.size(), 0);
    if (got <= 0) return false;
    said_.insert(0, std::string(text.data(), static_cast<std::size_t>(got)) + "\n");
  }
  return true;
}

std::string DaemonProcess::Said(const std::string& name) const {
  std::istringstream lines(said_);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name + "=", 0) == 0) return line.substr(name.size() + 1);
  }
  return "";
}

std::string DaemonProcess::Ends(std::chrono::milliseconds bound) {
  if (!Readable(child_->pidfd(), bound)) return "runs";
  return child_->Ended();
}

std::string DaemonProcess::Log() const {
  return ReadWholeFile(log_);
}

Finished RunProgram(const std::string& folder,
                    const std::vector<std::string>& argv,
                    std::chrono::milliseconds bound) {
  const std::string log = folder + "/program.log";
  std::filesystem::remove(log);  // a child adds to it
  absl::StatusOr<Child> child =
      Child::Start({.name = argv.front(), .argv = argv, .environment = {}, .log = log});
  if (!child.ok()) return {};
  if (!Readable(child->pidfd(), bound)) return {};
  const std::string ended = child->Ended();
  const std::string exited = "exited with code ";
  const int code = ended.rfind(exited, 0) == 0 ? std::stoi(ended.substr(exited.size())) : -1;
  return {code, ReadWholeFile(log)};
}

}  // namespace wb::test
