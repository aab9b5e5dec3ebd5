#include "daemon/leader/state.h"

#include <algorithm>

namespace wb {

Publication* LeaderJob::InState(PublicationState state) {
  const auto found = std::find_if(publications.rbegin(), publications.rend(),
                                  [&](const auto& entry) { return entry.second.state == state; });
  return found == publications.rend() ? nullptr : &found->second;
}

Publication* LeaderJob::Find(Version version) {
  const auto found = publications.find(version);
  return found == publications.end() ? nullptr : &found->second;
}

std::set<std::string> LeaderJob::NodesOfGroup(const std::string& group) const {
  std::set<std::string> nodes;
  for (const Member* member : members.OfGroup(group)) nodes.insert(member->node());
  return nodes;
}

LeaderJob* LeaderState::JobOf(const SessionId& session) {
  const auto found = job_of_session.find(session);
  return found == job_of_session.end() ? nullptr : &jobs.at(found->second);
}

}  // namespace wb
