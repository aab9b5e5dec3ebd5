#include "daemon/rpc/local/memory_claims.h"

#include <cerrno>
#include <iterator>
#include <utility>

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace wb {
namespace {

bool MayShare(const MemoryClaim& a, const MemoryClaim& b) {
  return a.access == RegionAccess::kReadOnly && b.access == RegionAccess::kReadOnly;
}

std::string Stretch(const MemoryClaim& claim) {
  return absl::StrFormat("bytes [%d, %d)", claim.offset, claim.end());
}

}  // namespace

/// One of the session's that shares bytes with `claim`, or the end.
MemoryClaims::HeldMap::iterator MemoryClaims::Meeting(const File& file,
                                                      std::uint64_t session,
                                                      const MemoryClaim& claim) {
  const auto next = held_.lower_bound(Key{file, session, claim.end()});
  if (next == held_.begin()) return held_.end();
  const auto last = std::prev(next);
  const bool meets =
      last->first.file == file && last->first.session == session && last->second.to > claim.offset;
  return meets ? last : held_.end();
}

MemoryClaims::Conflict MemoryClaims::FindConflict(const File& file, const MemoryClaim& claim) {
  Conflict passing;
  auto at = held_.lower_bound(Key{file, 0, 0});
  while (at != held_.end() && at->first.file == file) {
    const std::uint64_t session = at->first.session;
    const auto meeting = Meeting(file, session, claim);
    // A session either reads all of its memory or writes all of it: one of its stretches is enough.
    if (meeting != held_.end() && !MayShare(meeting->second.claim, claim)) {
      const Conflict found{&meeting->second.claim, left_.contains(session)};
      if (!found.left) return found;
      passing = found;
    }
    at = held_.lower_bound(Key{file, session + 1, 0});
  }
  return passing;
}

void MemoryClaims::Insert(const File& file, std::uint64_t session, MemoryClaim claim) {
  for (auto old = Meeting(file, session, claim); old != held_.end();
       old = Meeting(file, session, claim)) {
    const auto node = held_.extract(old);
    const std::uint64_t from = node.key().from;
    const Held& held = node.mapped();
    if (from < claim.offset) {
      held_.emplace(Key{file, session, from}, Held{claim.offset, held.claim});
    }
    if (held.to > claim.end()) {
      held_.emplace(Key{file, session, claim.end()}, Held{held.to, held.claim});
    }
  }
  const std::uint64_t from = claim.offset;
  const std::uint64_t to = claim.end();
  held_.emplace(Key{file, session, from}, Held{to, std::move(claim)});
}

void MemoryClaims::Erase(const File& file, std::uint64_t session) {
  held_.erase(held_.lower_bound(Key{file, session, 0}),
              held_.lower_bound(Key{file, session + 1, 0}));
}

void MemoryClaims::Free(std::uint64_t session) {
  const auto left = left_.extract(session);
  if (left.empty()) return;
  for (const File& file : left.mapped()) Erase(file, session);
}

absl::Status SessionClaims::Claim(int fd, MemoryClaim claim) {
  if (claim.bytes == 0) return absl::OkStatus();
  struct stat info {};
  if (fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, "memory: fstat");
  const MemoryClaims::File file{info.st_dev, info.st_ino};
  bool waits = false;
  absl::Status taken = Take(file, claim, waits);
  if (!waits) return taken;
  waiting_.push_back({file, std::move(claim)});
  return absl::OkStatus();
}

absl::Status SessionClaims::Take(const MemoryClaims::File& file, MemoryClaim claim, bool& waits) {
  const auto [other, left] = claims_.FindConflict(file, claim);
  waits = left;
  if (other != nullptr) {
    const std::string meet =
        absl::StrFormat("%s of its memfd meet %s of buffer '%s' of %s, job %s", Stretch(claim),
                        Stretch(*other), other->buffer, other->worker, other->job);
    if (left) {
      return absl::UnavailableError(meet + ", whose session has ended and whose memory is in use");
    }
    const bool own = claims_.Meeting(file, session_, claim) != claims_.held_.end();
    return {own ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kAlreadyExists,
            meet + "; want memory that no other open buffer has, or that trainers alone share"};
  }
  claims_.Insert(file, session_, std::move(claim));
  if (files_.empty() || files_.back() != file) files_.push_back(file);
  return absl::OkStatus();
}

absl::Status SessionClaims::Settle() {
  while (!waiting_.empty()) {
    const Waiting& next = waiting_.back();
    bool waits = false;
    const absl::Status taken = Take(next.file, next.claim, waits);
    if (!taken.ok()) {
      return {taken.code(), absl::StrCat("buffer '", next.claim.buffer, "' of ", next.claim.worker,
                                         ": ", taken.message())};
    }
    waiting_.pop_back();
  }
  return absl::OkStatus();
}

void SessionClaims::Release() {
  waiting_.clear();
  for (const MemoryClaims::File& file : files_) claims_.Erase(file, session_);
  files_.clear();
}

void SessionClaims::Leave() {
  waiting_.clear();
  if (!files_.empty()) claims_.left_.emplace(session_, std::exchange(files_, {}));
}

}  // namespace wb
