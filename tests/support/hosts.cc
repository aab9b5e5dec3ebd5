#include "tests/support/hosts.h"

#include <chrono>
#include <filesystem>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/run_to_end.h"
#include "tests/support/time_slack.h"

namespace wb::test {
namespace {

constexpr const char* kIp = "/usr/sbin/ip";
constexpr const char* kTc = "/usr/sbin/tc";  // of the same package

ProgramEnd RunIp(const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {kIp};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return RunToEnd(argv, {}, Slack(std::chrono::seconds(10)));
}

}  // namespace

Hosts::Hosts(std::size_t count) : prefix_("wb-" + std::to_string(::getpid()) + "-") {
  if (::geteuid() != 0) {
    missing_ = "the tests are not run by root, who alone makes network namespaces";
  } else if (!std::filesystem::exists(kIp)) {
    missing_ = std::string("there is no ") + kIp + " (package iproute2)";
  } else {
    Make(count);
  }
}

Hosts::~Hosts() {
  for (const std::string& name : made_) static_cast<void>(RunIp({"netns", "delete", name}));
}

bool Hosts::Run(const std::vector<std::string>& arguments) {
  const ProgramEnd end = RunIp(arguments);
  if (end.exit_code == 0) return true;
  missing_ = "ip";
  for (const std::string& argument : arguments) missing_ += " " + argument;
  missing_ += ": " + end.err;
  return false;
}

bool Hosts::Make(std::size_t count) {
  const std::string middle = prefix_ + "bridge";
  if (!Run({"netns", "add", middle})) return false;
  made_.push_back(middle);
  if (!Run({"-n", middle, "link", "add", "br0", "type", "bridge"})) return false;
  if (!Run({"-n", middle, "link", "set", "br0", "up"})) return false;
  for (std::size_t host = 0; host < count; ++host) {
    const std::string name = NameOf(host);
    const std::string port = "port" + std::to_string(host);
    if (!Run({"netns", "add", name})) return false;
    made_.push_back(name);
    const bool joined =
        Run({"-n", name, "link", "set", "lo", "up"}) &&
        Run({"-n", name, "link", "add", kInterface, "type", "veth", "peer", "name", port, "netns",
             middle}) &&
        Run({"-n", middle, "link", "set", port, "master", "br0", "up"}) &&
        Run({"-n", name, "address", "add", AddressOf(host) + "/24", "dev", kInterface}) &&
        Run({"-n", name, "link", "set", kInterface, "up"});
    if (!joined) return false;
  }
  return true;
}

std::string Hosts::NameOf(std::size_t host) const {
  return prefix_ + std::to_string(host);
}

std::string Hosts::AddressOf(std::size_t host) {
  return "10.77.0." + std::to_string(host + 1);
}

std::vector<std::string> Hosts::On(std::size_t host) const {
  return {kIp, "netns", "exec", NameOf(host)};
}

std::string Hosts::Ip(std::size_t host, const std::vector<std::string>& arguments) const {
  std::vector<std::string> all = {"-n", NameOf(host)};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const ProgramEnd end = RunIp(all);
  CAPTURE(all, end.err);
  REQUIRE(end.exit_code == 0);
  return end.out;
}

std::string Hosts::Tc(std::size_t host, const std::vector<std::string>& arguments) const {
  std::vector<std::string> argv = {kTc, "-n", NameOf(host)};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const ProgramEnd end = RunToEnd(argv, {}, Slack(std::chrono::seconds(10)));
  return end.exit_code == 0 ? "" : "failed: " + end.err;
}

std::uint64_t Hosts::SentBytes(std::size_t host) const {
  const nlohmann::json shown =
      nlohmann::json::parse(Ip(host, {"-j", "-s", "link", "show", kInterface}));
  return shown.at(0).at("stats64").at("tx").at("bytes").get<std::uint64_t>();
}

}  // namespace wb::test
