// The cluster and ops doors under mutual TLS: who may come in, and what is said to those who may
// not.

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weightbridge/v1/status.grpc.pb.h"

#include "proto/v1.h"
#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/support/whole_file.h"
#include "tests/system/daemon_process.h"
#include "tests/system/daemon_talk.h"
#include "tests/system/tensor_worker.h"

namespace wb {
namespace {

using test::AddressOf;
using test::AskDaemon;
using test::Authority;
using test::BinaryOf;
using test::DaemonProcess;
using test::Exited;
using test::kListen;
using test::LogShows;
using test::Slack;
using test::StatusBecomes;
using test::TempFolder;
using test::WaitsShow;
using namespace std::chrono_literals;

constexpr const char* kQuick = "timeouts: {peer: 2s}\n";

/// A daemon that is to be refused, and where that shows.
struct Bad {
  std::string node;
  std::string tls;          // of its configuration
  std::string its_waits;    // in its own status and log
  std::string leaders_log;  // empty: the leader cannot know
};

TEST_CASE("Daemons that are not of the cluster are refused by name, the others serve on",
          "[system][tls]") {
  const TempFolder folder;
  const Authority ours("our CA");
  const Authority other("other CA");
  ours.Issue("n0", "IP:127.0.0.1,DNS:lead.cluster");
  ours.Issue("n1", "DNS:n1.cluster");
  ours.Issue("late", "DNS:late", Authority::Valid::kExpired);
  other.Issue("stranger", "IP:127.0.0.1");
  DaemonProcess leader({folder.path(), "n0", kListen, kQuick + ours.Yaml("n0")});
  REQUIRE(leader.Start());
  REQUIRE(leader.Ready());
  const std::string address = AddressOf(leader);
  const std::vector<Bad> bads = {
      {"stranger", other.Yaml("stranger", ours), "CN=stranger (127.0.0.1), issued by CN=other CA",
       "tls: a client is refused: certificate CN=stranger (127.0.0.1), issued by CN=other CA"},
      {"distrustful", ours.Yaml("n1", other),
       "the leader is not trusted: certificate CN=n0 (127.0.0.1, lead.cluster), issued by "
       "CN=our CA",
       ""},
      {"late", ours.Yaml("late"), "certificate has expired",
       "tls: a client is refused: certificate CN=late (late), issued by CN=our CA"},
      {"plain", "", "this daemon has no tls: does the leader want it?", "grpc: Handshake failed"},
      {"misnamed", ours.Yaml("n1", ours, "leader_name: other.cluster"),
       "CN=n0 (127.0.0.1, lead.cluster) is not for other.cluster", ""},
  };
  std::vector<std::unique_ptr<DaemonProcess>> refused;
  for (const Bad& bad : bads) {
    refused.push_back(std::make_unique<DaemonProcess>(
        DaemonProcess::Options{folder.path(), bad.node, address, kQuick + bad.tls}));
    REQUIRE(refused.back()->Start());
  }
  DaemonProcess good(
      {folder.path(), "n1", address, kQuick + ours.Yaml("n1", ours, "leader_name: lead.cluster")});
  REQUIRE(good.Start());
  REQUIRE(good.Ready());
  for (std::size_t i = 0; i < bads.size(); ++i) {
    CAPTURE(bads[i].node, refused[i]->Log(), leader.Log());
    REQUIRE(refused[i]->Ready());  // its doors are open, to say what is wrong
    CHECK(WaitsShow(folder, *refused[i], bads[i].its_waits));
    CHECK(LogShows(*refused[i], bads[i].its_waits));
    CHECK(LogShows(leader, bads[i].leaders_log));
    CHECK(AskDaemon(folder, "status", *refused[i]).at("leader_connected") == false);
    CHECK_FALSE(absl::StrContains(leader.Log(), absl::StrCat("node=", bads[i].node, " attached")));
  }
  REQUIRE(StatusBecomes(folder, good, "leader_connected", true, 10s));
  test::MoveVersions(leader.worker_socket(), good.worker_socket(), 1, 1);
  test::MoveVersions(good.worker_socket(), leader.worker_socket(), 2, 2);
  for (const auto& one : refused) one->Signal(SIGTERM);
  for (const auto& one : refused) CHECK(one->Ends() == Exited(0));
  REQUIRE(AskDaemon(folder, "status", good).at("leader_connected") == true);
}

TEST_CASE("A leader that is out of date or speaks no TLS is refused by those that dial it",
          "[system][tls]") {
  const TempFolder folder;
  const Authority ours("our CA");
  ours.Issue("n1", "DNS:n1.cluster");
  ours.Issue("late", "IP:127.0.0.1", Authority::Valid::kExpired);
  const bool tls = GENERATE(true, false);
  DaemonProcess leader({folder.path(), "n0", kListen, kQuick + (tls ? ours.Yaml("late") : "")});
  REQUIRE(leader.Start());
  REQUIRE(leader.Ready());
  DaemonProcess daemon({folder.path(), "n1", AddressOf(leader), kQuick + ours.Yaml("n1")});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  const std::string why = tls ? "the leader is not trusted: certificate CN=late (127.0.0.1)"
                              : "the leader speaks no TLS, and this daemon has tls";
  REQUIRE(WaitsShow(folder, daemon, why));
  REQUIRE(LogShows(daemon, why));
  if (tls) {
    // It says so at once, and its own daemon does not take it either.
    REQUIRE(LogShows(leader, "tls: peers will refuse us"));
    REQUIRE(WaitsShow(folder, leader, "certificate has expired"));
  } else {
    REQUIRE(StatusBecomes(folder, leader, "leader_connected", true, 5s));
  }
}

TEST_CASE("A refused daemon that tries again and again says it once", "[system][tls]") {
  const TempFolder folder;
  const Authority ours("our CA");
  ours.Issue("n0", "IP:127.0.0.1");
  ours.Issue("late", "DNS:late", Authority::Valid::kExpired);
  DaemonProcess leader({folder.path(), "n0", kListen, ours.Yaml("n0")});
  REQUIRE(leader.Start());
  REQUIRE(leader.Ready());
  DaemonProcess late({folder.path(), "late", AddressOf(leader), ours.Yaml("late")});
  REQUIRE(late.Start());
  REQUIRE(late.Ready());
  // With waits of 50 ms that double, five tries are over within two seconds.
  const auto count = [&leader] {
    const std::string log = leader.Log();
    std::size_t found = 0;
    for (std::size_t at = log.find("is refused"); at != std::string::npos;
         at = log.find("is refused", at + 1)) {
      ++found;
    }
    return found;
  };
  REQUIRE(LogShows(leader, "is refused"));
  DaemonProcess second({folder.path(), "later", AddressOf(leader), ours.Yaml("late")});
  REQUIRE(second.Start());
  REQUIRE(second.Ready());
  REQUIRE(WaitsShow(folder, second, "certificate has expired"));
  REQUIRE(count() == 1);
}

TEST_CASE("A client that shows no certificate is refused before it can say anything",
          "[system][tls]") {
  const TempFolder folder;
  const Authority ours;
  ours.Issue("n0", "IP:127.0.0.1");
  DaemonProcess leader(
      {folder.path(), "n0", kListen, "control: {listen: '127.0.0.1:0'}\n" + ours.Yaml("n0")});
  REQUIRE(leader.Start());
  REQUIRE(leader.Ready());
  grpc::SslCredentialsOptions only_ca;
  only_ca.pem_root_certs = test::ReadWholeFile(ours.ca());
  for (const char* door : {"X_WB_LEADER", "X_WB_CONTROL"}) {
    const auto stub = v1::StatusService::NewStub(
        grpc::CreateChannel(leader.Said(door), grpc::SslCredentials(only_ca)));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + Slack(5s));
    v1::StatusReply reply;
    const grpc::Status status = stub->GetStatus(&context, {}, &reply);
    CAPTURE(door, status.error_message());
    REQUIRE(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  }
  REQUIRE(LogShows(leader, "peer did not return a certificate"));
  REQUIRE(AskDaemon(folder, "status", leader).at("node") == "n0");
}

TEST_CASE("Identities that cannot be used stop the check and the start", "[system][tls]") {
  const TempFolder folder;
  const Authority ours;
  ours.Issue("n0", "IP:127.0.0.1");
  ours.Issue("nameless", "");
  REQUIRE(::chmod(ours.key("n0").c_str(), 0644) == 0);
  struct Case {
    std::string tls;
    std::string text;
  };
  const std::vector<Case> cases = {
      {ours.Yaml("n0"), absl::StrCat("tls.key: ", ours.key("n0"), " has mode 0644")},
      {ours.Yaml("none"), absl::StrCat("tls.cert: ", ours.cert("none"), " cannot be read")},
      {ours.Yaml("nameless"), "nameless.crt has no names (subjectAltName)"},
      {ours.Yaml("nameless", ours, "leader_name: x"), "has no names (subjectAltName)"},
  };
  for (const Case& one : cases) {
    DaemonProcess daemon({folder.path(), "n0", kListen, one.tls});
    const test::Finished checked = test::RunProgram(
        folder.path(), {BinaryOf("weightbridged"), "--config", daemon.config(), "--check-config"});
    CAPTURE(one.tls, checked.output);
    CHECK(checked.code == 2);
    CHECK(absl::StrContains(checked.output, one.text));
    REQUIRE(daemon.Start());
    CHECK(daemon.Ends() == Exited(1));
    CHECK(absl::StrContains(daemon.Log(), one.text));
  }
}

TEST_CASE("wbctl asks over TCP with a certificate of the cluster", "[system][tls]") {
  const TempFolder folder;
  const Authority ours;
  const Authority other;
  ours.Issue("n0", "IP:127.0.0.1,DNS:lead.cluster");
  ours.Issue("admin", "DNS:admin");
  other.Issue("admin", "DNS:admin");
  DaemonProcess leader(
      {folder.path(), "n0", kListen, "control: {listen: '127.0.0.1:0'}\n" + ours.Yaml("n0")});
  REQUIRE(leader.Start());
  REQUIRE(leader.Ready());
  const auto ask = [&](const std::string& daemon, const std::vector<std::string>& more) {
    std::vector<std::string> argv = {BinaryOf("wbctl"), "status", "--daemon", daemon};
    argv.insert(argv.end(), more.begin(), more.end());
    return test::RunProgram(folder.path(), argv);
  };
  const auto with = [](const Authority& of, const std::string& ca) {
    return std::vector<std::string>{"--tls-cert",    of.cert("admin"), "--tls-key",
                                    of.key("admin"), "--tls-ca",       ca};
  };
  const std::string door = leader.Said("X_WB_CONTROL");
  const std::string port = door.substr(door.rfind(':'));
  const test::Finished fine = ask(door, with(ours, ours.ca()));
  CAPTURE(fine.output);
  REQUIRE(fine.code == 0);
  REQUIRE(absl::StrContains(fine.output, "node      n0"));
  std::vector<std::string> named = with(ours, ours.ca());
  named.insert(named.end(), {"--tls-name", "lead.cluster"});
  REQUIRE(ask(door, named).code == 0);
  named.back() = "other.cluster";
  REQUIRE(ask(door, named).code == 1);
  const test::Finished stranger = ask(door, with(other, ours.ca()));
  REQUIRE(stranger.code == 1);
  REQUIRE(ask(door, with(ours, other.ca())).code == 1);
  const test::Finished plain = ask(door, {});
  REQUIRE(plain.code == 1);
  REQUIRE(absl::StrContains(plain.output, "does it want TLS?"));
  const test::Finished far = ask("192.0.2.1" + port, {});
  REQUIRE(far.code == 3);
  REQUIRE(absl::StrContains(far.output, "nothing else is asked without TLS"));
  const test::Finished half = ask(door, {"--tls-ca", ours.ca()});
  REQUIRE(half.code == 3);
  REQUIRE(absl::StrContains(half.output, "or none of them"));
}

}  // namespace
}  // namespace wb
