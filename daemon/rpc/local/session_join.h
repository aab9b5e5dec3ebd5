#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/move/session_calls.h"
#include "daemon/rpc/local/admission.h"
#include "daemon/rpc/local/memory_claims.h"
#include "planner/base/fd_handle.h"
#include "proto/v1.h"

namespace wb {

struct JoinLimits {
  std::string node;                // of this daemon
  std::uint64_t layout_bytes = 0;  // of a serialised layout: limits.message_bytes
};

/// The first part of a session: JoinRequest, the layout in parts, the buffers with a descriptor
/// each. Every field is checked here, in order; the first refusal ends it. Two things take too long
/// for the loop and are its owner's to have done elsewhere: the check of a layout that has arrived,
/// and making the opened memory present.
///
/// Invariant: memory grows by what has arrived, never by what was announced. Descriptors are
/// closed when they are mapped or refused. Loop-confined.
class SessionJoin {
 public:
  /// A layout, checked, with the id of what its equal replicas have in common.
  struct CheckedLayout {
    Registration registration;
    ContentsId contents;
  };
  /// The check of a layout: touches nothing of the join, and may run on any thread.
  using LayoutCheck = std::function<absl::StatusOr<CheckedLayout>()>;

  /// `ticket` and `claims` are of the session, `files` of the door; they outlive the join.
  SessionJoin(JoinLimits limits, AdmissionTicket& ticket, SessionClaims& claims, MappedFiles& files)
      : limits_(std::move(limits)), ticket_(ticket), claims_(claims), files_(files) {}

  /// A message before JoinFinish, with the descriptors that came with it.
  absl::Status Take(const v1::ClientMessage& message, std::vector<FdHandle> descriptors);
  /// After a Take: the check that is to be done before the next, if the layout is whole now.
  std::optional<LayoutCheck> TakeLayoutCheck();
  absl::Status SetLayout(absl::StatusOr<CheckedLayout> checked);
  /// At JoinFinish: everything the session brings, under the id it was given.
  absl::StatusOr<SessionOpening> Finish(SessionId session);

  /// "policy/0" once the request was taken, "" before; likewise the job.
  const std::string& name() const { return name_; }
  const std::string& job() const { return request_.job(); }
  /// The version that the worker says it holds in doubt; 0: none.
  Version in_doubt() const {
    return memory_ == MemoryState::kInDoubt ? Version(request_.held_version()) : Version();
  }

 private:
  enum class Step : std::uint8_t { kRequest, kLayout, kCheck, kBuffers, kFinished };

  absl::Status TakeRequest(const v1::JoinRequest& request);
  absl::Status TakeLayoutPart(const v1::LayoutPart& part);
  absl::Status TakeBuffer(const v1::AttachBuffer& attach, std::vector<FdHandle> descriptors);
  absl::Status CheckBuffer(const v1::AttachBuffer& attach) const;
  absl::Status CheckEpoch(const v1::AttachBuffer& attach) const;
  absl::Status CheckDevice(const v1::AttachBuffer& attach) const;
  absl::StatusOr<Region> OpenMemory(const v1::AttachBuffer& attach, int fd);
  absl::Status AllowUnused();
  absl::Status AdmitSnapshots();
  absl::StatusOr<std::vector<Region>> MapSnapshots() const;
  absl::Status OutOfOrder(const v1::ClientMessage& message) const;

  const JoinLimits limits_;
  AdmissionTicket& ticket_;
  SessionClaims& claims_;
  MappedFiles& files_;
  Step step_ = Step::kRequest;
  std::string name_;
  v1::JoinRequest request_;
  MemoryState memory_ = MemoryState::kEmpty;
  std::string layout_bytes_;  // of the parts so far
  Registration registration_;
  ContentsId contents_;
  absl::flat_hash_map<std::string, std::size_t> index_of_;  // buffer name -> its place
  std::vector<std::optional<OpenedBuffer>> buffers_;        // one per buffer of the layout
  std::vector<bool> used_;                                  // likewise: some piece lies in it
  std::uint32_t attached_ = 0;
  Epoch epoch_;
};

}  // namespace wb
