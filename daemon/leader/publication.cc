#include "daemon/leader/publication.h"

#include <chrono>
#include <cstdlib>

#include <spdlog/spdlog.h>

namespace wb {
namespace {

double Milliseconds(Timers::Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

template <typename State>
void RequireLegal(State from, State to) {
  if (CanMove(from, to)) return;
  spdlog::critical("illegal step {} -> {}", Name(from), Name(to));
  std::abort();
}

}  // namespace

Delivery* Publication::DeliveryTo(const std::string& group) {
  for (std::map<std::string, Delivery>* all : {&late, &deliveries}) {
    if (const auto found = all->find(group); found != all->end()) return &found->second;
  }
  return nullptr;
}

void Step(const std::string& job,
          Publication& publication,
          PublicationState to,
          Timers::Clock::time_point now) {
  RequireLegal(publication.state, to);
  // A delivery that has failed has said why.
  spdlog::info("job={} version={} {}->{} after_ms={:.1f} {}", job, publication.version.value(),
               Name(publication.state), Name(to), Milliseconds(now - publication.since),
               publication.deliveries.empty()
                   ? publication.status.ToString()
                   : absl::StatusCodeToString(publication.status.code()));
  publication.state = to;
  publication.since = now;
}

void Step(const std::string& job,
          const Publication& publication,
          Delivery& delivery,
          DeliveryState to,
          Timers::Clock::time_point now) {
  RequireLegal(delivery.state, to);
  spdlog::info("job={} version={} group={} {}->{} after_ms={:.1f} {}", job,
               publication.version.value(), delivery.group, Name(delivery.state), Name(to),
               Milliseconds(now - delivery.since), delivery.status.ToString());
  delivery.state = to;
  delivery.since = now;
}

}  // namespace wb
