#include "daemon/options.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "daemon/data_interface.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

namespace wb {
namespace {

const char* const kLeast = "node: n0\nleader: {listen: '127.0.0.1:0'}\ndata: {interface: lo}\n";

absl::StatusOr<DaemonOptions> Parse(const std::string& yaml) {
  return ParseOptions(yaml, "f.yaml", "/run/weightbridge");
}

TEST_CASE("The least configuration has the defaults that the example shows", "[options]") {
  const absl::StatusOr<DaemonOptions> options = Parse(kLeast);
  CAPTURE(options.status().ToString());
  REQUIRE(options.ok());
  REQUIRE(options->node == "n0");
  REQUIRE(options->run_dir == "/run/weightbridge");
  REQUIRE(options->leader_listen == TcpAddress{"127.0.0.1", 0});
  REQUIRE_FALSE(options->leader_address.has_value());
  REQUIRE(options->leader_min_groups == 1);
  REQUIRE(options->leader_retire_after == 3);
  REQUIRE(options->limits_memory_bytes == 1ULL << 40);
  REQUIRE(options->limits_workers == 64);
  REQUIRE(options->limits_message_bytes == 256ULL << 20);
  REQUIRE(options->timeouts_drain == std::chrono::seconds(5));
  REQUIRE(options->timeouts_start == std::chrono::seconds(10));
  REQUIRE(options->timeouts_peer == std::chrono::seconds(5));
  REQUIRE(options->timeouts_rejoin == std::chrono::seconds(10));
  REQUIRE(options->timeouts_decision == std::chrono::seconds(5));
  REQUIRE(options->integrity_wire);
  REQUIRE(options->log_level == "info");
}

TEST_CASE("The transports are a word or a list", "[options]") {
  for (const auto& [text, wanted] :
       std::vector<std::pair<std::string, std::string>>{{"tcp", "tcp"},
                                                        {"shm", "shm"},
                                                        {"auto", "auto"},
                                                        {"[tcp]", "tcp"},
                                                        {"[shm]", "shm"},
                                                        {"[tcp, shm]", "auto"}}) {
    const absl::StatusOr<DaemonOptions> options = Parse(
        "node: n0\nleader: {listen: '127.0.0.1:0'}\ndata: {interface: lo, transports: " + text +
        "}");
    CAPTURE(text, options.status().ToString());
    REQUIRE(options.ok());
    REQUIRE(options->data_transports == wanted);
  }
}

TEST_CASE("Every key is read", "[options]") {
  const absl::StatusOr<DaemonOptions> options = Parse(R"(
node: node-7.rack_2
run_dir: /tmp/x
control: {listen: "[::1]:7071"}
leader: {address: localhost:7070, min_groups: 2, retire_after: 0}
data: {interface: eth0, transports: [tcp], insecure: true}
limits: {memory_bytes: 1000, workers: 3, message_bytes: 100000}
timeouts: {drain: 500ms, start: 1s, peer: 3600s, rejoin: 2s, decision: 3s}
integrity: off
copy_threads: 4
log: {level: debug, format: json}
)");
  CAPTURE(options.status().ToString());
  REQUIRE(options.ok());
  REQUIRE(options->node == "node-7.rack_2");
  REQUIRE(options->run_dir == "/tmp/x");
  REQUIRE(options->control_listen == TcpAddress{"::1", 7071});
  REQUIRE(options->leader_address == TcpAddress{"127.0.0.1", 7070});
  REQUIRE(options->leader_min_groups == 2);
  REQUIRE(options->leader_retire_after == 0);
  REQUIRE(options->data_interface == "eth0");
  REQUIRE(options->data_insecure);
  REQUIRE(options->limits_memory_bytes == 1000);
  REQUIRE(options->limits_workers == 3);
  REQUIRE(options->limits_message_bytes == 100'000);
  REQUIRE(options->timeouts_drain == std::chrono::milliseconds(500));
  REQUIRE(options->timeouts_peer == std::chrono::hours(1));
  REQUIRE(options->timeouts_rejoin == std::chrono::seconds(2));
  REQUIRE(options->timeouts_decision == std::chrono::seconds(3));
  REQUIRE_FALSE(options->integrity_wire);
  REQUIRE(options->copy_threads == 4);
  REQUIRE(options->log_json);
}

TEST_CASE("With TLS any address is listened on and dialled", "[options][tls]") {
  const absl::StatusOr<DaemonOptions> options = Parse(R"(
node: n0
leader: {listen: "0.0.0.0:7070"}
control: {listen: "10.0.0.7:7071"}
data: {interface: eth0}
tls: {cert: /a, key: /b, ca: /c, leader_name: lead.cluster}
)");
  CAPTURE(options.status().ToString());
  REQUIRE(options.ok());
  REQUIRE(options->has_tls());
  REQUIRE(options->tls == TlsFiles{"/a", "/b", "/c"});
  REQUIRE(options->tls_leader_name == "lead.cluster");
  REQUIRE(options->leader_listen == TcpAddress{"0.0.0.0", 7070});
  REQUIRE_FALSE(Parse(kLeast)->has_tls());
}

struct Refused {
  std::string yaml;
  const char* text;  // in the refusal
};

TEST_CASE("What is wrong is refused with its line and key", "[options]") {
  const std::string least = kLeast;
  const std::vector<Refused> cases = {
      {"", "f.yaml:1: the file: is no map"},
      {"- a\n", "f.yaml:1: the file: is no map"},
      {"node: [", "f.yaml:1: is no YAML"},
      {"node: n0\n\tleader: x", "is no YAML"},
      {"leader: {listen: '127.0.0.1:0'}\ndata: {interface: lo}", "f.yaml: node: is missing"},
      {"node: n0\nleader: {listen: '127.0.0.1:0'}", "f.yaml: data.interface: is missing"},
      {"node: n0\ndata: {interface: lo}", "f.yaml: leader: has neither listen nor address"},
      {least + "nodes: 3", "f.yaml:4: nodes: is no key of this file"},
      {least + "limits:\n  worker: 3", "f.yaml:5: limits.worker: is no key of this file"},
      {least + "node: n1", "f.yaml:4: node: is there twice"},
      {least + "limits.workers: 3", "f.yaml:4: limits.workers: is no key of this file"},
      {least + "run_dir: \"/run\\0x\"", "f.yaml:4: run_dir: '/run?x', want printable characters"},
      {least + "limits:\n  workers: 1\n  workers: 2", "f.yaml:6: limits.workers: is there twice"},
      {least + "limits: 3", "f.yaml:4: limits: is no map"},
      {least + "limits:\n  workers: many", "f.yaml:5: limits.workers: 'many', want an integer"},
      {least + "limits:\n  workers: '8'", "f.yaml:5: limits.workers: '8', want an integer"},
      {least + "limits:\n  workers: -1", "limits.workers: '-1', want an integer from 1 to 4096"},
      {least + "limits:\n  workers: 5000", "want an integer from 1 to 4096"},
      {least + "limits:\n  workers: 1.5", "want an integer"},
      {least + "limits:\n  workers: [1]", "limits.workers: is no single value"},
      {least + "limits:\n  workers:", "limits.workers: has no value"},
      {least + "limits:\n  memory_bytes: 4GiB", "limits.memory_bytes: '4GiB', want an integer"},
      {least + "limits:\n  memory_bytes: 99999999999999999999", "want an integer"},
      {least + "timeouts: {drain: 10}", "timeouts.drain: '10', want a time"},
      {least + "timeouts: {drain: 10m}", "timeouts.drain: '10m', want a time"},
      {least + "timeouts: {drain: 1ms}", "timeouts.drain: '1ms', want a time from 100ms"},
      {least + "timeouts: {drain: 99999999999999999s}", "want a time"},
      {least + "integrity: all", "integrity: 'all', want off, wire"},
      {least + "copy_threads: 0", "copy_threads: '0', want an integer from 1 to 64"},
      {least + "log: {level: loud}", "log.level: 'loud', want trace, debug, info, warn, error"},
      {least + "log: {format: xml}", "log.format: 'xml', want text, json"},
      {least + "timeouts: {peer: 399ms}",
       "timeouts.peer: '399ms', want a time from 400ms to 3600s"},
      {least + "run_dir: ''", "run_dir: is empty"},
      {"node: a b\nleader: {listen: '127.0.0.1:0'}\ndata: {interface: lo}",
       "f.yaml:1: node: 'a b', want [A-Za-z0-9._-]+"},
      {"node: n0\nleader: {listen: '10.0.0.1:7070'}\ndata: {interface: lo}",
       "leader.listen: '10.0.0.1:7070', want a loopback address"},
      {"node: n0\nleader: {address: '10.0.0.1:7070'}\ndata: {interface: lo}",
       "leader.address: '10.0.0.1:7070', want a loopback address"},
      {"node: n0\nleader: {address: '127.0.0.1:0'}\ndata: {interface: lo}",
       "leader.address: has port 0"},
      {"node: n0\nleader: {address: '127.0.0.1:1', listen: '127.0.0.1:0'}\ndata: {interface: lo}",
       "leader: has listen and address"},
      {least + "control: {listen: '0.0.0.0:1'}", "control.listen: '0.0.0.0:1', want a loopback"},
      {least + "tls: {cert: /a}", "f.yaml: tls: has no key and no ca, want cert, key and ca"},
      {least + "tls: {cert: /a, key: /b}", "f.yaml: tls: has no ca, want cert, key and ca"},
      {least + "tls: {leader_name: n0}", "f.yaml: tls: has no cert and no key and no ca"},
      {least + "tls: {cert: '', key: /b, ca: /c}", "f.yaml:4: tls.cert: is empty"},
      {"node: n0\nleader: {address: '0.0.0.0:7070'}\ndata: {interface: lo}\n"
       "tls: {cert: /a, key: /b, ca: /c}",
       "leader.address: '0.0.0.0:7070' is every address of a node"},
      {least + "metrics: {listen: '127.0.0.1:1'}", "metrics.listen: /metrics is not in this build"},
      {"node: n0\nleader: {listen: '127.0.0.1:0'}\ndata: {interface: lo, transports: [rdma]}",
       "data.transports: 'rdma', want tcp, shm"},
      {"node: n0\nleader: {listen: '127.0.0.1:0'}\ndata: {interface: lo, transports: []}",
       "data.transports: is empty"},
      {"node: n0\nleader: {listen: '127.0.0.1:0'}\ndata: {interface: lo, insecure: maybe}",
       "data.insecure: 'maybe', want true or false"},
  };
  for (const Refused& bad : cases) {
    const absl::StatusOr<DaemonOptions> options = Parse(bad.yaml);
    CAPTURE(bad.yaml, options.status().ToString());
    CHECK(options.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(options.status().message(), bad.text));
  }
}

TEST_CASE("Every reason is named at once, one a line", "[options]") {
  const absl::Status status = Parse("nod: 1\ncopy_threads: 0\nlog: {level: loud}").status();
  REQUIRE(status.message() ==
          "f.yaml:1: nod: is no key of this file\n"
          "f.yaml:2: copy_threads: '0', want an integer from 1 to 64\n"
          "f.yaml:3: log.level: 'loud', want trace, debug, info, warn, error");
}

TEST_CASE("The example that is shipped is a good configuration", "[options]") {
  const absl::StatusOr<DaemonOptions> options =
      LoadOptions(WB_SOURCE_DIR "/deploy/weightbridged.yaml", "/run/weightbridge");
  CAPTURE(options.status().ToString());
  REQUIRE(options.ok());
}

TEST_CASE("A file that is not there or too large is refused", "[options]") {
  const test::TempFolder dir;
  REQUIRE(absl::StrContains(LoadOptions(dir.path() + "/none", "").status().message(),
                            "cannot be read"));
  std::ofstream(dir.path() + "/large") << std::string((1 << 20) + 1, ' ');
  REQUIRE(absl::StrContains(LoadOptions(dir.path() + "/large", "").status().message(),
                            "has more than 1048576 bytes"));
  // Nor does one that nobody writes to make the start wait.
  REQUIRE(::mkfifo((dir.path() + "/fifo").c_str(), 0600) == 0);
  REQUIRE(absl::StrContains(LoadOptions(dir.path() + "/fifo", "").status().message(),
                            "is no regular file"));
}

TEST_CASE("Two doors do not share a port", "[options]") {
  const auto parse = [](const std::string& control, const std::string& leader) {
    return Parse("node: n0\ncontrol: {listen: '" + control + "'}\nleader: {listen: '" + leader +
                 "'}\ndata: {interface: lo}\n");
  };
  REQUIRE(absl::StrContains(parse("127.0.0.1:7070", "localhost:7070").status().message(),
                            "control.listen: '127.0.0.1:7070' is leader.listen as well"));
  REQUIRE(parse("127.0.0.1:0", "127.0.0.1:0").ok());
  REQUIRE(parse("127.0.0.1:7071", "127.0.0.1:7070").ok());
}

TEST_CASE("A second document of a file is not left unread", "[options]") {
  REQUIRE(Parse("node: n0\n---\nnode: n1\n").status().message() ==
          "f.yaml:2: a second document or stray text, want one document");
}

TEST_CASE("Stray text after the document is refused, and reading it ends", "[options]") {
  for (const char* yaml : {"{},", "{a: b} c", "{a: b},", "[],,", "a: 1\n---\n"}) {
    const absl::Status refused = Parse(yaml).status();
    CAPTURE(yaml, refused.ToString());
    CHECK(absl::StrContains(refused.message(), ": a second document or stray text"));
  }
}

TEST_CASE("A run directory too deep for its sockets is refused before the start", "[options]") {
  const auto parse = [](std::size_t bytes) {
    return Parse(absl::StrCat("node: n0\nleader: {listen: '127.0.0.1:0'}\ndata: {interface: lo}\n",
                              "run_dir: /", std::string(bytes - 1, 'r'), "\n"));
  };
  REQUIRE(parse(94).ok());
  REQUIRE(
      absl::StrContains(parse(95).status().message(), "run_dir: has 95 bytes, want at most 94"));
}

TEST_CASE("Weights travel over private interfaces only", "[options]") {
  REQUIRE(CheckDataInterface("lo", false).ok());
  REQUIRE(absl::StrContains(CheckDataInterface("no-such-if0", false).message(),
                            "there is no interface 'no-such-if0'"));
  for (const char* ip : {"127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.0.1", "169.254.1.1",
                         "100.64.0.1", "::1", "fe80::1", "fd00::1"}) {
    CAPTURE(ip);
    CHECK(IsPrivateAddress(ip));
  }
  for (const char* ip : {"8.8.8.8", "172.32.0.1", "100.128.0.1", "2001:db8::1", "", "x"}) {
    CAPTURE(ip);
    CHECK_FALSE(IsPrivateAddress(ip));
  }
}

}  // namespace
}  // namespace wb
