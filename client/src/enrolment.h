#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "client/src/deadline.h"
#include "client/src/door.h"
#include "client/src/errors.h"
#include "client/src/layout_draft.h"
#include "proto/v1.h"

namespace wb::client {

/// Who a worker is, and where its daemon listens. Checked by MakeEnrolment.
struct WorkerIdentity {
  std::string socket;
  std::string job;
  v1::Role role = v1::ROLE_UNSPECIFIED;
  std::string group;
  std::int32_t rank = 0;
  std::int32_t world_size = 0;
  std::uint64_t incarnation = 0;  // of this process start
  bool snapshots = false;         // it will publish some

  /// "engine0/1"
  std::string name() const { return group + "/" + std::to_string(rank); }
};

/// What the library knows of the worker's memory.
struct HeldMemory {
  wb_memory_state state = WB_MEMORY_EMPTY;
  std::uint64_t version = 0;  // 0 unless valid or in doubt
  std::uint64_t attempt = 0;  // by which it came, when in doubt
};

/// What memory holds once it is known whether the version that it holds in doubt has committed.
inline HeldMemory Decided(const HeldMemory& held, bool committed) {
  return committed ? HeldMemory{WB_MEMORY_VALID, held.version, 0}
                   : HeldMemory{WB_MEMORY_INVALID, 0, 0};
}

/// Everything a worker brings when it joins, and joins again. Immutable.
struct Enrolment {
  WorkerIdentity identity;
  std::string layout;  // serialised weightbridge.v1.Layout
  std::vector<std::pair<std::string, BufferMemory>> buffers;

  std::vector<BufferMemory> memory() const;
};

/// INVALID_ARGUMENT names what is missing, or both values where the layout names another worker.
[[nodiscard]] Result<Enrolment> MakeEnrolment(WorkerIdentity identity, const LayoutDraft& draft);

/// A session that the daemon has opened.
struct OpenedSession {
  Door door;
  std::string id;
  std::string node;
  std::uint64_t daemon = 0;  // its incarnation
  HeldMemory held;           // what was in doubt may be decided meanwhile
};

/// Connects and joins. The error is the daemon's own with every reason, or names the socket.
[[nodiscard]] Result<OpenedSession> OpenSession(const Enrolment& enrolment,
                                                const HeldMemory& held,
                                                Deadline deadline);

}  // namespace wb::client
