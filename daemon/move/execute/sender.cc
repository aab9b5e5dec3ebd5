#include "daemon/move/execute/sender.h"

#include <string>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "daemon/move/chunk_header.h"
#include "daemon/move/failed_chunk.h"

namespace wb {
namespace {

absl::Status Named(const absl::Status& status, const Operation& operation) {
  const std::string& node = operation.lane->peer.node;
  if (operation.phase == Operation::Phase::kHelloOut) {
    return PrefixedWithPeer(status, node, absl::StrCat("connecting to ", node));
  }
  const Outgoing& out = operation.attempt->out[operation.stream];
  const absl::Status named =
      PrefixedWithPeer(status, node,
                       absl::StrCat("chunk ", operation.chunk, " of stream ", out.number, " to ",
                                    node, " was not sent"));
  return WithFailedChunk(named, {out.number, operation.chunk});
}

}  // namespace

void Sender::Greet(OutLane& lane) {
  Operation& operation = operations_.New(Operation::Phase::kHelloOut);
  operation.attempt = lane.attempt;
  operation.lane = &lane;
  ++lane.attempt->operations;
  ++lane.attempt->hellos;
  ChunkHeader header;
  header.kind = MessageKind::kHello;
  header.attempt = lane.attempt->id;
  header.sender = options_.incarnation;
  const absl::Status posted =
      fabric_.Send(lane.lane->endpoint, EncodeHeader(header), MemoryRef{}, operation.tag);
  if (!posted.ok()) OnSent(operation, posted);
}

void Sender::Start(Attempt& attempt) {
  for (OutLane& lane : attempt.lanes) Queue(lane);
}

void Sender::Queue(OutLane& lane) {
  if (lane.queued) return;
  lane.queued = true;
  runnable_.push(&lane);
}

void Sender::Pump() {
  for (;;) {
    if (!starved_.empty() && slots_.free() > 0) {
      Visit(*starved_.pop());
    } else if (!runnable_.empty()) {
      Visit(*runnable_.pop());
    } else {
      return;
    }
  }
}

void Sender::Visit(OutLane& lane) {
  lane.queued = false;
  const Attempt& attempt = *lane.attempt;
  if (!attempt.may_send() || lane.streams.empty()) return;
  if (lane.in_flight >= options_.chunks_in_flight) return;  // comes back when one has ended
  const Outgoing& out = attempt.out[lane.streams[lane.turn]];
  if (!out.stream.direct(out.next) && slots_.free() == 0) {
    lane.queued = true;
    starved_.push(&lane);
    return;
  }
  Begin(lane);
  Queue(lane);
}

void Sender::Begin(OutLane& lane) {
  Attempt& attempt = *lane.attempt;
  const std::uint32_t stream = lane.streams[lane.turn];
  Outgoing& out = attempt.out[stream];
  const std::uint32_t chunk = out.next++;
  if (out.next < out.stream.chunks()) {
    ++lane.turn;
  } else {
    lane.streams.erase(lane.streams.begin() + static_cast<std::ptrdiff_t>(lane.turn));
  }
  if (lane.turn >= lane.streams.size()) lane.turn = 0;
  ++lane.in_flight;
  ++attempt.operations;
  --attempt.unsent_chunks;

  Operation& operation = operations_.New(Operation::Phase::kPacking);
  operation.attempt = &attempt;
  operation.lane = &lane;
  operation.stream = stream;
  operation.chunk = chunk;
  operation.has_checksum = options_.verify;
  operations_.Time(operation, &out.times->pack);
  if (out.stream.direct(chunk)) {
    operation.memory = out.stream.Memory(chunk);
    if (!options_.verify) {
      Post(operation);
      return;
    }
  } else {
    operation.slot = slots_.Take();
    const std::span<std::byte> packed =
        slots_.Memory(operation.slot, out.stream.chunk_bytes(chunk));
    operation.memory = packed;
    out.stream.Pack(chunk, packed, operation.steps);
  }
  Submit(*out.copier, operation);
}

void Sender::OnPacked(Operation& operation, std::uint64_t checksum) {
  operation.checksum = checksum;
  if (operation.attempt->may_send()) {
    Post(operation);
  } else {
    End(operation);
  }
}

void Sender::Post(Operation& operation) {
  operation.phase = Operation::Phase::kSending;
  const Outgoing& out = operation.attempt->out[operation.stream];
  operations_.Time(operation, &out.times->wire);
  ChunkHeader header;
  header.kind = MessageKind::kChunk;
  header.has_checksum = operation.has_checksum;
  header.attempt = operation.attempt->id;
  header.sender = options_.incarnation;
  header.stream = out.number;
  header.chunk = operation.chunk;
  header.bytes = operation.memory.size();
  header.checksum = operation.checksum;
  const MemoryRef payload = operation.slot != Operation::kNoSlot
                                ? slots_.Ref(operation.slot, header.bytes)
                                : out.stream.Ref(operation.chunk);
  const absl::Status posted =
      fabric_.Send(operation.lane->lane->endpoint, EncodeHeader(header), payload, operation.tag);
  if (!posted.ok()) OnSent(operation, posted);
}

void Sender::OnSent(Operation& operation, const absl::Status& status) {
  Lane& lane = *operation.lane->lane;
  if (!status.ok()) {
    operation.attempt->Fail(Named(status, operation));
  } else if (operation.phase == Operation::Phase::kHelloOut) {
    lane.open = true;
    NoteLane(lane);
  } else {
    lane.counters->sent_bytes += operation.memory.size();
  }
  End(operation);
}

void Sender::NoteLane(Lane& lane) const {
  const LaneTraits* const traits = fabric_.lane(lane.endpoint);
  if (traits == nullptr) return;
  lane.counters->fabric = traits->name;
  spdlog::info("lane to {} of job={} group={} runs on {} in segments of {} bytes", lane.peer.node,
               lane.job, lane.group, traits->device, traits->segment_bytes);
}

void Sender::End(Operation& operation) {
  Attempt& attempt = *operation.attempt;
  --attempt.operations;
  if (operation.phase == Operation::Phase::kHelloOut) {
    --attempt.hellos;
  } else {
    --operation.lane->in_flight;
    Queue(*operation.lane);
  }
  if (operation.slot != Operation::kNoSlot) slots_.Give(operation.slot);
  operations_.Free(operation);
}

void Sender::Stop(const Attempt& attempt) {
  const auto of_attempt = [&attempt](const OutLane* lane) { return lane->attempt == &attempt; };
  const auto unqueue = [](OutLane* lane) { lane->queued = false; };
  runnable_.Extract(of_attempt, unqueue);
  starved_.Extract(of_attempt, unqueue);
}

}  // namespace wb
