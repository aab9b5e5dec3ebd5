// client.h: WeightBridge for C++17, a header-only wrapper over the C interface (weightbridge.h,
// whose rules on threads, fork and units hold here too). No exceptions are used or let out.
//
//   SharedBuffer w = *SharedBuffer::Create(2 * 4 * 1024);         // a real program tests .ok()
//   Layout layout;
//   layout.AddTensor("w", Dtype::kFp32, {4, 1024});
//   Param param("w", {2, 1024});
//   param.AddPiece({"w", {0, 0}, {2, 1024}, {0, 0}});             // rows 0 and 1 are ours
//   layout.AddParam(param);
//   layout.SetBuffer("w", w);
//   JoinOptions options;
//   options.socket = "/run/weightbridge/worker.sock";
//   options.job = "run1"; options.group = "engine0"; options.rank = 0; options.world_size = 2;
//   Result<Rollout> rollout = Rollout::Join(options, layout);
//   while (serving) {
//     Result<std::uint64_t> version = rollout->WaitForVersion(rollout->held_version() + 1, 1s);
//     if (version.ok()) { pause(); rollout->Receive(*version, {}); resume(); }
//   }
//
// Not there yet: Rollout::Stage, Commit and Revert (shadow landing).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weightbridge/weightbridge.h"

namespace weightbridge {

/// Why a call failed.
struct Error {
  wb_status code = WB_UNKNOWN;       // as google.rpc.Code; never WB_OK
  std::string message;               // whole by itself: names the thing, the value, what was wanted
  std::vector<std::string> details;  // each reason of a refusal, who is late, each group's outcome

  /// "DEADLINE_EXCEEDED: message", then each detail on a line of its own.
  std::string ToString() const {
    std::string text = std::string(wb_status_name(code)) + ": " + message;
    for (const std::string& detail : details) text += "\n  " + detail;
    return text;
  }
};

/// A value or an Error. Reading the one that is not there ends the process (std::abort).
template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit, so that functions return either.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return Held(); }
  const T& value() const& { return Held(); }
  T&& value() && { return std::move(Held()); }
  T& operator*() & { return Held(); }
  const T& operator*() const& { return Held(); }
  T&& operator*() && { return std::move(Held()); }
  T* operator->() { return &Held(); }
  const T* operator->() const { return &Held(); }
  const Error& error() const {
    const Error* error = std::get_if<1>(&state_);
    if (error == nullptr) std::abort();
    return *error;
  }

 private:
  T& Held() {
    T* value = std::get_if<0>(&state_);
    if (value == nullptr) std::abort();
    return *value;
  }
  const T& Held() const {
    const T* value = std::get_if<0>(&state_);
    if (value == nullptr) std::abort();
    return *value;
  }

  std::variant<T, Error> state_;
};

/// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    if (!error_.has_value()) std::abort();
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

/// The calling thread's last error as a value.
inline Error LastError() {
  Error error{wb_last_error_code(), wb_last_error_message(), {}};
  for (std::size_t i = 0; i < wb_last_error_detail_count(); ++i) {
    error.details.emplace_back(wb_last_error_detail(i));
  }
  return error;
}

/// OK, or the calling thread's last error.
inline Result<void> ToResult(wb_status status) {
  if (status == WB_OK) return {};
  return LastError();
}

/// Memory that a daemon can open: a sealed memfd, mapped here, all zero at first. It stays mapped
/// as long as this object, or a layout or session that was given it, or a daemon may touch it.
class SharedBuffer {
 public:
  /// bytes >= 1.
  static Result<SharedBuffer> Create(std::uint64_t bytes) {
    wb_shared_buffer* handle = nullptr;
    if (wb_shared_buffer_create(bytes, &handle) != WB_OK) return LastError();
    return SharedBuffer(handle);
  }

  void* data() const { return wb_shared_buffer_data(handle_.get()); }
  std::uint64_t size() const { return wb_shared_buffer_bytes(handle_.get()); }  // bytes
  int fd() const { return wb_shared_buffer_fd(handle_.get()); }                 // stays ours
  const wb_shared_buffer* handle() const { return handle_.get(); }

 private:
  explicit SharedBuffer(wb_shared_buffer* handle) : handle_(handle) {}
  struct Destroy {
    void operator()(wb_shared_buffer* handle) const { wb_shared_buffer_destroy(handle); }
  };
  std::unique_ptr<wb_shared_buffer, Destroy> handle_;
};

/// A caller's own memory: a memfd sealed with F_SEAL_SHRINK and F_SEAL_SEAL, or a stretch of it.
struct Memory {
  wb_memory_provider provider = WB_PROVIDER_FD;
  std::int64_t handle = -1;  // the descriptor; duplicated, so the caller may close it
  std::uint64_t offset = 0;  // bytes, of the buffer in it
  std::uint64_t bytes = 0;
  std::uint64_t epoch =
      1;  // generation of all of a worker's buffers: larger when one gets other memory
};

enum class Dtype : std::int32_t {
  kUnspecified = WB_DTYPE_UNSPECIFIED,
  kFp64 = WB_FP64,
  kFp32 = WB_FP32,
  kFp16 = WB_FP16,
  kBf16 = WB_BF16,
  kFp8E4m3 = WB_FP8_E4M3,
  kFp8E5m2 = WB_FP8_E5M2,
  kInt64 = WB_INT64,
  kInt32 = WB_INT32,
  kInt16 = WB_INT16,
  kInt8 = WB_INT8,
  kUint8 = WB_UINT8,
  kBool = WB_BOOL
};

enum class Overlap : std::int32_t {
  kNone = WB_OVERLAP_NONE,           // boxes of two owners are equal or disjoint
  kIdentical = WB_OVERLAP_IDENTICAL  // owners of overlapping boxes promise equal bytes
};

/// Where a box of a tensor lies inside a param.
struct Piece {
  std::string tensor;
  std::vector<std::int64_t> lo;    // indices of the tensor, inclusive
  std::vector<std::int64_t> hi;    // exclusive
  std::vector<std::int64_t> at;    // first local index, one per dimension of the param; {}: all 0
  std::vector<std::int32_t> axes;  // for each dimension of the tensor the local dimension that
                                   // carries it; {}: the last local dimensions, in order
};

/// A local tensor of this worker, as its framework calls it.
struct Param {
  Param(std::string param_name, std::vector<std::int64_t> local_shape)
      : name(std::move(param_name)), shape(std::move(local_shape)) {}
  void AddPiece(Piece piece) { pieces.push_back(std::move(piece)); }

  std::string name;
  std::vector<std::int64_t> shape;    // local
  std::vector<std::int64_t> strides;  // elements; {}: row-major without gaps
  Dtype dtype = Dtype::kUnspecified;  // must equal the tensors' where given
  std::optional<std::string> buffer;  // default: a buffer of its own, named as the param
  std::uint64_t offset_bytes = 0;     // of element 0, from the start of the buffer
  bool local = false;                 // never written, has no pieces
  std::vector<Piece> pieces;
};

/// What a worker holds, and where. Each call checks its own arguments; the daemon checks the whole
/// at Join and refuses with every reason. Move-only.
class Layout {
 public:
  Layout() {
    wb_layout* handle = nullptr;
    if (wb_layout_create(&handle) == WB_OK) handle_.reset(handle);
  }
  /// From a serialised weightbridge.v1.Layout. Its job, role, group and rank, where they are set,
  /// must be those of JoinOptions.
  static Result<Layout> FromSerialized(std::string_view bytes) {
    wb_layout* handle = nullptr;
    if (wb_layout_from_bytes(bytes.data(), bytes.size(), &handle) != WB_OK) return LastError();
    return Layout(handle);
  }

  Result<void> AddTensor(const std::string& name,
                         Dtype dtype,
                         const std::vector<std::int64_t>& shape,
                         Overlap overlap = Overlap::kNone) {
    wb_tensor tensor{};
    tensor.struct_size = sizeof(tensor);
    tensor.name = name.c_str();
    tensor.dtype = static_cast<wb_dtype>(dtype);
    tensor.ndim = static_cast<std::uint32_t>(shape.size());
    tensor.shape = shape.data();
    tensor.overlap = static_cast<wb_overlap>(overlap);
    return ToResult(wb_layout_add_tensor(handle_.get(), &tensor));
  }

  /// `alias` is tied to `target`: one storage, moved once, covers both.
  Result<void> AddAlias(const std::string& alias, const std::string& target) {
    return ToResult(wb_layout_add_alias(handle_.get(), alias.c_str(), target.c_str()));
  }

  /// The param with its pieces.
  Result<void> AddParam(const Param& param) {
    wb_param raw{};
    raw.struct_size = sizeof(raw);
    raw.name = param.name.c_str();
    raw.ndim = static_cast<std::uint32_t>(param.shape.size());
    raw.shape = param.shape.data();
    if (!param.strides.empty() && param.strides.size() != param.shape.size()) {
      return Mismatch("param " + param.name + ": strides", param.strides.size(),
                      param.shape.size());
    }
    raw.strides = param.strides.empty() ? nullptr : param.strides.data();
    raw.dtype = static_cast<wb_dtype>(param.dtype);
    raw.buffer = param.buffer ? param.buffer->c_str() : nullptr;
    raw.offset_bytes = param.offset_bytes;
    raw.local = param.local ? 1 : 0;
    std::uint32_t index = 0;
    if (wb_layout_add_param(handle_.get(), &raw, &index) != WB_OK) return LastError();
    for (const Piece& piece : param.pieces) {
      Result<void> added = AddPiece(param, index, piece);
      if (!added.ok()) return added;
    }
    return {};
  }

  /// Gives a buffer its memory: once for each buffer that the params name.
  Result<void> SetBuffer(const std::string& buffer, const SharedBuffer& memory) {
    return ToResult(wb_layout_set_shared_buffer(handle_.get(), buffer.c_str(), memory.handle()));
  }
  Result<void> SetBuffer(const std::string& buffer, const Memory& memory) {
    wb_memory raw{};
    raw.struct_size = sizeof(raw);
    raw.provider = memory.provider;
    raw.handle = memory.handle;
    raw.offset_bytes = memory.offset;
    raw.bytes = memory.bytes;
    raw.epoch = memory.epoch;
    return ToResult(wb_layout_set_memory(handle_.get(), buffer.c_str(), &raw));
  }

  const wb_layout* handle() const { return handle_.get(); }

 private:
  explicit Layout(wb_layout* handle) : handle_(handle) {}

  static Error Mismatch(const std::string& what, std::size_t given, std::size_t wanted) {
    return Error{
        WB_INVALID_ARGUMENT,
        what + " has " + std::to_string(given) + " entries, want " + std::to_string(wanted),
        {}};
  }

  Result<void> AddPiece(const Param& param, std::uint32_t index, const Piece& piece) {
    const std::string name = "param " + param.name + ", piece of " + piece.tensor;
    const std::size_t ndim = piece.lo.size();
    if (piece.hi.size() != ndim) return Mismatch(name + ": hi", piece.hi.size(), ndim);
    if (!piece.axes.empty() && piece.axes.size() != ndim) {
      return Mismatch(name + ": axes", piece.axes.size(), ndim);
    }
    if (!piece.at.empty() && piece.at.size() != param.shape.size()) {
      return Mismatch(name + ": at", piece.at.size(), param.shape.size());
    }
    wb_piece raw{};
    raw.struct_size = sizeof(raw);
    raw.tensor = piece.tensor.c_str();
    raw.ndim = static_cast<std::uint32_t>(ndim);
    raw.lo = piece.lo.data();
    raw.hi = piece.hi.data();
    raw.at = piece.at.empty() ? nullptr : piece.at.data();
    raw.axes = piece.axes.empty() ? nullptr : piece.axes.data();
    return ToResult(wb_layout_add_piece(handle_.get(), index, &raw));
  }

  struct Destroy {
    void operator()(wb_layout* handle) const { wb_layout_destroy(handle); }
  };
  std::unique_ptr<wb_layout, Destroy> handle_;
};

/// Where the deliveries of a version are read from, and so for how long its trainer waits.
enum class Source : std::int32_t {
  kInPlace = WB_SOURCE_IN_PLACE,   // the trainer's memory: until every delivery has ended
  kSnapshot = WB_SOURCE_SNAPSHOT,  // a copy in the daemon's memory: until that is made
};

struct JoinOptions {
  std::string socket;  // the daemon's worker.sock
  std::string job;
  std::string group;
  std::optional<std::int32_t> rank;  // required: a missing rank is refused, never taken for 0
  std::int32_t world_size = 0;       // required: ranks of the group
  std::uint64_t incarnation = 0;     // of this process start; 0: drawn by the library
  std::chrono::milliseconds timeout{30'000};  // for the whole of Join
  /// Of a trainer. kSnapshot: the daemon takes memory for a copy of it, and Publish may use either.
  Source source = Source::kInPlace;
};

/// What a worker's memory holds, as the library, which alone knows it, tells.
enum class MemoryState : std::int32_t {
  kEmpty = WB_MEMORY_EMPTY,       // no version has been received
  kValid = WB_MEMORY_VALID,       // holds held_version()
  kInvalid = WB_MEMORY_INVALID,   // undefined until a later version is received
  kInDoubt = WB_MEMORY_IN_DOUBT,  // a version has landed; a later call learns whether it counts
};

struct PublishOptions {
  std::string label;  // for people: the training step
  std::chrono::milliseconds timeout{600'000};
  /// Rollout groups without which the publish fails, the same at all ranks; empty: all that take
  /// part.
  std::vector<std::string> required_groups = {};
  /// kSnapshot: only where JoinOptions said so.
  Source source = Source::kInPlace;
};

/// How a version ended that was published from a snapshot, if nobody has asked WaitPublished.
struct PreviousPublication {
  std::uint64_t version = 0;  // 0: nothing to tell
  wb_status code = WB_OK;
  std::string message;
};

struct GroupOutcome {
  std::string group;
  wb_status code = WB_OK;
  std::string message;
};

struct PublishReport {
  std::uint64_t version = 0;
  std::uint64_t bytes_sent = 0;  // by this worker
  double wait_seconds = 0;       // for the other ranks and the receivers
  double move_seconds = 0;       // from go to the last delivery staged
  double total_seconds = 0;      // inside the call: this worker's stall
  std::vector<GroupOutcome> outcomes;
  // Where move_seconds went: for each phase the seconds in which at least one of this worker's
  // chunks was in it, in the delivery in which it took longest. Phases overlap.
  double pack_seconds = 0;       // gathered from strided memory, or summed for their checksum
  double wire_seconds = 0;       // on their way to another daemon
  double copy_seconds = 0;       // copied inside the daemon: it serves both ends
  double snapshot_seconds = 0;   // until the snapshot was taken; 0: in place
  PreviousPublication previous;  // of Publish
};

struct ReceiveOptions {
  std::chrono::milliseconds timeout{600'000};
};

struct ReceiveReport {
  std::uint64_t version = 0;
  std::uint64_t bytes_received = 0;  // into this worker
  double wait_seconds = 0;           // for the trainers and the other ranks
  double move_seconds = 0;           // from go to commit
  double total_seconds = 0;          // inside the call: this worker's stall
  // As in PublishReport.
  double wire_seconds = 0;     // on their way from another daemon
  double scatter_seconds = 0;  // checked, and put into strided memory
  double copy_seconds = 0;
};

namespace internal {

/// 0 means "default" in C, "at once" here: the least wait there is.
inline std::int64_t TimeoutMs(std::chrono::milliseconds timeout) {
  return timeout.count() == 0 ? 1 : timeout.count();
}

struct DestroySession {
  void operator()(wb_session* handle) const { wb_session_destroy(handle); }
};
using SessionHandle = std::unique_ptr<wb_session, DestroySession>;

inline PublishReport ReportOf(const wb_publish_report& report, std::vector<GroupOutcome> outcomes) {
  const char* const message = report.previous_message;  // NULL of an older library
  return PublishReport{
      report.version,
      report.bytes_sent,
      report.wait_seconds,
      report.move_seconds,
      report.total_seconds,
      std::move(outcomes),
      report.pack_seconds,
      report.wire_seconds,
      report.copy_seconds,
      report.snapshot_seconds,
      {report.previous_version, report.previous_code, message != nullptr ? message : ""}};
}

/// `join` is wb_join_trainer or wb_join_rollout.
template <typename Join>
Result<SessionHandle> OpenSession(Join join, const JoinOptions& options, const Layout& layout) {
  wb_join_options raw{};
  raw.struct_size = sizeof(raw);
  raw.socket = options.socket.c_str();
  raw.job = options.job.c_str();
  raw.group = options.group.c_str();
  raw.rank = options.rank ? &*options.rank : nullptr;
  raw.world_size = options.world_size;
  raw.incarnation = options.incarnation;
  raw.timeout_ms = TimeoutMs(options.timeout);
  raw.source = static_cast<wb_source>(options.source);
  wb_session* handle = nullptr;
  if (join(&raw, layout.handle(), &handle) != WB_OK) return LastError();
  return SessionHandle(handle);
}

}  // namespace internal

/// One rank of the trainer group. Thread-compatible, move-only; the end of the object is the end
/// of the session.
class Trainer {
 public:
  /// Returns when the daemon has opened the memory and the layout is accepted.
  static Result<Trainer> Join(const JoinOptions& options, const Layout& layout) {
    Result<internal::SessionHandle> session =
        internal::OpenSession(&wb_join_trainer, options, layout);
    if (!session.ok()) return session.error();
    return Trainer(std::move(*session));
  }

  /// Offers the memory as `version`, the same at all ranks and larger than ever before. The memory
  /// must not be written until this returns. OK: every required rollout group holds the version
  /// (by default all that took part); otherwise the first culprit's error, with each group's
  /// outcome in its details.
  ///
  /// From a snapshot it returns when the daemon has copied the memory, and the version moves by
  /// itself; WaitPublished tells how it ends, or else the next Publish that succeeds, which waits
  /// for that first. The timeout is the whole publication's. This object's end fails what is not
  /// staged yet.
  Result<PublishReport> Publish(std::uint64_t version, const PublishOptions& options) {
    wb_publish_options raw{};
    raw.struct_size = sizeof(raw);
    raw.label = options.label.c_str();
    raw.timeout_ms = internal::TimeoutMs(options.timeout);
    std::vector<const char*> required;
    for (const std::string& group : options.required_groups) required.push_back(group.c_str());
    raw.required_groups = required.data();
    raw.required_group_count = required.size();
    raw.source = static_cast<wb_source>(options.source);
    wb_publish_report report{};
    report.struct_size = sizeof(report);
    if (wb_publish(session_.get(), version, &raw, &report) != WB_OK) return LastError();
    return internal::ReportOf(report, LastOutcomes());
  }

  /// What Publish of `version`, the last from a snapshot, would have returned in place. Waits for
  /// its end at most `timeout` (0: not at all): then DEADLINE_EXCEEDED, which changes nothing.
  Result<PublishReport> WaitPublished(std::uint64_t version, std::chrono::milliseconds timeout) {
    wb_publish_report report{};
    report.struct_size = sizeof(report);
    if (wb_wait_published(session_.get(), version, timeout.count(), &report) != WB_OK) {
      return LastError();
    }
    return internal::ReportOf(report, LastOutcomes());
  }

  /// Ends the session and says why this worker cannot go on: the others' errors and the logs say
  /// it.
  Result<void> Leave(const std::string& reason) {
    return ToResult(wb_session_leave(session_.get(), reason.c_str()));
  }

  /// How each rollout group fared in the last Publish or WaitPublished, failed or not.
  std::vector<GroupOutcome> LastOutcomes() const {
    std::vector<GroupOutcome> outcomes;
    for (std::size_t i = 0; i < wb_publish_outcome_count(session_.get()); ++i) {
      wb_group_outcome raw{};
      if (wb_publish_outcome(session_.get(), i, &raw) != WB_OK) break;
      outcomes.push_back({raw.group, raw.code, raw.message});
    }
    return outcomes;
  }

  /// "" while the daemon is lost.
  std::string session_id() const { return wb_session_id(session_.get()); }
  std::string node() const { return wb_session_node(session_.get()); }

 private:
  explicit Trainer(internal::SessionHandle session) : session_(std::move(session)) {}
  internal::SessionHandle session_;
};

/// One rank of a rollout group. Thread-compatible, move-only; the end of the object is the end of
/// the session.
class Rollout {
 public:
  /// Returns when the daemon has opened the memory and the layout is accepted.
  static Result<Rollout> Join(const JoinOptions& options, const Layout& layout) {
    Result<internal::SessionHandle> session =
        internal::OpenSession(&wb_join_rollout, options, layout);
    if (!session.ok()) return session.error();
    return Rollout(std::move(*session));
  }

  /// Waits until this group may receive a version >= at_least. Timeout 0: does not wait.
  Result<std::uint64_t> WaitForVersion(std::uint64_t at_least, std::chrono::milliseconds timeout) {
    std::uint64_t version = 0;
    if (wb_wait_for_version(session_.get(), at_least, timeout.count(), &version) != WB_OK) {
      return LastError();
    }
    return version;
  }

  /// Receives `version` in place: the memory is undefined until this returns OK, and then holds the
  /// version whole. After an error memory_state() tells whether the version before is intact.
  Result<ReceiveReport> Receive(std::uint64_t version, const ReceiveOptions& options) {
    wb_receive_options raw{};
    raw.struct_size = sizeof(raw);
    raw.timeout_ms = internal::TimeoutMs(options.timeout);
    wb_receive_report report{};
    report.struct_size = sizeof(report);
    if (wb_receive(session_.get(), version, &raw, &report) != WB_OK) return LastError();
    return ReceiveReport{report.version,         report.bytes_received, report.wait_seconds,
                         report.move_seconds,    report.total_seconds,  report.wire_seconds,
                         report.scatter_seconds, report.copy_seconds};
  }

  /// Ends the session and says why this worker cannot go on: the others' errors and the logs say
  /// it.
  Result<void> Leave(const std::string& reason) {
    return ToResult(wb_session_leave(session_.get(), reason.c_str()));
  }

  MemoryState memory_state() const {
    return static_cast<MemoryState>(wb_session_memory_state(session_.get()));
  }
  /// The version that the memory holds whole; 0: none. This and memory_state() from any thread,
  /// also during a call: read it at the start of a request and at its end.
  std::uint64_t held_version() const { return wb_session_held_version(session_.get()); }
  /// "" while the daemon is lost.
  std::string session_id() const { return wb_session_id(session_.get()); }
  std::string node() const { return wb_session_node(session_.get()); }

 private:
  explicit Rollout(internal::SessionHandle session) : session_(std::move(session)) {}
  internal::SessionHandle session_;
};

}  // namespace weightbridge
