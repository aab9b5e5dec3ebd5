#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "client/src/deadline.h"
#include "client/src/layout_draft.h"
#include "client/src/packet_socket.h"

namespace wb::client {

/// Memory that a daemon may still read or write, since a call ended without its answer: kept, also
/// beyond its session, until the daemon's end is seen or a Join over the same memory is granted.
/// Thread-compatible.
class Quarantine {
 public:
  /// `cause` says what was not answered: "Receive of version 7".
  Quarantine(std::vector<BufferMemory> memory,
             PeerProcess daemon,
             std::uint64_t incarnation,
             std::string cause);
  Quarantine(Quarantine&&) noexcept = default;
  Quarantine& operator=(Quarantine&&) = delete;
  Quarantine(const Quarantine&) = delete;
  Quarantine& operator=(const Quarantine&) = delete;
  /// Unless End was called, its memory outlives it, until FreeEnded finds the daemon's end.
  ~Quarantine();
  /// Lets the memory go of quarantines that are gone themselves and whose daemons have ended. Those
  /// whose daemon's end cannot be seen stay as long as the process. Thread-safe.
  static void FreeEnded();

  /// The daemon's end has been seen; waits at most `patience` for it.
  bool DaemonEnded(Milliseconds patience = Milliseconds::zero()) const;
  /// Whether a Join over the memory, granted by the daemon of this incarnation, ends it: not if
  /// that is another one than the one that may touch it, which lives.
  bool EndedByJoin(std::uint64_t incarnation) const;
  /// Nothing touches the memory any more. The last call.
  void End() { kept_.clear(); }
  /// "the daemon (pid 12), which did not answer Receive of version 7, lives".
  std::string Why() const;

 private:
  struct Kept {
    std::vector<BufferMemory> memory;
    PeerProcess daemon;
    std::uint64_t incarnation = 0;
    std::string cause;
    pid_t process;  // that it belongs to: a child after fork keeps nothing
  };
  /// Those of quarantines that are gone.
  struct Orphans;
  static Orphans& AllOrphans();
  static bool Ended(const Kept& kept, Milliseconds patience);

  std::list<Kept> kept_;  // one, or none: so that it can be left behind without an allocation
};

}  // namespace wb::client
