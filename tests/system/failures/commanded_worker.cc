// A trainer or a rollout that does what it is told, one call at a time, and tells how each ended
// and what its memory holds: `commanded_worker trainer|rollout SOCKET GROUP RANK WORLD BYTES`. It
// holds its share of the rows of one tensor of BYTES bytes, filled by hash (FillContents). Commands
// come at descriptor 3 (ControlChannel), one a message:
//
//   join MS | leave | publish VERSION MS | wait VERSION MS | receive VERSION MS
//   take VERSION MS   waits for the version, says so, receives it
//   next VERSION MS   the same, with the version that is offered, from VERSION on
//   state             nothing but the answer
//   cut               cuts the connection to the daemon, at once, also during a call; no answer
//
// Answers are JSON: call, version, code, text, ms, and by how much the longest call was longer than
// MS (over_ms); of a rollout also what its client says (memory,
// held), whether every byte is as it says (as_said), which bytes there are (bytes: new is the
// version last asked for, old the one held before, else mixed) and their hash (sum).

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <xxhash.h>

#include "client/include/weightbridge/client.h"
#include "client/wbctl/contents/fill.h"
#include "client/wbctl/process/child.h"
#include "client/wbctl/process/control_channel.h"
#include "tests/system/failures/cut_connections.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::int64_t kColumns = 256;

/// A worker's share of the tensor, and what it should hold.
class Share {
 public:
  Share(std::int64_t bytes, std::int64_t rank, std::int64_t world)
      : rows_(bytes / 4 / kColumns),
        first_(rows_ * rank / world),
        end_(rows_ * (rank + 1) / world),
        memory_(*weightbridge::SharedBuffer::Create(static_cast<std::uint64_t>(share_bytes()))),
        scratch_(share_bytes()) {
    tensor_.name = "w";
    tensor_.dtype = wb::Dtype::kFp32;
    tensor_.shape = {rows_, kColumns};
  }

  weightbridge::Layout Layout() const {
    weightbridge::Layout layout;
    weightbridge::Param param("w", {end_ - first_, kColumns});
    param.AddPiece({"w", {first_, 0}, {end_, kColumns}, {0, 0}, {}});
    const bool laid = layout.AddTensor("w", weightbridge::Dtype::kFp32, {rows_, kColumns}).ok() &&
                      layout.AddParam(param).ok() && layout.SetBuffer("w", memory_).ok();
    if (!laid) std::abort();
    return layout;
  }

  void Fill(std::uint64_t version) const { Write(version, bytes()); }
  bool Holds(std::uint64_t version) {
    if (version == 0) {  // as it was made
      std::fill(scratch_.begin(), scratch_.end(), std::byte{0});
    } else {
      Write(version, scratch_);
    }
    return std::equal(scratch_.begin(), scratch_.end(), bytes().begin());
  }
  std::uint64_t Sum() const { return XXH3_64bits(memory_.data(), scratch_.size()); }

 private:
  std::size_t share_bytes() const {
    return static_cast<std::size_t>((end_ - first_) * kColumns * 4);
  }
  std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(memory_.data()), scratch_.size()};
  }
  void Write(std::uint64_t version, std::span<std::byte> out) const {
    wb::FillContents(wb::Fill::kHash, version)
        .Write(tensor_, static_cast<std::uint64_t>(first_ * kColumns), out.size() / 4, out);
  }

  wb::Tensor tensor_;
  const std::int64_t rows_;
  const std::int64_t first_;
  const std::int64_t end_;
  weightbridge::SharedBuffer memory_;
  std::vector<std::byte> scratch_;
};

const char* NameOf(weightbridge::MemoryState state) {
  switch (state) {
    case weightbridge::MemoryState::kEmpty:
      return "empty";
    case weightbridge::MemoryState::kValid:
      return "valid";
    case weightbridge::MemoryState::kInDoubt:
      return "in doubt";
    case weightbridge::MemoryState::kInvalid:
      break;
  }
  return "invalid";
}

struct Command {
  std::string verb;
  std::uint64_t version = 0;
  milliseconds timeout{0};
};

/// Does one call of the library, and notes by how much it was longer than it may.
template <typename Call>
auto Timed(const Command& command, nlohmann::json& reply, const Call& call) {
  const auto start = Clock::now();
  auto result = call();
  const auto over = Clock::now() - start - command.timeout;
  reply["over_ms"] = std::max(reply.value("over_ms", std::int64_t{0}),
                              std::int64_t{std::chrono::duration_cast<milliseconds>(over).count()});
  return result;
}

class Worker {
 public:
  Worker(char** argv)
      : trainer_role_(std::string(argv[1]) == "trainer"),
        share_(std::atoll(argv[6]), std::atoll(argv[4]), std::atoll(argv[5])) {
    options_.socket = argv[2];
    options_.job = "job";
    options_.group = argv[3];
    options_.rank = std::atoi(argv[4]);
    options_.world_size = std::atoi(argv[5]);
  }

  int Run() {
    std::thread([this] { RunCalls(); }).detach();  // ends with the process, whatever it is in
    pollfd watched{channel_.fd(), POLLIN, 0};
    while (true) {
      ::poll(&watched, 1, -1);
      const absl::StatusOr<std::string> line = channel_.Receive();
      if (!line.ok()) ::_exit(0);
      if (!line->empty()) Take(*line);
    }
  }

 private:
  void Take(const std::string& line) {
    std::istringstream words(line);
    Command command;
    std::int64_t timeout = 0;
    words >> command.verb;
    if (command.verb != "join") words >> command.version;
    words >> timeout;
    command.timeout = milliseconds(timeout);
    if (command.verb == "cut") return wb::test::CutConnectionsTo(options_.socket);
    const std::lock_guard lock(mu_);
    commands_.push_back(command);
    changed_.notify_one();
  }

  void RunCalls() {
    while (true) {
      std::unique_lock lock(mu_);
      changed_.wait(lock, [this] { return !commands_.empty(); });
      const Command command = commands_.front();
      commands_.pop_front();
      lock.unlock();
      Call(command);
    }
  }

  void Call(const Command& command) {
    const auto start = Clock::now();
    nlohmann::json reply{{"call", command.verb}, {"version", command.version}};
    if (command.verb == "join") {
      Note(reply, Timed(command, reply, [&] { return Join(command.timeout); }));
    } else if (command.verb == "state") {
      reply["code"] = "OK";
    } else if (command.verb == "leave") {
      trainer_.reset();
      rollout_.reset();
      reply["code"] = "OK";
    } else if (!trainer_.has_value() && !rollout_.has_value()) {
      reply["code"] = "NOT_JOINED";
    } else if (command.verb == "publish") {
      share_.Fill(command.version);
      Note(reply, Timed(command, reply, [&] {
             return trainer_->Publish(command.version, {"", command.timeout});
           }));
    } else if (command.verb == "wait") {
      Note(reply, Timed(command, reply, [&] {
             return rollout_->WaitForVersion(command.version, command.timeout);
           }));
    } else {
      Receive(command, reply);
    }
    reply["ms"] = std::chrono::duration_cast<milliseconds>(Clock::now() - start).count();
    Describe(reply);
    Say(reply);
  }

  weightbridge::Result<void> Join(milliseconds timeout) {
    options_.timeout = timeout;
    if (trainer_role_) {
      auto joined = weightbridge::Trainer::Join(options_, share_.Layout());
      if (!joined.ok()) return joined.error();
      trainer_.emplace(*std::move(joined));
    } else {
      auto joined = weightbridge::Rollout::Join(options_, share_.Layout());
      if (!joined.ok()) return joined.error();
      rollout_.emplace(*std::move(joined));
    }
    return {};
  }

  void Receive(Command command, nlohmann::json& reply) {
    if (command.verb == "take" || command.verb == "next") {
      const auto offered = Timed(command, reply, [&] {
        return rollout_->WaitForVersion(command.version, command.timeout);
      });
      Note(reply, offered);
      if (!offered.ok()) return;
      if (command.verb == "take" && *offered != command.version) {
        reply["code"] = "OTHER_VERSION";
        reply["text"] = std::to_string(*offered);
        return;
      }
      reply["version"] = command.version = *offered;
      Say({{"call", "offered"}, {"version", command.version}});
    }
    if (rollout_->memory_state() == weightbridge::MemoryState::kValid) {
      before_ = rollout_->held_version();
    }
    tried_ = command.version;
    Note(reply, Timed(command, reply,
                      [&] { return rollout_->Receive(command.version, {command.timeout}); }));
  }

  template <typename T>
  static void Note(nlohmann::json& reply, const weightbridge::Result<T>& result) {
    reply["code"] = result.ok() ? "OK" : wb_status_name(result.error().code);
    reply["text"] = result.ok() ? "" : result.error().ToString();
  }

  /// What the memory is said to hold, and what is in it. Not during a call.
  void Describe(nlohmann::json& reply) {
    if (!rollout_.has_value()) return;
    const auto state = rollout_->memory_state();
    const std::uint64_t held = rollout_->held_version();
    reply["memory"] = NameOf(state);
    reply["held"] = held;
    reply["sum"] = share_.Sum();
    reply["as_said"] = IsAsSaid(state, held);
    reply["bytes"] = share_.Holds(tried_) ? "new" : share_.Holds(before_) ? "old" : "mixed";
  }

  bool IsAsSaid(weightbridge::MemoryState state, std::uint64_t held) {
    switch (state) {
      case weightbridge::MemoryState::kEmpty:
        return share_.Holds(0);
      case weightbridge::MemoryState::kValid:
        return share_.Holds(held);
      case weightbridge::MemoryState::kInDoubt:
        // It has landed whole; one that was tried since may not have begun to.
        if (share_.Holds(tried_)) doubted_ = tried_;
        return share_.Holds(doubted_);
      case weightbridge::MemoryState::kInvalid:
        break;
    }
    return true;
  }

  void Say(const nlohmann::json& reply) const {
    if (!channel_.Send(reply.dump()).ok()) ::_exit(1);
  }

  const bool trainer_role_;
  Share share_;
  weightbridge::JoinOptions options_;
  std::optional<weightbridge::Trainer> trainer_;  // of the thread that calls
  std::optional<weightbridge::Rollout> rollout_;
  std::uint64_t tried_ = 0;    // the version last asked for
  std::uint64_t before_ = 0;   // the one held before it
  std::uint64_t doubted_ = 0;  // the one that was last in doubt
  const wb::ControlChannel channel_{wb::FdHandle(wb::kControlFd)};
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<Command> commands_;  // by mu_
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 3;
  return Worker(argv).Run();
}
