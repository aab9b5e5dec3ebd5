#include <algorithm>
#include <functional>
#include <sstream>

#include <fcntl.h>
#include <sys/resource.h>

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

#include "daemon/log/folding_sink.h"
#include "tests/daemon/rpc/local_door_fixture.h"

namespace wb {
namespace {

using test::DoorClient;
using test::DoorFixture;
using test::JoiningWorker;

TEST_CASE("A worker that joins is opened with its layout and its memory", "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  JoiningWorker worker = JoiningWorker::Make(v1::ROLLOUT, "engine0");
  worker.join.set_held_version(6);
  worker.join.set_memory(v1::MEMORY_VALID);
  const std::optional<v1::DaemonMessage> reply = worker.Join(client);
  REQUIRE(reply.has_value());
  CAPTURE(reply->ShortDebugString());
  REQUIRE(reply->id() == 6);  // of join_finish: the one reply
  REQUIRE(reply->status().code() == 0);
  REQUIRE(reply->join().node() == "n0");
  REQUIRE(reply->join().incarnation() == 7);
  REQUIRE(reply->join().session().size() == 32);
  fixture.thread().Ask([&] {
    const SessionOpening& opening = fixture.calls().openings.at(reply->join().session());
    CHECK(opening.incarnation == Incarnation(99));
    CHECK(opening.epoch == Epoch(1));
    CHECK(opening.held_version == Version(6));
    CHECK(opening.memory == MemoryState::kValid);
    CHECK(opening.registration.layout.node == "n0");
    CHECK(opening.registration.layout.name.ToString() == "engine0/0");
    CHECK(opening.buffers.size() == 2);
    CHECK(opening.buffers[0].name == opening.registration.layout.buffers[0].name);
    CHECK(opening.buffers[0].region.access() == RegionAccess::kReadWrite);
    CHECK(fixture.door().admission().workers() == 1);
    CHECK(fixture.door().admission().memory_bytes() == 24);
    return true;
  });
}

TEST_CASE("A trainer's memory is opened for reading only", "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  const auto reply = JoiningWorker::Make(v1::TRAINER, "policy").Join(client);
  REQUIRE(reply.has_value());
  REQUIRE(reply->status().code() == 0);
  REQUIRE(fixture.thread().Ask([&] {
    return fixture.calls().openings.begin()->second.buffers[0].region.access() ==
           RegionAccess::kReadOnly;
  }));
}

/// With a buffer that no piece uses.
void AddLocalParam(JoiningWorker& worker) {
  v1::Param& local = *worker.layout.mutable_worker()->add_params();
  local.set_name("rotary_cache");
  local.add_shape(8);
  local.set_dtype(v1::FP32);
  local.set_local(true);
  worker.join.set_layout_bytes(worker.layout.ByteSizeLong());
}

TEST_CASE("A buffer that no piece uses needs no memory", "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  JoiningWorker worker = JoiningWorker::Make(v1::ROLLOUT, "engine0");
  AddLocalParam(worker);
  const auto reply = worker.Join(client);
  REQUIRE(reply.has_value());
  CAPTURE(reply->ShortDebugString());
  REQUIRE(reply->status().code() == 0);
  REQUIRE(fixture.thread().Ask(
              [&] { return fixture.calls().openings.begin()->second.buffers.size(); }) == 3);
}

TEST_CASE("A trainer that will publish snapshots gets memory for what its pieces lie in",
          "[rpc][local][snapshot]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  JoiningWorker worker = JoiningWorker::Make(v1::TRAINER, "policy");
  worker.join.set_snapshots(true);
  AddLocalParam(worker);
  const auto reply = worker.Join(client);
  REQUIRE(reply.has_value());
  CAPTURE(reply->ShortDebugString());
  REQUIRE(reply->status().code() == 0);
  fixture.thread().Ask([&] {
    const SessionOpening& opening = fixture.calls().openings.begin()->second;
    REQUIRE(opening.snapshots.has_value());
    REQUIRE(opening.snapshots->size() == opening.buffers.size());
    for (std::size_t i = 0; i < opening.buffers.size(); ++i) {
      const Region& snapshot = (*opening.snapshots)[i];
      CHECK(snapshot.bytes() == opening.buffers[i].region.bytes());
      CHECK(snapshot.access() == RegionAccess::kReadWrite);
    }
    CHECK(fixture.door().admission().memory_bytes() == 2 * 24);
    return true;
  });
  client.HangUp();
  REQUIRE(fixture.Empties());
}

TEST_CASE("Snapshots beyond the limit are refused before any memory is opened",
          "[rpc][local][snapshot]") {
  LocalDoorOptions options = DoorFixture::Defaults();
  options.max_memory_bytes = 20;
  DoorFixture fixture(std::move(options));
  DoorClient client(fixture.path());
  JoiningWorker worker = JoiningWorker::Make(v1::TRAINER, "policy");
  worker.join.set_snapshots(true);
  worker.Send(client);
  const absl::Status refusal = test::RefusalOf(client);
  REQUIRE(refusal.code() == absl::StatusCode::kResourceExhausted);
  REQUIRE(refusal.message() ==
          "snapshots of policy/0: limits.memory_bytes: 24 bytes wanted, 20 left of 20");
  REQUIRE(fixture.Empties());
}

struct BadJoin {
  const char* name;
  std::function<void(JoiningWorker&)> spoil;
  absl::StatusCode code;
  const char* text;  // in the refusal
};

const std::vector<BadJoin>& BadJoins() {
  using absl::StatusCode;
  static const std::vector<BadJoin> cases = {
      {"protocol 2", [](JoiningWorker& w) { w.join.set_protocol(2); }, StatusCode::kInvalidArgument,
       "join.protocol: 2, this daemon speaks 1"},
      {"no rank [case-6]", [](JoiningWorker& w) { w.join.clear_rank(); },
       StatusCode::kInvalidArgument, "join.rank: is missing"},
      {"rank beyond the group", [](JoiningWorker& w) { w.join.set_rank(1); },
       StatusCode::kInvalidArgument, "join.rank: 1, want 0..0"},
      {"negative rank", [](JoiningWorker& w) { w.join.set_rank(-1); }, StatusCode::kInvalidArgument,
       "join.rank: -1"},
      {"snapshots of a rollout", [](JoiningWorker& w) { w.join.set_snapshots(true); },
       StatusCode::kInvalidArgument,
       "join.snapshots: engine0/0 is a rollout: only trainers publish"},
      {"world size 0", [](JoiningWorker& w) { w.join.set_world_size(0); },
       StatusCode::kInvalidArgument, "world_size: 0, want 1..65536"},
      {"a group that is no name", [](JoiningWorker& w) { w.join.set_group("a b"); },
       StatusCode::kInvalidArgument, "join.group"},
      {"no incarnation", [](JoiningWorker& w) { w.join.set_incarnation(0); },
       StatusCode::kInvalidArgument, "incarnation: 0"},
      {"memory of no known state",
       [](JoiningWorker& w) { w.join.set_memory(static_cast<v1::MemoryState>(77)); },
       StatusCode::kInvalidArgument, "memory: state 77"},
      {"valid memory of no version", [](JoiningWorker& w) { w.join.set_memory(v1::MEMORY_VALID); },
       StatusCode::kInvalidArgument, "held_version: 0 does not fit memory that is valid"},
      {"another job than the layout's", [](JoiningWorker& w) { w.join.set_job("other"); },
       StatusCode::kInvalidArgument, "job: 'other' in the join, 'job' in the layout"},
      {"another role than the layout's", [](JoiningWorker& w) { w.join.set_role(v1::TRAINER); },
       StatusCode::kInvalidArgument, "role: 'TRAINER' in the join, 'ROLLOUT' in the layout"},
      {"no layout", [](JoiningWorker& w) { w.join.set_layout_bytes(0); },
       StatusCode::kInvalidArgument, "join.layout_bytes: 0"},
      {"a layout beyond the limit", [](JoiningWorker& w) { w.join.set_layout_bytes(1ULL << 60); },
       StatusCode::kResourceExhausted, "limits.message_bytes allows 1048576"},
      {"a layout longer than announced",
       [](JoiningWorker& w) { w.join.set_layout_bytes(w.join.layout_bytes() - 1); },
       StatusCode::kInvalidArgument, "join.layout_bytes announced"},
      {"a layout shorter than announced",
       [](JoiningWorker& w) { w.join.set_layout_bytes(w.join.layout_bytes() + 1); },
       StatusCode::kFailedPrecondition, "attach_buffer out of order, want layout_part"},
      {"another node",
       [](JoiningWorker& w) {
         w.layout.mutable_worker()->set_node("n9");
         w.join.set_layout_bytes(w.layout.ByteSizeLong());
       },
       StatusCode::kInvalidArgument, "layout.worker.node: 'n9', this daemon is 'n0'"},
      {"a layout that the door refuses",
       [](JoiningWorker& w) {
         (*w.layout.mutable_tensors())["a"].set_shape(0, 3);
         w.join.set_layout_bytes(w.layout.ByteSizeLong());
       },
       StatusCode::kInvalidArgument, "a"},
      {"a buffer missing", [](JoiningWorker& w) { w.buffers.pop_back(); },
       StatusCode::kInvalidArgument, "buffer 'b' of engine0/0 was not attached"},
      {"a buffer that the layout does not know",
       [](JoiningWorker& w) { w.buffers[1].attach.set_buffer("c"); }, StatusCode::kInvalidArgument,
       "the layout of engine0/0 has no buffer 'c'"},
      {"a buffer twice", [](JoiningWorker& w) { w.buffers[1].attach.set_buffer("a"); },
       StatusCode::kInvalidArgument, "'a' of engine0/0 is attached already"},
      {"more buffers than announced", [](JoiningWorker& w) { w.join.set_buffers(1); },
       StatusCode::kInvalidArgument, "buffer 'b' comes after the 1 that join announced"},
      {"a buffer too small", [](JoiningWorker& w) { w.buffers[0].attach.set_bytes(15); },
       StatusCode::kInvalidArgument, "buffer 'a' of engine0/0 has 15 bytes, its layout wants 16"},
      {"a memfd smaller than it says", [](JoiningWorker& w) { w.buffers[0].attach.set_bytes(17); },
       StatusCode::kInvalidArgument, "buffer 'a' of engine0/0"},
      {"an offset that wraps round",
       [](JoiningWorker& w) { w.buffers[0].attach.set_offset_bytes(~0ULL - 3); },
       StatusCode::kInvalidArgument, "buffer 'a' of engine0/0"},
      {"two epochs", [](JoiningWorker& w) { w.buffers[1].attach.set_epoch(2); },
       StatusCode::kInvalidArgument, "buffer 'b' of engine0/0 has epoch 2, the ones before have 1"},
      {"a device by its ordinal [case-152]",
       [](JoiningWorker& w) { w.buffers[1].attach.set_device("0"); }, StatusCode::kInvalidArgument,
       "attach_buffer.device: buffer 'b' of engine0/0: device '0' is no UUID"},
      {"memory of a device",
       [](JoiningWorker& w) {
         w.buffers[1].attach.set_device("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6");
       },
       StatusCode::kUnimplemented,
       "buffer 'b' of engine0/0 is memory of device GPU-8932f937-d72c-4106-c12f-20bd9faed9f6; "
       "importing device memory is not there yet"},
      {"memory beyond the limit",
       [](JoiningWorker& w) {
         w.buffers[1].memory = test::MakeMemory(1 << 20);
         w.buffers[1].attach.set_bytes(1 << 20);
       },
       StatusCode::kResourceExhausted,
       "limits.memory_bytes: 1048576 bytes wanted, 1048560 left of 1048576"},
      {"a buffer without its descriptor", [](JoiningWorker& w) { w.buffers[0].memory.Reset(); },
       StatusCode::kInvalidArgument, "buffer 'a' of engine0/0 carries 0 descriptors, want one"},
      {"a memfd without seals",
       [](JoiningWorker& w) { w.buffers[0].memory = test::MakeMemory(16, false); },
       StatusCode::kInvalidArgument, "F_SEAL_SHRINK"},
  };
  return cases;
}

TEST_CASE("A rank is refused to a second worker while the first one's process lives",
          "[rpc][local]") {
  DoorFixture fixture;
  DoorClient first(fixture.path());
  REQUIRE(JoiningWorker::Make(v1::ROLLOUT, "engine0").Join(first)->has_join());
  DoorClient second(fixture.path());
  JoiningWorker::Make(v1::ROLLOUT, "engine0").Send(second);
  const absl::Status taken = RefusalOf(second);
  CAPTURE(taken.ToString());
  REQUIRE(taken.code() == absl::StatusCode::kAlreadyExists);
  REQUIRE(absl::StrContains(
      taken.message(),
      absl::StrFormat("the rank is taken by session %032x of worker engine0/0 (pid %d), open since "
                      "0.",
                      1, ::getpid())));
  REQUIRE(absl::StrContains(taken.message(), "whose process lives"));
  DoorClient other_rank(fixture.path());
  REQUIRE(JoiningWorker::Make(v1::ROLLOUT, "engine1").Join(other_rank)->has_join());
}

TEST_CASE("A rank of a worker that has gone is given again at once, with another layout",
          "[rpc][local][field][case-115]") {
  DoorFixture fixture;
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    JoiningWorker worker = JoiningWorker::Make(v1::ROLLOUT, "engine0");
    worker.join.set_incarnation(static_cast<std::uint64_t>(round) + 1);
    for (JoiningWorker::Buffer& buffer : worker.buffers) {
      buffer.attach.set_bytes(buffer.attach.bytes() + static_cast<std::uint64_t>(round));
      buffer.memory = test::MakeMemory(buffer.attach.bytes());
    }
    DoorClient client(fixture.path());
    const auto reply = worker.Join(client);
    REQUIRE(reply.has_value());
    CAPTURE(reply->ShortDebugString());
    REQUIRE(reply->has_join());
    // It hangs up, and the next comes before anyone may have told of it.
  }
  REQUIRE(fixture.thread().Becomes([&] { return fixture.calls().closed.size() == 20; }));
}

TEST_CASE("A join that is wrong anywhere is refused by name and leaves nothing",
          "[rpc][local][field][case-6][case-152]") {
  DoorFixture fixture;
  for (const BadJoin& bad : BadJoins()) {
    CAPTURE(bad.name);
    DoorClient client(fixture.path());
    JoiningWorker worker = JoiningWorker::Make(v1::ROLLOUT, "engine0");
    bad.spoil(worker);
    worker.Send(client);
    const absl::Status refusal = test::RefusalOf(client);
    CAPTURE(refusal.ToString());
    CHECK(refusal.code() == bad.code);
    CHECK(absl::StrContains(refusal.message(), bad.text));
    client.HangUp();
    REQUIRE(fixture.Empties());
  }
}

TEST_CASE("A regular file is no memory", "[rpc][local]") {
  DoorFixture fixture;
  DoorClient client(fixture.path());
  JoiningWorker worker = JoiningWorker::Make(v1::ROLLOUT, "engine0");
  test::TempFolder dir;
  std::FILE* file = std::fopen((dir.path() + "/file").c_str(), "w+");
  REQUIRE(file != nullptr);
  worker.buffers[0].memory = FdHandle(::dup(::fileno(file)));
  std::fclose(file);
  worker.Send(client);
  const absl::Status refusal = test::RefusalOf(client);
  REQUIRE(absl::StrContains(refusal.message(), "buffer 'a' of engine0/0: memory: "));
  // Whatever file system it is on: a tmpfs lends its files a seal.
  REQUIRE(absl::StrContains(refusal.message(), "want a memfd with F_SEAL_SHRINK and F_SEAL_SEAL"));
}

TEST_CASE("One worker more than limits.workers is refused until another has gone", "[rpc][local]") {
  LocalDoorOptions options = DoorFixture::Defaults();
  options.max_workers = 1;
  DoorFixture fixture(std::move(options));
  const JoiningWorker worker = JoiningWorker::Make(v1::ROLLOUT, "engine0");
  DoorClient first(fixture.path());
  REQUIRE(worker.Join(first)->status().code() == 0);
  DoorClient second(fixture.path());
  worker.Send(second);
  const absl::Status refusal = test::RefusalOf(second);
  REQUIRE(refusal.code() == absl::StatusCode::kResourceExhausted);
  REQUIRE(absl::StrContains(refusal.message(), "limits.workers"));
  REQUIRE(absl::StrContains(refusal.message(), "1 of 1 workers"));
  first.HangUp();
  second.HangUp();
  REQUIRE(fixture.Empties());
  DoorClient third(fixture.path());
  REQUIRE(worker.Join(third)->status().code() == 0);
}

TEST_CASE("Clients that connect and say nothing are bounded, whatever limits.workers is",
          "[rpc][local]") {
  LocalDoorOptions options = DoorFixture::Defaults();
  options.max_workers = 1;
  DoorFixture fixture(std::move(options));
  std::vector<std::unique_ptr<DoorClient>> silent;
  for (int i = 0; i < 65; ++i) silent.push_back(std::make_unique<DoorClient>(fixture.path()));
  DoorClient one_more(fixture.path());
  const absl::Status refusal = test::RefusalOf(one_more);
  REQUIRE(refusal.code() == absl::StatusCode::kResourceExhausted);
  REQUIRE(absl::StrContains(refusal.message(), "limits.workers: 1, and 65 connections are open"));
  silent.clear();
  one_more.HangUp();
  REQUIRE(fixture.Empties());
  DoorClient worker(fixture.path());
  REQUIRE(JoiningWorker::Make(v1::ROLLOUT, "engine0").Join(worker)->status().code() == 0);
}

/// What is logged while it lives, folded; made before what logs, and read when that is quiet.
class LogCapture {
 public:
  LogCapture() {
    auto text = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    auto sink = std::make_shared<FoldingSink>(std::move(text));
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("captured", std::move(sink)));
  }
  ~LogCapture() { spdlog::set_default_logger(before_); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  std::vector<std::string> Lines() const {
    return absl::StrSplit(text_.str(), '\n', absl::SkipEmpty());
  }

 private:
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream text_;
};

TEST_CASE("Clients that are not let in do not fill the log", "[rpc][local][log]") {
  const LogCapture log;
  DoorFixture fixture;
  JoiningWorker worker = JoiningWorker::Make(v1::ROLLOUT, "engine0");
  for (auto& [name, tensor] : *worker.layout.mutable_tensors()) tensor.set_shape(0, 1);
  worker.join.set_layout_bytes(worker.layout.ByteSizeLong());
  for (int i = 0; i < 50; ++i) {
    DoorClient refused(fixture.path());
    REQUIRE(absl::StrContains(worker.Join(refused)->status().message(), "\n"));
    const DoorClient gone(fixture.path());
  }
  REQUIRE(fixture.Empties());
  const std::vector<std::string> lines = log.Lines();
  CAPTURE(lines);
  REQUIRE(lines.size() == 2);
  const auto refusal = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return absl::StrContains(line, "worker engine0/0 ");
  });
  REQUIRE(refusal != lines.end());
  REQUIRE(absl::StrContains(*refusal, "refused: INVALID_ARGUMENT: "));
  REQUIRE(absl::StrContains(*refusal, "; "));  // both reasons, in one line
}

TEST_CASE("A session that was open is told of in the log each time", "[rpc][local][log]") {
  const LogCapture log;
  DoorFixture fixture;
  for (int i = 0; i < 3; ++i) {
    DoorClient client(fixture.path());
    REQUIRE(JoiningWorker::Make(v1::ROLLOUT, "engine0").Join(client)->status().code() == 0);
    client.HangUp();
    REQUIRE(fixture.Empties());
  }
  REQUIRE(log.Lines().size() == 6);
}

/// While it lives this process can open `left` more descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(std::size_t left) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    std::vector<FdHandle> lowest;  // numbers that are free
    while (lowest.size() <= left) lowest.emplace_back(::fcntl(0, F_DUPFD_CLOEXEC, 0));
    const rlimit few{static_cast<rlim_t>(lowest.back().get()), before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

// UBSan looks at a type by way of a pipe, and takes having none for a wrong type.
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
#define WB_UNDER_UBSAN
#endif
#endif

TEST_CASE("A door without descriptors left refuses a join and names the limit", "[rpc][local]") {
#ifdef WB_UNDER_UBSAN
  WARN("skipped: UBSan cannot be without descriptors");
  return;
#endif
  DoorFixture fixture;
  const JoiningWorker worker = JoiningWorker::Make(v1::ROLLOUT, "engine0");
  const auto check = [](DoorClient& client) {
    const absl::Status refusal = test::RefusalOf(client);
    CAPTURE(refusal.ToString());
    CHECK(refusal.code() == absl::StatusCode::kResourceExhausted);
    CHECK(
        absl::StrContains(refusal.message(), "this daemon has no descriptors left: it may open "));
    CHECK(absl::StrContains(refusal.message(), " (RLIMIT_NOFILE)"));
  };
  SECTION("for memory") {
    DoorClient client(fixture.path());
    REQUIRE(fixture.thread().Becomes([&] { return fixture.door().connections() == 1; }));
    const FewDescriptors none(0);
    worker.Send(client);
    check(client);
  }
  SECTION("for the worker's process") {
    const FewDescriptors both_ends(2);
    DoorClient client(fixture.path());
    check(client);
  }
  REQUIRE(fixture.Empties());
  DoorClient again(fixture.path());
  REQUIRE(worker.Join(again)->status().code() == 0);
}

TEST_CASE("A client that does not finish its join is sent away in time", "[rpc][local]") {
  LocalDoorOptions options = DoorFixture::Defaults();
  options.join_timeout = std::chrono::milliseconds(100);
  DoorFixture fixture(std::move(options));
  DoorClient client(fixture.path());
  const absl::Status refusal = test::RefusalOf(client);
  REQUIRE(refusal.code() == absl::StatusCode::kDeadlineExceeded);
  REQUIRE(absl::StrContains(refusal.message(), "the join took more than 100 ms"));
}

TEST_CASE("What the leader refuses is the answer to the join", "[rpc][local]") {
  DoorFixture fixture;
  fixture.thread().Ask([&] {
    fixture.calls().open_status = absl::AlreadyExistsError("engine0/0 is there already");
    return true;
  });
  DoorClient client(fixture.path());
  JoiningWorker::Make(v1::ROLLOUT, "engine0").Send(client);
  const absl::Status refusal = test::RefusalOf(client);
  REQUIRE(refusal == absl::AlreadyExistsError("engine0/0 is there already"));
  REQUIRE(fixture.thread().Ask([&] { return fixture.calls().closed.empty(); }));
}

/// A trainer with 512 MiB that have never been touched.
JoiningWorker LargeTrainer() {
  constexpr std::uint64_t kBytes = std::uint64_t{512} << 20;
  JoiningWorker worker = JoiningWorker::Make(v1::TRAINER, "policy");
  worker.buffers[0].attach.set_bytes(kBytes);
  worker.buffers[0].memory = test::MakeMemory(kBytes);
  return worker;
}

LocalDoorOptions LargeDoor() {
  LocalDoorOptions options = DoorFixture::Defaults();
  options.max_memory_bytes = 1 << 30;
  return options;
}

TEST_CASE("Memory that is not present by the deadline refuses the join and names the buffer",
          "[rpc][local]") {
  DoorFixture fixture(LargeDoor());
  DoorClient client(fixture.path());
  JoiningWorker worker = LargeTrainer();
  worker.timeout_ms = 1;
  worker.Send(client);
  const absl::Status refusal = test::RefusalOf(client);
  INFO(refusal.ToString());
  REQUIRE(refusal.code() == absl::StatusCode::kDeadlineExceeded);
  REQUIRE(absl::StrContains(refusal.message(),
                            "the memory of policy/0 is not present in time: 0 of 2 buffers are, "
                            "next 'a' of 536870912 bytes"));
  REQUIRE(fixture.Empties());
}

TEST_CASE("A worker that dies while its memory is made present leaves nothing, and others join",
          "[rpc][local]") {
  DoorFixture fixture(LargeDoor());
  DoorClient client(fixture.path());
  LargeTrainer().Send(client);
  client.HangUp();
  DoorClient other(fixture.path());
  REQUIRE(JoiningWorker::Make(v1::ROLLOUT, "engine0").Join(other)->status().code() == 0);
  other.HangUp();
  REQUIRE(fixture.Empties());
}

TEST_CASE("A buffer that cannot be opened takes those before it with it, and a retry succeeds",
          "[rpc][local][field][case-73]") {
  DoorFixture fixture;
  JoiningWorker worker = JoiningWorker::Make(v1::TRAINER, "policy");
  worker.buffers[1].memory = test::MakeMemory(8, false);
  DoorClient client(fixture.path());
  worker.Send(client);
  const absl::Status refusal = test::RefusalOf(client);
  REQUIRE(absl::StrContains(refusal.message(), "buffer 'b' of policy/0: "));
  REQUIRE(fixture.Empties());
  worker.buffers[1].memory = test::MakeMemory(8);
  DoorClient again(fixture.path());
  REQUIRE(worker.Join(again)->status().code() == 0);
}

}  // namespace
}  // namespace wb
