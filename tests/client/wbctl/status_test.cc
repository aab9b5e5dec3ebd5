#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "client/wbctl/dial.h"
#include "client/wbctl/status_command.h"
#include "client/wbctl/status_text.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

namespace wb {
namespace {

v1::VersionsReply SomeVersions() {
  v1::VersionsReply reply;
  v1::VersionStatus& version = *reply.add_versions();
  version.set_job("job");
  version.set_version(3);
  version.set_state("failed");
  version.set_label("step 30");
  version.mutable_status()->set_code(10);
  version.mutable_status()->set_message("engine1/0 is gone\nits log: ...");
  version.set_average_stall_ms(12.25);
  v1::DeliveryStatus& delivery = *version.add_deliveries();
  delivery.set_group("engine0");
  delivery.set_state("committed");
  delivery.set_attempt(18'446'744'073'709'551'615ULL);
  delivery.set_bytes_planned(1024);
  (*delivery.mutable_bytes_by_path())["tcp"] = 1000;
  return reply;
}

TEST_CASE("JSON of versions has every field, and integers as numbers", "[wbctl][status]") {
  REQUIRE(ToJson(SomeVersions()).dump() ==
          R"({"versions":[{"job":"job","version":3,"state":"failed","label":"step 30",)"
          R"("status":{"code":10,"message":"engine1/0 is gone\nits log: ...","details":[]},)"
          R"("average_stall_ms":12.25,"end_to_end_ms":0.0,"bound_bytes":0,"deliveries":[)"
          R"({"group":"engine0","state":"committed","status":{"code":0,"message":"","details":[]},)"
          R"("attempt":18446744073709551615,"bytes_planned":1024,)"
          R"("bytes_by_path":{"tcp":1000,"shm":0,"local":0},"seconds":0.0,"sources":""}]}]})");
}

TEST_CASE("Nothing published is an empty list", "[wbctl][status][field][case-92]") {
  REQUIRE(ToJson(v1::VersionsReply()).dump() == R"({"versions":[]})");
  REQUIRE(ToTable(v1::VersionsReply()) ==
          "JOB  VERSION  GROUP  STATE  BYTES  STALL MS  END TO END MS  LABEL  WHY\n");
}

TEST_CASE("The table of versions has a line a delivery and says why one failed",
          "[wbctl][status]") {
  REQUIRE(ToTable(SomeVersions()) ==
          "JOB  VERSION  GROUP    STATE      BYTES  STALL MS  END TO END MS  LABEL    WHY\n"
          "job  3                 failed            12.2      0.0            step 30  "
          "ABORTED: engine1/0 is gone\n"
          "              engine0  committed  1024\n");
}

TEST_CASE("The table of workers shows a worker that holds nothing yet", "[wbctl][status]") {
  v1::WorkersReply reply;
  v1::WorkerStatus& worker = *reply.add_workers();
  worker.set_job("job");
  worker.set_group("engine0");
  worker.set_rank(2);
  worker.set_role("rollout");
  worker.set_node("n1");
  worker.set_memory("empty");
  worker.set_bytes(77);
  worker.set_session("abc");
  REQUIRE(ToTable(reply) ==
          "JOB  WORKER     ROLE     NODE  HOLDS  MEMORY  BYTES  SESSION\n"
          "job  engine0/2  rollout  n1    none   empty   77     abc\n");
}

TEST_CASE("The table of a daemon shows its leader, lanes and waits", "[wbctl][status]") {
  v1::StatusReply reply;
  reply.set_node("n1");
  reply.set_state("updating");
  reply.set_software("0.1.0");
  reply.set_uptime_seconds(3.25);
  reply.set_leader_address("127.0.0.1:7070");
  reply.add_waits("leader 127.0.0.1:7070: refused");
  v1::LaneStatus& lane = *reply.add_lanes();
  lane.set_peer("n0");
  lane.set_fabric("tcp");
  lane.set_sent_bytes(5);
  REQUIRE(ToTable(reply) ==
          "node      n1\n"
          "state     updating\n"
          "software  0.1.0\n"
          "up        3.2 s\n"
          "leader    127.0.0.1:7070, not connected\n"
          "data\n"
          "sessions  0\n"
          "memory    0 bytes opened\n"
          "\n"
          "PEER  FABRIC  SENT BYTES  RECEIVED BYTES\n"
          "n0    tcp     5           0\n"
          "\n"
          "waits\n"
          "  leader 127.0.0.1:7070: refused\n");
}

TEST_CASE("Refusals are shown with how many there are beside", "[wbctl][status]") {
  v1::RefusalsReply reply;
  v1::RefusalStatus& refusal = *reply.add_refusals();
  refusal.set_job("job");
  refusal.set_kind("dtype");
  refusal.set_tensor("w");
  refusal.set_worker("engine0/0");
  refusal.set_text("w is BF16");
  reply.set_total(1);
  REQUIRE(ToTable(reply) == "JOB  GROUP  KIND   TEXT\njob  all    dtype  w is BF16\n");
  reply.set_total(3);
  refusal.set_group("engine0");
  REQUIRE(ToTable(reply) ==
          "JOB  GROUP    KIND   TEXT\njob  engine0  dtype  w is BF16\nand 2 more\n");
  REQUIRE(ToJson(reply).dump() ==
          R"({"refusals":[{"job":"job","group":"engine0","kind":"dtype","tensor":"w",)"
          R"("worker":"engine0/0","text":"w is BF16"}],"total":3})");
}

TEST_CASE("A daemon that is not there is a failure that names it", "[wbctl][status]") {
  const test::TempFolder folder;
  StatusOptions options;
  options.address.daemon = "unix:" + folder.path() + "/control.sock";
  std::ostringstream out;
  REQUIRE(RunStatus(options, out) == ExitCode::kFailed);
  REQUIRE(out.str().empty());
}

TEST_CASE("What is no daemon's address is refused before it is dialled", "[wbctl][status]") {
  const auto dial = [](const std::string& daemon) {
    DaemonAddress address;
    address.daemon = daemon;
    return Dial(address).status();
  };
  for (const char* daemon : {"", "foo", ":1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:99999",
                             "127.0.0.1:7o", "::1:7000", "dns:///localhost:7000", "unix:"}) {
    CAPTURE(daemon);
    const absl::Status refused = dial(daemon);
    CHECK(refused.code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(refused.message(), absl::StrCat("--daemon '", daemon, "': want ")));
  }
  CHECK(absl::StrContains(dial("unix:" + std::string(108, 'd')).message(),
                          "want a path of 1 to 107 bytes"));
  for (const char* daemon : {"127.0.0.1:1", "[::1]:65535", "localhost:7000", "unix:d"}) {
    CAPTURE(daemon);
    CHECK(dial(daemon).ok());
  }
}

}  // namespace
}  // namespace wb
