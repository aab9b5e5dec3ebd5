#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace wb::test {

/// Hosts of a test on this machine: network namespaces, each with its own loopback and an interface
/// kInterface (10.77.0.1, 10.77.0.2, ...) into one bridge, which lies in a namespace of its own, so
/// that nothing of the machine's own network is touched. Made with iproute2, by root only; removed
/// at the end with all that is in them.
class Hosts {
 public:
  static constexpr const char* kInterface = "wbe0";

  explicit Hosts(std::size_t count);
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;
  ~Hosts();

  /// Why there are none: not root, no iproute2, or what `ip` says; empty when they are there.
  const std::string& missing() const { return missing_; }
  /// "10.77.0.1" of host 0.
  static std::string AddressOf(std::size_t host);
  /// The command that becomes what follows it, on that host.
  std::vector<std::string> On(std::size_t host) const;
  /// Runs `ip ARGUMENT...` on a host; what it printed. A failure fails the test.
  std::string Ip(std::size_t host, const std::vector<std::string>& arguments) const;
  /// Runs `tc ARGUMENT...` on a host; what it complains of, empty when it is done.
  std::string Tc(std::size_t host, const std::vector<std::string>& arguments) const;
  /// Bytes that have left by a host's interface.
  std::uint64_t SentBytes(std::size_t host) const;

 private:
  bool Run(const std::vector<std::string>& arguments);
  bool Make(std::size_t count);
  std::string NameOf(std::size_t host) const;

  std::string prefix_;  // of the namespaces' names
  std::vector<std::string> made_;
  std::string missing_;
};

}  // namespace wb::test
