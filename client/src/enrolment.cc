#include "client/src/enrolment.h"

#include <algorithm>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace wb::client {
namespace {

constexpr std::uint32_t kProtocol = 1;
constexpr std::size_t kPartBytes = 49'152;  // leaves room for the rest of a packet

Result<void> CheckIdentity(const WorkerIdentity& identity) {
  if (identity.socket.empty()) return Invalid("join: no socket given");
  if (identity.job.empty()) return Invalid("join: no job given");
  if (identity.group.empty()) return Invalid("join: no group given");
  if (identity.world_size < 1) {
    return Invalid("join: world_size is " + std::to_string(identity.world_size) + ", want >= 1");
  }
  if (identity.rank < 0 || identity.rank >= identity.world_size) {
    return Invalid("join: rank is " + std::to_string(identity.rank) + ", want 0 to " +
                   std::to_string(identity.world_size - 1) + " (world_size is " +
                   std::to_string(identity.world_size) + ")");
  }
  if (Result<void> job = CheckUtf8("join: job", identity.job); !job.ok()) return job;
  return CheckUtf8("join: group", identity.group);
}

/// A layout that came serialised may name its worker: then it must be this one.
Result<void> CheckSameWorker(const WorkerIdentity& identity, const v1::Layout& layout) {
  const v1::Worker& worker = layout.worker();
  if (!layout.job().empty() && layout.job() != identity.job) {
    return Invalid("join: job is " + identity.job + ", the layout's is " + layout.job());
  }
  if (!worker.group().empty() && worker.group() != identity.group) {
    return Invalid("join: group is " + identity.group + ", the layout's is " + worker.group());
  }
  if (worker.has_rank() && worker.rank() != identity.rank) {
    return Invalid("join: rank is " + std::to_string(identity.rank) + ", the layout's is " +
                   std::to_string(worker.rank()));
  }
  if (worker.role() != v1::ROLE_UNSPECIFIED && worker.role() != identity.role) {
    return Invalid("join: the layout of " + identity.name() + " is the other role's");
  }
  return {};
}

Result<void> CheckMemory(const LayoutDraft& draft) {
  std::vector<std::string> named;
  for (const v1::Param& param : draft.wire().worker().params()) {
    named.push_back(BufferOf(param));
    if (param.pieces_size() > 0 && draft.memory().count(BufferOf(param)) == 0) {
      return Invalid("join: param " + param.name() + " lies in buffer " + BufferOf(param) +
                     ", which has no memory");
    }
  }
  std::sort(named.begin(), named.end());
  for (const auto& [buffer, memory] : draft.memory()) {
    if (!std::binary_search(named.begin(), named.end(), buffer)) {
      return Invalid("join: memory is given for buffer " + buffer + ", which no param names");
    }
  }
  return {};
}

/// Equal layouts give equal bytes, so that the daemon can tell them by digest.
std::string SerializeInOneOrder(const v1::Layout& layout) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  layout.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

v1::MemoryState ToWire(wb_memory_state state) {
  switch (state) {
    case WB_MEMORY_VALID:
      return v1::MEMORY_VALID;
    case WB_MEMORY_INVALID:
      return v1::MEMORY_INVALID;
    case WB_MEMORY_IN_DOUBT:
      return v1::MEMORY_IN_DOUBT;
    default:
      return v1::MEMORY_EMPTY;
  }
}

v1::ClientMessage JoinMessage(const Enrolment& enrolment, const HeldMemory& held) {
  const WorkerIdentity& identity = enrolment.identity;
  v1::ClientMessage message;
  v1::JoinRequest& join = *message.mutable_join();
  join.set_protocol(kProtocol);
  join.set_job(identity.job);
  join.set_role(identity.role);
  join.set_group(identity.group);
  join.set_rank(identity.rank);
  join.set_world_size(identity.world_size);
  join.set_incarnation(identity.incarnation);
  join.set_snapshots(identity.snapshots);
  join.set_held_version(held.version);
  join.set_memory(ToWire(held.state));
  join.set_attempt(held.attempt);
  join.set_layout_bytes(enrolment.layout.size());
  join.set_buffers(static_cast<std::uint32_t>(enrolment.buffers.size()));
  return message;
}

v1::ClientMessage AttachMessage(const std::string& buffer, const BufferMemory& memory) {
  v1::ClientMessage message;
  v1::AttachBuffer& attach = *message.mutable_attach_buffer();
  attach.set_buffer(buffer);
  attach.set_offset_bytes(memory.offset_bytes);
  attach.set_bytes(memory.bytes);
  attach.set_epoch(memory.epoch);
  return message;
}

/// What the daemon says of a version in doubt; anything else it says of memory is not its to say.
HeldMemory HeldAfter(const HeldMemory& held, const v1::JoinReply& reply) {
  if (held.state != WB_MEMORY_IN_DOUBT || reply.outcome_version() != held.version) return held;
  const bool committed = reply.outcome() == v1::MEMORY_VALID;
  return committed || reply.outcome() == v1::MEMORY_INVALID ? Decided(held, committed) : held;
}

/// All of a join's messages, in order; the id of the last.
Result<std::uint64_t> PostAll(Door& door,
                              const Enrolment& enrolment,
                              const HeldMemory& held,
                              Deadline deadline) {
  Result<std::uint64_t> posted = door.Post(JoinMessage(enrolment, held), -1, deadline);
  if (!posted.ok()) return posted;
  for (std::size_t at = 0; at < enrolment.layout.size(); at += kPartBytes) {
    v1::ClientMessage message;
    message.mutable_layout_part()->set_data(enrolment.layout.substr(at, kPartBytes));
    posted = door.Post(std::move(message), -1, deadline);
    if (!posted.ok()) return posted;
  }
  for (const auto& [buffer, memory] : enrolment.buffers) {
    posted = door.Post(AttachMessage(buffer, memory), memory.fd->get(), deadline);
    if (!posted.ok()) {
      Error failed = posted.error();
      failed.message = "buffer " + buffer + ": " + failed.message;
      return failed;
    }
  }
  v1::ClientMessage finish;
  finish.mutable_join_finish();
  return door.Post(std::move(finish), -1, deadline);
}

/// The daemon's answer. Any step may be refused under its own id, also one that came before a send
/// that failed: then the refusal is the reason.
Result<v1::JoinReply> AwaitJoin(Door& door,
                                const Result<std::uint64_t>& posted,
                                Deadline deadline) {
  if (!posted.ok() && posted.error().code != WB_UNAVAILABLE) return posted.error();
  const auto is_notice = [](const v1::DaemonMessage& message) {
    return message.id() == 0 && message.status().code() == WB_OK;
  };
  // A daemon that hung up said why before: its reason has arrived.
  const auto next = [&] { return posted.ok() ? door.Next(deadline) : door.Arrived(); };
  Result<v1::DaemonMessage> message = next();
  while (message.ok() && is_notice(*message)) message = next();
  if (!message.ok()) return posted.ok() ? message.error() : posted.error();
  if (message->status().code() != WB_OK) return ErrorFromWire(message->status());
  if (posted.ok() && message->id() == *posted && message->has_join()) {
    return std::move(*message->mutable_join());
  }
  return Error{WB_INTERNAL, "answer " + std::to_string(message->id()) + " is not one to Join", {}};
}

}  // namespace

std::vector<BufferMemory> Enrolment::memory() const {
  std::vector<BufferMemory> memory;
  for (const auto& [name, buffer] : buffers) memory.push_back(buffer);
  return memory;
}

Result<Enrolment> MakeEnrolment(WorkerIdentity identity, const LayoutDraft& draft) {
  if (Result<void> whole = CheckIdentity(identity); !whole.ok()) return whole.error();
  if (Result<void> same = CheckSameWorker(identity, draft.wire()); !same.ok()) return same.error();
  if (Result<void> held = CheckMemory(draft); !held.ok()) return held.error();
  v1::Layout layout = draft.wire();
  layout.set_job(identity.job);
  layout.mutable_worker()->set_role(identity.role);
  layout.mutable_worker()->set_group(identity.group);
  layout.mutable_worker()->set_rank(identity.rank);
  Enrolment enrolment{std::move(identity), SerializeInOneOrder(layout), {}};
  enrolment.buffers.assign(draft.memory().begin(), draft.memory().end());
  return enrolment;
}

Result<OpenedSession> OpenSession(const Enrolment& enrolment,
                                  const HeldMemory& held,
                                  Deadline deadline) {
  const auto named = [&enrolment](Error error) {
    error.message = "join of " + enrolment.identity.name() + " at " + enrolment.identity.socket +
                    ": " + error.message;
    return error;
  };
  Result<Door> door = Door::Open(enrolment.identity.socket, deadline);
  if (!door.ok()) return named(door.error());
  const Result<std::uint64_t> posted = PostAll(*door, enrolment, held, deadline);
  Result<v1::JoinReply> reply = AwaitJoin(*door, posted, deadline);
  if (!reply.ok()) return named(reply.error());
  return OpenedSession{std::move(*door), reply->session(), reply->node(), reply->incarnation(),
                       HeldAfter(held, *reply)};
}

}  // namespace wb::client
