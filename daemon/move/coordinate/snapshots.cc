#include "daemon/move/coordinate/snapshots.h"

#include <algorithm>

namespace wb {

bool Snapshots::Copying(const Session& session) {
  return session.publish.has_value() && session.publish->snapshot.has_value() &&
         session.publish->snapshot->copying.has_value();
}

void Snapshots::Begin(Session& session) {
  const SnapshotId id(state_.next_snapshot++);
  session.snapshot->version = Version();
  session.publish->snapshot->copying = id;
  state_.runner->TakeSnapshot({id, session.snapshot->parts});
}

void Snapshots::Drop(const Session& session) const {
  if (!Copying(session)) return;
  state_.runner->DropSnapshot(*session.publish->snapshot->copying);
}

Session* Snapshots::OnEnded(SnapshotId id) {
  const auto found =
      std::find_if(state_.sessions.begin(), state_.sessions.end(), [id](const auto& entry) {
        return Copying(entry.second) && entry.second.publish->snapshot->copying == id;
      });
  if (found == state_.sessions.end()) return nullptr;
  found->second.publish->snapshot->copying.reset();
  return &found->second;
}

}  // namespace wb
