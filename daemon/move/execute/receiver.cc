#include "daemon/move/execute/receiver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "daemon/move/failed_chunk.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

absl::Status Named(const absl::Status& status, const Operation& operation) {
  const Incoming& in = operation.attempt->in[operation.stream];
  const std::string& node = operation.attempt->in_peers[in.peer].node;
  const absl::Status named = PrefixedWithPeer(
      status, node,
      absl::StrCat("chunk ", operation.chunk, " of stream ", in.number, " from ", node));
  return WithFailedChunk(named, {in.number, operation.chunk});
}

bool IsPeer(const Attempt& attempt, Incarnation sender) {
  return std::any_of(attempt.in_peers.begin(), attempt.in_peers.end(),
                     [sender](const InPeer& peer) { return peer.incarnation == sender; });
}

}  // namespace

absl::StatusOr<std::optional<Landing>> Receiver::OnAnnouncement(const AttemptMap& attempts,
                                                                const Announcement& announcement) {
  const absl::StatusOr<ChunkHeader> header = DecodeHeader(announcement.header);
  if (!header.ok()) return Refuse(header.status());
  if (header->kind == MessageKind::kHello) return Greet(announcement);
  WB_ASSIGN_OR_RETURN(const Chunk chunk, Check(attempts, *header, announcement));

  Attempt& attempt = *chunk.attempt;
  Incoming& in = attempt.in[chunk.stream];
  in.chunks[chunk.chunk] = ChunkState::kHeld;
  NoteEndpoint(attempt.in_peers[in.peer], chunk.from);
  if (attempt.state != AttemptState::kMoving) {
    early_.push(chunk);
    return std::nullopt;
  }
  if (NeedsSlot(chunk) && (slots_.free() == 0 || !starved_.empty())) {
    starved_.push(chunk);
    return std::nullopt;
  }
  return Begin(chunk);
}

absl::StatusOr<std::optional<Landing>> Receiver::Greet(const Announcement& announcement) {
  if (announcement.bytes != 0) {
    return Refuse(absl::InvalidArgumentError(
        absl::StrCat("hello with ", announcement.bytes, " bytes, want none")));
  }
  return Landing{MemoryRef{}, operations_.New(Operation::Phase::kHelloIn).tag};
}

absl::StatusOr<Receiver::Chunk> Receiver::Check(const AttemptMap& attempts,
                                                const ChunkHeader& header,
                                                const Announcement& announcement) {
  const auto found = attempts.find(header.attempt);
  if (found == attempts.end()) {
    ++refusals_.late;
    return absl::NotFoundError(absl::StrCat(
        "attempt ", absl::Hex(header.attempt.value(), absl::kZeroPad16), " is not known"));
  }
  Attempt& attempt = *found->second;
  if (!attempt.may_land() && attempt.state != AttemptState::kStaged) {
    ++refusals_.late;
    return absl::CancelledError(absl::StrCat("attempt ",
                                             absl::Hex(header.attempt.value(), absl::kZeroPad16),
                                             " is ", ToString(attempt.state)));
  }
  const auto stream = attempt.in_by_number.find(header.stream);
  const bool known = stream != attempt.in_by_number.end();
  const bool from_peer =
      known ? attempt.in_peers[attempt.in[stream->second].peer].incarnation == header.sender
            : IsPeer(attempt, header.sender);
  if (!from_peer) {
    return Refuse(absl::PermissionDeniedError(absl::StrCat(
        "stream ", header.stream, " is not expected from incarnation ", header.sender.value())));
  }
  // From here on it is the attempt's own peer that sends what does not fit: the two ends do not
  // agree on the plan, and the attempt cannot succeed.
  absl::Status expected =
      known ? CheckExpected(attempt.in[stream->second], header, announcement.bytes)
            : absl::OutOfRangeError(absl::StrCat("no stream ", header.stream, " is expected"));
  if (absl::IsAlreadyExists(expected)) return Refuse(std::move(expected));
  if (!expected.ok()) {
    if (attempt.may_land()) attempt.Fail(expected);  // what is staged stays staged
    return Refuse(std::move(expected));
  }
  return Chunk{&attempt,        stream->second,  header.chunk,
               header.checksum, announcement.id, announcement.from};
}

absl::Status Receiver::CheckExpected(const Incoming& in,
                                     const ChunkHeader& header,
                                     std::uint64_t bytes) const {
  if (header.chunk >= in.stream.chunks()) {
    return absl::OutOfRangeError(absl::StrCat("chunk ", header.chunk, " of stream ", header.stream,
                                              ", want less than ", in.stream.chunks()));
  }
  const std::uint64_t expected = in.stream.chunk_bytes(header.chunk);
  if (header.bytes != expected || bytes != expected) {
    return absl::InvalidArgumentError(absl::StrCat("chunk ", header.chunk, " of stream ",
                                                   header.stream, " says ", header.bytes,
                                                   " bytes and has ", bytes, ", want ", expected));
  }
  if (verify_ && !header.has_checksum) {
    return absl::FailedPreconditionError(
        absl::StrCat("chunk ", header.chunk, " of stream ", header.stream,
                     " has no checksum, but integrity is to be checked here"));
  }
  if (in.chunks[header.chunk] != ChunkState::kAwaited) {
    return absl::AlreadyExistsError(absl::StrCat("chunk ", header.chunk, " of stream ",
                                                 header.stream, " has been received already"));
  }
  return absl::OkStatus();
}

absl::Status Receiver::Refuse(absl::Status reason) {
  ++refusals_.refused;
  return reason;
}

bool Receiver::NeedsSlot(const Chunk& chunk) const {
  return !chunk.attempt->in[chunk.stream].stream.direct(chunk.chunk);
}

void Receiver::NoteEndpoint(InPeer& peer, EndpointId endpoint) const {
  auto& known = peer.endpoints;
  if (std::find(known.begin(), known.end(), endpoint) != known.end()) return;
  known.push_back(endpoint);
  if (const LaneTraits* lane = fabric_.lane(endpoint); lane != nullptr) {
    peer.counters->fabric = lane->name;
  }
}

bool Receiver::OverShm(EndpointId endpoint) const {
  const LaneTraits* lane = fabric_.lane(endpoint);
  return lane != nullptr && lane->path == FabricPath::kShm;
}

Landing Receiver::Begin(const Chunk& chunk) {
  Incoming& in = chunk.attempt->in[chunk.stream];
  in.chunks[chunk.chunk] = ChunkState::kLanding;
  ++chunk.attempt->operations;
  Operation& operation = operations_.New(Operation::Phase::kReceiving);
  operation.attempt = chunk.attempt;
  operation.stream = chunk.stream;
  operation.chunk = chunk.chunk;
  operation.checksum = chunk.checksum;
  operation.has_checksum = verify_;
  operation.over_shm = OverShm(chunk.from);
  operations_.Time(operation, &in.times->wire);
  if (in.stream.direct(chunk.chunk)) {
    operation.memory = in.stream.Memory(chunk.chunk);
    return {in.stream.Ref(chunk.chunk), operation.tag};
  }
  const std::uint64_t bytes = in.stream.chunk_bytes(chunk.chunk);
  operation.slot = slots_.Take();
  operation.memory = slots_.Memory(operation.slot, bytes);
  return {slots_.Ref(operation.slot, bytes), operation.tag};
}

void Receiver::Accept(const Chunk& chunk) {
  const Landing landing = Begin(chunk);
  const absl::Status accepted = fabric_.Accept(chunk.id, landing);
  if (accepted.ok()) return;
  // NOT_FOUND: it has ended with its connection. Else it is still held. No event of it follows.
  static_cast<void>(fabric_.Refuse(chunk.id, accepted));
  OnReceived(*operations_.Find(landing.tag), accepted);
}

void Receiver::Start(const Attempt& attempt) {
  early_.Extract([&attempt](const Chunk& chunk) { return chunk.attempt == &attempt; },
                 [this](const Chunk& chunk) {
                   if (NeedsSlot(chunk)) {
                     starved_.push(chunk);
                   } else {
                     Accept(chunk);
                   }
                 });
}

void Receiver::Pump() {
  while (!starved_.empty() && slots_.free() > 0) Accept(starved_.pop());
}

void Receiver::OnReceived(Operation& operation, const absl::Status& status) {
  if (!status.ok()) {
    operation.attempt->Fail(Named(status, operation));
    End(operation);
    return;
  }
  if (!operation.attempt->may_land()) {
    End(operation);
    return;
  }
  const Incoming& in = operation.attempt->in[operation.stream];
  const CheckedStream& stream = in.stream;
  if (operation.slot != Operation::kNoSlot) {
    stream.Unpack(operation.chunk, operation.memory, operation.steps);
  }
  stream.UnpackExtras(operation.chunk, operation.memory, operation.steps);
  if (operation.steps.empty() && !operation.has_checksum) {
    Landed(operation);
    return;
  }
  operation.phase = Operation::Phase::kUnpacking;
  operations_.Time(operation, &in.times->scatter);
  Submit(*in.copier, operation);
}

void Receiver::OnUnpacked(Operation& operation, std::uint64_t checksum) {
  if (operation.has_checksum && operation.checksum != checksum) {
    operation.attempt->Fail(Named(
        absl::DataLossError("its bytes do not fit the checksum it was sent with"), operation));
    End(operation);
    return;
  }
  Landed(operation);
}

void Receiver::Landed(Operation& operation) {
  Attempt& attempt = *operation.attempt;
  Incoming& in = attempt.in[operation.stream];
  InPeer& peer = attempt.in_peers[in.peer];
  const std::uint64_t bytes = operation.memory.size();
  in.chunks[operation.chunk] = ChunkState::kLanded;
  attempt.awaited_bytes -= bytes;
  attempt.landed_bytes += bytes;
  if (operation.over_shm) attempt.landed_shm_bytes += bytes;
  peer.awaited_bytes -= bytes;
  peer.counters->received_bytes += bytes;
  End(operation);
}

void Receiver::End(Operation& operation) {
  --operation.attempt->operations;
  if (operation.slot != Operation::kNoSlot) slots_.Give(operation.slot);
  operations_.Free(operation);
}

void Receiver::Stop(const Attempt& attempt, const absl::Status& reason) {
  const auto of_attempt = [&attempt](const Chunk& chunk) { return chunk.attempt == &attempt; };
  const auto refuse = [this, &reason](const Chunk& chunk) {
    ++refusals_.late;
    // NOT_FOUND: it has ended with its connection, which told the sender more.
    static_cast<void>(fabric_.Refuse(chunk.id, reason));
  };
  early_.Extract(of_attempt, refuse);
  starved_.Extract(of_attempt, refuse);
}

void Receiver::Forget(EndpointId endpoint) {
  const auto of_endpoint = [endpoint](const Chunk& chunk) { return chunk.from == endpoint; };
  const auto drop = [](const Chunk& chunk) {
    chunk.attempt->in[chunk.stream].chunks[chunk.chunk] = ChunkState::kAwaited;
  };
  early_.Extract(of_endpoint, drop);
  starved_.Extract(of_endpoint, drop);
}

}  // namespace wb
