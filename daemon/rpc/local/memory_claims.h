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

/// Which stretches of which memfds the sessions of one daemon hold, whatever their job.
///
/// Invariant: a stretch that is written shares no byte with any other; only those that are read
/// alone may lie over each other. Loop-confined.
class MemoryClaims {
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

  HeldMap::iterator Meeting(const File& file, std::uint64_t session, const MemoryClaim& claim);
  const MemoryClaim* FindConflict(const File& file, const MemoryClaim& claim);
  void Insert(const File& file, std::uint64_t session, MemoryClaim claim);
  void Erase(const File& file, std::uint64_t session);

  HeldMap held_;
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
  /// name the two buffers, their workers and stretches.
  absl::Status Claim(int fd, MemoryClaim claim);
  void Release();

 private:
  MemoryClaims& claims_;
  const std::uint64_t session_;
  std::vector<MemoryClaims::File> files_;  // that it has claims in; some may come twice
};

}  // namespace wb
