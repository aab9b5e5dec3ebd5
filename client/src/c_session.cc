// The C functions of sessions.
#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include <sys/random.h>

#include "client/include/weightbridge/weightbridge.h"
#include "client/src/c_handles.h"
#include "client/src/last_error.h"
#include "client/src/sized_struct.h"

namespace wb::client {
namespace {

constexpr Milliseconds kDefaultJoinTimeout{30'000};
constexpr Milliseconds kDefaultCallTimeout{600'000};

std::string Text(const char* text) {
  return text != nullptr ? text : "";
}

/// Timeouts travel as 32-bit milliseconds.
Result<Milliseconds> TakeTimeout(std::int64_t timeout_ms, const char* what) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (timeout_ms >= 0 && timeout_ms <= kMost) return Milliseconds(timeout_ms);
  return Invalid(std::string(what) + ": timeout_ms is " + std::to_string(timeout_ms) +
                 ", want 0 to " + std::to_string(kMost));
}

Result<Milliseconds> TakeTimeout(std::int64_t timeout_ms, const char* what, Milliseconds usual) {
  Result<Milliseconds> taken = TakeTimeout(timeout_ms, what);
  if (taken.ok() && *taken == Milliseconds::zero()) return usual;
  return taken;
}

Result<std::uint64_t> DrawIncarnation() {
  std::uint64_t drawn = 0;
  while (drawn == 0) {
    const ssize_t got = ::getrandom(&drawn, sizeof(drawn), 0);
    if (got < 0 && errno != EINTR) return SystemError(errno, "getrandom");
    if (got >= 0 && static_cast<std::size_t>(got) < sizeof(drawn)) drawn = 0;
  }
  return drawn;
}

/// Whether `source` is a snapshot.
Result<bool> TakeSource(wb_source source, const char* what) {
  if (source == WB_SOURCE_IN_PLACE || source == WB_SOURCE_SNAPSHOT) {
    return source == WB_SOURCE_SNAPSHOT;
  }
  return Invalid(std::string(what) + ": source is " + std::to_string(source) +
                 ", want WB_SOURCE_IN_PLACE or WB_SOURCE_SNAPSHOT");
}

Result<WorkerIdentity> TakeIdentity(const wb_join_options& options, v1::Role role) {
  const Result<bool> snapshots = TakeSource(options.source, "join");
  if (!snapshots.ok()) return snapshots.error();
  if (options.rank == nullptr) {
    return Invalid("join of group " + Text(options.group) +
                   ": rank is required; a missing one is not taken for 0");
  }
  WorkerIdentity identity{Text(options.socket), Text(options.job), role,
                          Text(options.group),  *options.rank,     options.world_size,
                          options.incarnation,  *snapshots};
  if (identity.incarnation == 0) {
    const Result<std::uint64_t> drawn = DrawIncarnation();
    if (!drawn.ok()) return drawn.error();
    identity.incarnation = *drawn;
  }
  return identity;
}

wb_status Join(const wb_join_options* options,
               const wb_layout* layout,
               wb_session** session,
               v1::Role role) {
  return Run([&]() -> Result<void> {
    if (layout == nullptr || session == nullptr) return Invalid("join: layout or session is NULL");
    const Result<wb_join_options> taken = TakeStruct(options, "wb_join_options");
    if (!taken.ok()) return taken.error();
    const Result<Milliseconds> timeout =
        TakeTimeout(taken->timeout_ms, "join", kDefaultJoinTimeout);
    if (!timeout.ok()) return timeout.error();
    Result<WorkerIdentity> identity = TakeIdentity(*taken, role);
    if (!identity.ok()) return identity.error();
    Result<Enrolment> enrolment = MakeEnrolment(std::move(*identity), layout->draft);
    if (!enrolment.ok()) return enrolment.error();
    Result<Session> joined = Session::Join(std::move(*enrolment), *timeout);
    if (!joined.ok()) return joined.error();
    *session = std::make_unique<wb_session>(std::move(*joined)).release();
    return {};
  });
}

/// The options of a call; NULL means the usual ones.
template <typename T>
Result<T> TakeOptions(const T* given, const char* name) {
  if (given == nullptr) return T{};
  return TakeStruct(given, name);
}

Result<PublishWish> TakeWish(const wb_publish_options& options) {
  if (options.required_groups == nullptr && options.required_group_count > 0) {
    return Invalid("publish: required_groups is NULL, required_group_count is " +
                   std::to_string(options.required_group_count));
  }
  const Result<bool> snapshot = TakeSource(options.source, "publish");
  if (!snapshot.ok()) return snapshot.error();
  PublishWish wish{Text(options.label), {}, *snapshot};
  for (std::size_t i = 0; i < options.required_group_count; ++i) {
    wish.required_groups.push_back(Text(options.required_groups[i]));
  }
  return wish;
}

wb_publish_report ReportOf(const v1::PublishReply& reply, double total_seconds) {
  wb_publish_report report{};
  report.version = reply.version();
  report.bytes_sent = reply.bytes_sent();
  report.wait_seconds = reply.wait_seconds();
  report.move_seconds = reply.move_seconds();
  report.total_seconds = total_seconds;
  report.pack_seconds = reply.pack_seconds();
  report.wire_seconds = reply.wire_seconds();
  report.copy_seconds = reply.copy_seconds();
  report.snapshot_seconds = reply.snapshot_seconds();
  report.previous_message = "";
  return report;
}

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

}  // namespace
}  // namespace wb::client

using wb::client::GiveStruct;
using wb::client::Invalid;
using wb::client::kDefaultCallTimeout;
using wb::client::Milliseconds;
using wb::client::PublishWish;
using wb::client::ReportOf;
using wb::client::Result;
using wb::client::Run;
using wb::client::SecondsSince;
using wb::client::SteadyClock;
using wb::client::TakeOptions;
using wb::client::TakeTimeout;
using wb::client::TakeWish;
using wb::client::Text;
namespace v1 = wb::v1;

extern "C" {

wb_status wb_join_trainer(const wb_join_options* options,
                          const wb_layout* layout,
                          wb_session** session) {
  return wb::client::Join(options, layout, session, v1::TRAINER);
}

wb_status wb_join_rollout(const wb_join_options* options,
                          const wb_layout* layout,
                          wb_session** session) {
  return wb::client::Join(options, layout, session, v1::ROLLOUT);
}

wb_status wb_session_leave(wb_session* session, const char* reason) {
  return Run([&]() -> Result<void> {
    if (session == nullptr) return Invalid("leave: session is NULL");
    return session->session.Leave(Text(reason));
  });
}

void wb_session_destroy(wb_session* session) {
  const std::unique_ptr<wb_session> owned(session);
}

const char* wb_session_id(const wb_session* session) {
  return session != nullptr ? session->session.id().c_str() : "";
}

const char* wb_session_node(const wb_session* session) {
  return session != nullptr ? session->session.node().c_str() : "";
}

wb_memory_state wb_session_memory_state(const wb_session* session) {
  return session != nullptr ? session->session.memory_state() : WB_MEMORY_EMPTY;
}

uint64_t wb_session_held_version(const wb_session* session) {
  return session != nullptr ? session->session.held_version() : 0;
}

wb_status wb_publish(wb_session* session,
                     uint64_t version,
                     const wb_publish_options* options,
                     wb_publish_report* report) {
  const SteadyClock::time_point start = SteadyClock::now();
  return Run([&]() -> Result<void> {
    if (session == nullptr) return Invalid("publish: session is NULL");
    const Result<wb_publish_options> taken = TakeOptions(options, "wb_publish_options");
    if (!taken.ok()) return taken.error();
    const Result<Milliseconds> timeout =
        TakeTimeout(taken->timeout_ms, "publish", kDefaultCallTimeout);
    if (!timeout.ok()) return timeout.error();
    const Result<PublishWish> wish = TakeWish(*taken);
    if (!wish.ok()) return wish.error();
    const Result<v1::PublishReply> reply = session->session.Publish(version, *wish, *timeout);
    if (!reply.ok()) return reply.error();
    const wb::client::PastPublication& previous = session->session.previous();
    wb_publish_report given = ReportOf(*reply, SecondsSince(start));
    given.previous_version = previous.version;
    given.previous_code = previous.code;
    given.previous_message = previous.message.c_str();
    GiveStruct(given, report);
    return {};
  });
}

wb_status wb_wait_published(wb_session* session,
                            uint64_t version,
                            int64_t timeout_ms,
                            wb_publish_report* report) {
  const SteadyClock::time_point start = SteadyClock::now();
  return Run([&]() -> Result<void> {
    if (session == nullptr) return Invalid("wait published: session is NULL");
    const Result<Milliseconds> timeout = TakeTimeout(timeout_ms, "wait published");
    if (!timeout.ok()) return timeout.error();
    const Result<v1::PublishReply> reply = session->session.WaitPublished(version, *timeout);
    if (!reply.ok()) return reply.error();
    GiveStruct(ReportOf(*reply, SecondsSince(start)), report);
    return {};
  });
}

size_t wb_publish_outcome_count(const wb_session* session) {
  return session != nullptr ? session->session.outcomes().size() : 0;
}

wb_status wb_publish_outcome(const wb_session* session, size_t index, wb_group_outcome* outcome) {
  return Run([&]() -> Result<void> {
    const size_t count = wb_publish_outcome_count(session);
    if (outcome == nullptr || index >= count) {
      return Invalid("outcome " + std::to_string(index) + " of " + std::to_string(count));
    }
    const v1::GroupOutcome& found = session->session.outcomes()[index];
    *outcome = wb_group_outcome{found.group().c_str(), found.status().code(),
                                found.status().message().c_str()};
    return {};
  });
}

wb_status wb_wait_for_version(wb_session* session,
                              uint64_t at_least,
                              int64_t timeout_ms,
                              uint64_t* version) {
  return Run([&]() -> Result<void> {
    if (session == nullptr) return Invalid("wait for version: session is NULL");
    const Result<Milliseconds> timeout = TakeTimeout(timeout_ms, "wait for version");
    if (!timeout.ok()) return timeout.error();
    const Result<std::uint64_t> found = session->session.WaitForVersion(at_least, *timeout);
    if (!found.ok()) return found.error();
    if (version != nullptr) *version = *found;
    return {};
  });
}

wb_status wb_receive(wb_session* session,
                     uint64_t version,
                     const wb_receive_options* options,
                     wb_receive_report* report) {
  const SteadyClock::time_point start = SteadyClock::now();
  return Run([&]() -> Result<void> {
    if (session == nullptr) return Invalid("receive: session is NULL");
    const Result<wb_receive_options> taken = TakeOptions(options, "wb_receive_options");
    if (!taken.ok()) return taken.error();
    const Result<Milliseconds> timeout =
        TakeTimeout(taken->timeout_ms, "receive", kDefaultCallTimeout);
    if (!timeout.ok()) return timeout.error();
    const Result<v1::ReceiveReply> reply = session->session.Receive(version, *timeout);
    if (!reply.ok()) return reply.error();
    GiveStruct(
        wb_receive_report{0, reply->version(), reply->bytes_received(), reply->wait_seconds(),
                          reply->move_seconds(), SecondsSince(start), reply->wire_seconds(),
                          reply->scatter_seconds(), reply->copy_seconds()},
        report);
    return {};
  });
}

}  // extern "C"
