#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <span>
#include <string>

#include "client/include/weightbridge/client.h"
#include "tests/support/catch.h"
#include "tests/support/time_slack.h"

namespace wb::test {

/// A worker that holds all of tensor "w", FP32, in a buffer of its own.
struct TensorWorker {
  weightbridge::SharedBuffer memory;
  std::size_t elements;
  weightbridge::Layout layout;
  weightbridge::JoinOptions options;

  TensorWorker(const std::string& socket,
               const std::string& group,
               std::int64_t rows = 64,
               std::int64_t columns = 16)
      : memory(*weightbridge::SharedBuffer::Create(static_cast<std::uint64_t>(rows * columns) * 4)),
        elements(static_cast<std::size_t>(rows * columns)) {
    weightbridge::Param param("w", {rows, columns});
    param.AddPiece({"w", {0, 0}, {rows, columns}, {0, 0}, {}});
    REQUIRE(layout.AddTensor("w", weightbridge::Dtype::kFp32, {rows, columns}).ok());
    REQUIRE(layout.AddParam(param).ok());
    REQUIRE(layout.SetBuffer("w", memory).ok());
    options.socket = socket;
    options.job = "job";
    options.group = group;
    options.rank = 0;
    options.world_size = 1;
    options.timeout = Slack(std::chrono::seconds(10));
  }
  std::span<float> values() const { return {static_cast<float*>(memory.data()), elements}; }
  void Fill(float version) const {
    for (std::size_t i = 0; i < values().size(); ++i) {
      values()[i] = version + static_cast<float>(i) / 1024;
    }
  }
  bool Holds(float version) const {
    for (std::size_t i = 0; i < values().size(); ++i) {
      if (values()[i] != version + static_cast<float>(i) / 1024) return false;
    }
    return true;
  }
};

template <typename T>
std::string TextOf(const weightbridge::Result<T>& result) {
  return result.ok() ? "OK" : result.error().ToString();
}

/// One update from trainer to rollout, which wait for each other.
inline void Update(weightbridge::Trainer& trainer,
                   const TensorWorker& source,
                   weightbridge::Rollout& rollout,
                   const TensorWorker& target,
                   std::uint64_t version) {
  source.Fill(static_cast<float>(version));
  const std::chrono::milliseconds timeout = Slack(std::chrono::seconds(10));
  auto received = std::async(std::launch::async, [&] {
    const auto offered = rollout.WaitForVersion(version, timeout);
    if (!offered.ok()) return TextOf(offered);
    return TextOf(rollout.Receive(*offered, {timeout}));
  });
  const auto published = trainer.Publish(version, {"", timeout});
  CAPTURE(version);
  REQUIRE(TextOf(published) == "OK");
  REQUIRE(received.get() == "OK");
  REQUIRE(target.Holds(static_cast<float>(version)));
}

/// Versions first to last, from a trainer at one worker socket to an engine at another, or the
/// same.
inline void MoveVersions(const std::string& from,
                         const std::string& to,
                         std::uint64_t first,
                         std::uint64_t last) {
  const TensorWorker source(from, "policy");
  const TensorWorker target(to, "engine0");
  auto trainer = weightbridge::Trainer::Join(source.options, source.layout);
  auto rollout = weightbridge::Rollout::Join(target.options, target.layout);
  REQUIRE(TextOf(trainer) == "OK");
  REQUIRE(TextOf(rollout) == "OK");
  for (std::uint64_t version = first; version <= last; ++version) {
    Update(*trainer, source, *rollout, target, version);
  }
}

}  // namespace wb::test
