#include "client/src/quarantine.h"

#include <mutex>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace wb::client {

struct Quarantine::Orphans {
  std::mutex mutex;
  std::list<Kept> all;
};

Quarantine::Orphans& Quarantine::AllOrphans() {
  static auto* const orphans = new Orphans;  // for ever: sessions may end after main
  return *orphans;
}

bool Quarantine::Ended(const Kept& kept, Milliseconds patience) {
  pollfd end{kept.daemon.handle.get(), POLLIN, 0};
  return kept.daemon.handle && ::poll(&end, 1, static_cast<int>(patience.count())) > 0;
}

Quarantine::Quarantine(std::vector<BufferMemory> memory,
                       PeerProcess daemon,
                       std::uint64_t incarnation,
                       std::string cause) {
  kept_.push_back(
      Kept{std::move(memory), std::move(daemon), incarnation, std::move(cause), ::getpid()});
}

Quarantine::~Quarantine() {
  if (kept_.empty() || ::getpid() != kept_.front().process || DaemonEnded()) return;
  Orphans& orphans = AllOrphans();
  const std::lock_guard<std::mutex> lock(orphans.mutex);
  orphans.all.splice(orphans.all.end(), kept_);
}

void Quarantine::FreeEnded() {
  Orphans& orphans = AllOrphans();
  // In a child after fork the thread that has it may not exist.
  const std::unique_lock<std::mutex> lock(orphans.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  orphans.all.remove_if([](const Kept& kept) { return Ended(kept, Milliseconds::zero()); });
}

bool Quarantine::DaemonEnded(Milliseconds patience) const {
  return Ended(kept_.front(), patience);
}

bool Quarantine::EndedByJoin(std::uint64_t incarnation) const {
  // A socket has another daemon only when the one before has ended; unless its path was moved away.
  const Kept& kept = kept_.front();
  return incarnation == kept.incarnation || !kept.daemon.handle || DaemonEnded();
}

std::string Quarantine::Why() const {
  const Kept& kept = kept_.front();
  const pid_t pid = kept.daemon.pid;
  return "the daemon" + (pid > 0 ? " (pid " + std::to_string(pid) + ")" : "") +
         ", which did not answer " + kept.cause +
         (kept.daemon.handle ? ", lives" : ", is not known to have ended");
}

}  // namespace wb::client
