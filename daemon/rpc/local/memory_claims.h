#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/status/status.h"

#include "transport/memory/region.h"

namespace wb {

/// A stretch of a memfd, and whose buffer it is.
struct MemoryClaim {
  std::string worker;  // "engine0/0"
  std::string job;
  std::string buffer;
  RegionAccess access = RegionAccess::kReadOnly;
  std::uint64_t offset = 0;  // in the memfd
  std::uint64_t bytes = 0;
  std::uint64_t end() const { return offset + bytes; }
};

/// Which stretches of which memfds the sessions of one daemon hold, whatever their job. A session
/// that has ended holds its own until nothing of them is mapped any more.
///
/// Invariant: a stretch that is written shares no byte with any other; only those that are read
/// alone may lie over each other. Loop-confined.
class MemoryClaims {
 public:
  /// What the session of this number has left is not mapped any more.
  void Free(std::uint64_t session);

 private:
  friend class SessionClaims;
  struct File {
    dev_t device;
    ino_t inode;
    auto operator<=>(const File&) const = default;
  };
  struct Key {
    File file;
    std::uint64_t session;
    std::uint64_t from;
    auto operator<=>(const Key&) const = default;
  };
  /// From its key's `from` to `to`: what of `claim` none that came later covers.
  struct Held {
    std::uint64_t to;
    MemoryClaim claim;
  };
  // Of one session those of one file are disjoint: whatever meets a stretch is next to its end.
  using HeldMap = std::map<Key, Held>;

  struct Conflict {
    const MemoryClaim* claim = nullptr;  // none
    bool left = false;                   // of a session that has ended
  };

  HeldMap::iterator Meeting(const File& file, std::uint64_t session, const MemoryClaim& claim);
  /// One that does not pass by itself, if there is one.
  Conflict FindConflict(const File& file, const MemoryClaim& claim);
  void Insert(const File& file, std::uint64_t session, MemoryClaim claim);
  void Erase(const File& file, std::uint64_t session);

  HeldMap held_;
  std::map<std::uint64_t, std::vector<File>> left_;  // sessions that have ended
  std::uint64_t next_session_ = 0;
};

/// What one session claims, all given back together. Loop-confined.
class SessionClaims {
 public:
  /// `claims` outlives it.
  explicit SessionClaims(MemoryClaims& claims)
      : claims_(claims), session_(claims.next_session_++) {}
  SessionClaims(const SessionClaims&) = delete;
  SessionClaims& operator=(const SessionClaims&) = delete;
  ~SessionClaims() { Release(); }

  /// `claim`, which lies within the memfd `fd`. INVALID_ARGUMENT where the session has bytes of it
  /// already, ALREADY_EXISTS where another session has, which passes with that session's end; both
  /// name the two buffers, their workers and stretches. Where a session that has ended still has
  /// bytes of it, the claim waits.
  absl::Status Claim(int fd, MemoryClaim claim);
  /// Makes the claims that wait. UNAVAILABLE names what one waits for; else as Claim.
  absl::Status Settle();
  void Release();
  /// The session has ended and its memory is still mapped: what it has claimed stays claimed, until
  /// MemoryClaims::Free.
  void Leave();
  std::uint64_t session() const { return session_; }

 private:
  struct Waiting {
    MemoryClaims::File file;
    MemoryClaim claim;
  };
  absl::Status Take(const MemoryClaims::File& file, MemoryClaim claim, bool& waits);

  MemoryClaims& claims_;
  const std::uint64_t session_;
  std::vector<MemoryClaims::File> files_;  // that it has claims in; some may come twice
  std::vector<Waiting> waiting_;
};

}  // namespace wb
