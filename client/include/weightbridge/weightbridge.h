/*
 * weightbridge.h: the C interface of the WeightBridge client library.
 *
 * What it is for. A trainer or rollout process (a worker) tells the daemon of its node, once,
 * which part of which tensor lies where in its memory (a layout) and hands over that memory as
 * file descriptors. From then on it only says "publish version v" (trainer) or "receive version v"
 * (rollout); the daemons move the bytes. C++ programs use weightbridge/client.h, a header-only
 * wrapper over this one.
 *
 * Rules for all functions
 *  - They return WB_OK or an error code; the codes are those of google.rpc.Code. What went wrong in
 *    words is in wb_last_error_message() and wb_last_error_detail(), which belong to the calling
 *    thread and hold until that thread's next call into this library that returns a wb_status.
 *  - Nothing here throws, ends the process, prints, installs a signal handler or starts a thread.
 *    All waiting happens in the calling thread, with a deadline.
 *  - Handles are thread-compatible: different handles may be used by different threads at once, one
 *    handle by one thread at a time.
 *  - Strings are UTF-8, end with NUL and are copied. Arrays are copied. Sizes and offsets are in
 *    bytes where the name says so, else in elements. Times are in milliseconds in options and in
 *    seconds in reports.
 *  - Structs that begin with `struct_size`: zero the whole struct, set struct_size to its sizeof,
 *    then set what is needed; zero always means "default". Later versions of this library append
 *    fields. A library older than the header refuses a struct only if a field that it does not
 *    know is not zero.
 *  - fork: a session belongs to the process that joined. In a child after fork every call on it
 *    returns WB_FAILED_PRECONDITION; destroying it there is allowed and leaves the parent's session
 *    alone. A child that wants a session joins for itself.
 *
 * Not there yet: shadow landing (Stage, Commit, Revert), device memory.
 */
/* NOLINTBEGIN: C, and named as C libraries are. */
#ifndef WEIGHTBRIDGE_WEIGHTBRIDGE_H_
#define WEIGHTBRIDGE_WEIGHTBRIDGE_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WB_API __attribute__((visibility("default")))
#else
#define WB_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------- errors --- */

typedef int32_t wb_status;
enum {
  WB_OK = 0,
  WB_CANCELLED = 1,
  WB_UNKNOWN = 2,
  WB_INVALID_ARGUMENT = 3,
  WB_DEADLINE_EXCEEDED = 4,
  WB_NOT_FOUND = 5,
  WB_ALREADY_EXISTS = 6,
  WB_PERMISSION_DENIED = 7,
  WB_RESOURCE_EXHAUSTED = 8,
  WB_FAILED_PRECONDITION = 9,
  WB_ABORTED = 10,
  WB_OUT_OF_RANGE = 11,
  WB_UNIMPLEMENTED = 12,
  WB_INTERNAL = 13,
  WB_UNAVAILABLE = 14,
  WB_DATA_LOSS = 15,
  WB_UNAUTHENTICATED = 16
};

/* "DEADLINE_EXCEEDED" and so on; "UNKNOWN" for a number that is none of the above. */
WB_API const char* wb_status_name(wb_status status);
/* The thread's last error; WB_OK and "" after a call that succeeded. */
WB_API wb_status wb_last_error_code(void);
WB_API const char* wb_last_error_message(void);
/* Further lines: each reason of a refusal, the outcome of each group, and for a deadline that has
 * passed or a death each culprit that the message names, as google.rpc.ErrorInfo would have it:
 *   reason=LATE domain=weightbridge group=engine0 host=h7 node=n1 since_seconds=1.5 stage=accept
 *   worker=engine0/2
 * on one line: the reason (LATE, or GONE for a death), then key=value with one space between them;
 * values hold no space. Keys that are not known are left out; there may be more. */
WB_API size_t wb_last_error_detail_count(void);
/* NULL when index >= wb_last_error_detail_count(). */
WB_API const char* wb_last_error_detail(size_t index);
/* "0.1.0" */
WB_API const char* wb_library_version(void);

/* ------------------------------------------------------------------------ shared memory --- */

/* A piece of memory that a daemon can open: a memfd of fixed size (sealed with F_SEAL_SHRINK,
 * F_SEAL_GROW and F_SEAL_SEAL), mapped here, all zero. Its pages are taken when first touched. */
typedef struct wb_shared_buffer wb_shared_buffer;

/* bytes >= 1. WB_UNAVAILABLE names the system call that this system does not offer. */
WB_API wb_status wb_shared_buffer_create(uint64_t bytes, wb_shared_buffer** buffer);
WB_API void* wb_shared_buffer_data(const wb_shared_buffer* buffer);
WB_API uint64_t wb_shared_buffer_bytes(const wb_shared_buffer* buffer);
/* The memfd. It stays the buffer's: do not close it. */
WB_API int wb_shared_buffer_fd(const wb_shared_buffer* buffer);
/* Gives the buffer up: it is unmapped when no layout or session that was given it is left. What a
 * daemon that has not answered may still touch stays mapped until that daemon has ended, or has
 * granted a Join over it. NULL is allowed. */
WB_API void wb_shared_buffer_destroy(wb_shared_buffer* buffer);

/* ------------------------------------------------------------------------------- layout --- */

/* As in layout files. */
typedef int32_t wb_dtype;
enum {
  WB_DTYPE_UNSPECIFIED = 0,
  WB_FP64 = 1,
  WB_FP32 = 2,
  WB_FP16 = 3,
  WB_BF16 = 4,
  WB_FP8_E4M3 = 5,
  WB_FP8_E5M2 = 6,
  WB_INT64 = 7,
  WB_INT32 = 8,
  WB_INT16 = 9,
  WB_INT8 = 10,
  WB_UINT8 = 11,
  WB_BOOL = 12
};

typedef int32_t wb_overlap;
enum {
  WB_OVERLAP_NONE = 0,     /* boxes of two owners are equal or disjoint */
  WB_OVERLAP_IDENTICAL = 1 /* owners of overlapping boxes promise equal bytes */
};

/* A global tensor, named and shaped as in the Hugging Face checkpoint. */
typedef struct wb_tensor {
  size_t struct_size;
  const char* name;
  wb_dtype dtype;
  uint32_t ndim; /* 1..8 */
  const int64_t* shape;
  wb_overlap overlap;
} wb_tensor;

/* A local tensor of this worker, as its framework calls it. */
typedef struct wb_param {
  size_t struct_size;
  const char* name;
  uint32_t ndim;          /* 1..8 */
  const int64_t* shape;   /* local shape */
  const int64_t* strides; /* elements; NULL: row-major without gaps */
  wb_dtype dtype;         /* must equal the tensors' where given; a local param may need it */
  const char* buffer;     /* NULL: a buffer of its own, named as the param */
  uint64_t offset_bytes;  /* of element 0, from the start of the buffer */
  int32_t local;          /* not 0: never written, has no pieces */
} wb_param;

/* Where a box of a tensor lies inside a param. */
typedef struct wb_piece {
  size_t struct_size;
  const char* tensor;
  uint32_t ndim;       /* of the tensor */
  const int64_t* lo;   /* ndim indices of the tensor, inclusive */
  const int64_t* hi;   /* ndim indices, exclusive */
  const int64_t* at;   /* first local index, one per dimension of the *param*; NULL: all 0 */
  const int32_t* axes; /* ndim entries: the local dimension that carries each dimension of the
                          tensor; NULL: the last local dimensions, in order */
} wb_piece;

/* Kinds of memory. New kinds change no call. */
typedef int32_t wb_memory_provider;
enum {
  WB_PROVIDER_UNSPECIFIED = 0,
  WB_PROVIDER_FD = 1 /* handle: a memfd sealed with F_SEAL_SHRINK and F_SEAL_SEAL */
};

/* The memory of a buffer. */
typedef struct wb_memory {
  size_t struct_size;
  wb_memory_provider provider;
  int64_t handle; /* WB_PROVIDER_FD: the descriptor; duplicated, so the caller may close it */
  uint64_t offset_bytes; /* of the buffer in the memory of the handle */
  uint64_t bytes;
  uint64_t
      epoch; /* generation of all of a worker's buffers, larger when one gets other memory; 0: 1 */
} wb_memory;

/* What a worker holds. Functions that add check their own arguments only; whether the whole makes
 * sense is checked by the daemon, which refuses with every reason when the worker joins. */
typedef struct wb_layout wb_layout;

WB_API wb_status wb_layout_create(wb_layout** layout);
/* From a serialised weightbridge.v1.Layout, as tools write it. */
WB_API wb_status wb_layout_from_bytes(const void* data, size_t bytes, wb_layout** layout);
WB_API void wb_layout_destroy(wb_layout* layout);

WB_API wb_status wb_layout_add_tensor(wb_layout* layout, const wb_tensor* tensor);
/* `alias` is tied to `target`: one storage, moved once, covers both. */
WB_API wb_status wb_layout_add_alias(wb_layout* layout, const char* alias, const char* target);
/* *index, if wanted, is what wb_layout_add_piece calls the param: 0, 1, 2, ... */
WB_API wb_status wb_layout_add_param(wb_layout* layout, const wb_param* param, uint32_t* index);
/* After the param it belongs to. Several pieces of a param may name the same tensor. */
WB_API wb_status wb_layout_add_piece(wb_layout* layout, uint32_t param, const wb_piece* piece);
/* Gives buffer `buffer` its memory: once for each buffer that the params name. A second call for
 * the same buffer replaces the first. */
WB_API wb_status wb_layout_set_memory(wb_layout* layout,
                                      const char* buffer,
                                      const wb_memory* memory);
/* The same, with a shared buffer whole (offset 0, epoch 1). */
WB_API wb_status wb_layout_set_shared_buffer(wb_layout* layout,
                                             const char* buffer,
                                             const wb_shared_buffer* memory);

/* ------------------------------------------------------------------------------ sessions --- */

/* Where the deliveries of a version are read from, and so for how long its trainer waits. */
typedef int32_t wb_source;
enum {
  /* The trainer's memory: it may be written again when every delivery has ended. */
  WB_SOURCE_IN_PLACE = 0,
  /* A copy in the daemon's: the memory may be written again when that is made. It takes as many
   * bytes of the daemon as the trainer's buffers have that pieces lie in, from join on. */
  WB_SOURCE_SNAPSHOT = 1
};

typedef struct wb_join_options {
  size_t struct_size;
  const char* socket; /* the daemon's worker.sock */
  const char* job;
  const char* group;
  const int32_t* rank;  /* required: a missing rank is refused, never taken for 0 */
  int32_t world_size;   /* ranks of the group */
  uint64_t incarnation; /* random number of this process start; 0: drawn by the library */
  int64_t timeout_ms;   /* for the whole of join; 0: 30 s */
  /* Of a trainer. WB_SOURCE_SNAPSHOT: wb_publish may use either; refused with
   * WB_RESOURCE_EXHAUSTED where the copy is beyond limits.memory_bytes of the daemon. */
  wb_source source;
} wb_join_options;

/* A worker's connection to its daemon: its lease. When it ends, everything of the worker is
 * released. If the daemon is lost, the call in progress returns WB_UNAVAILABLE and the next call
 * joins again, telling the daemon what this memory holds. */
typedef struct wb_session wb_session;

/* Join as a rank of the trainer group, or of a rollout group. The layout is copied. Returns when
 * the daemon has opened the memory and the layout is accepted, or with every reason why not, one a
 * detail. A socket that does not exist, may not be opened, or has nobody listening is an error at
 * once that names ENOENT, EACCES or ECONNREFUSED. */
WB_API wb_status wb_join_trainer(const wb_join_options* options,
                                 const wb_layout* layout,
                                 wb_session** session);
WB_API wb_status wb_join_rollout(const wb_join_options* options,
                                 const wb_layout* layout,
                                 wb_session** session);
/* Ends the session and says why this worker cannot go on, in at most 1024 bytes of UTF-8: the text
 * is in the error of the others' calls that fail of it, and in the daemons' logs. No other call on
 * the session but wb_session_destroy is allowed afterwards. WB_UNAVAILABLE: no daemon could be
 * told. */
WB_API wb_status wb_session_leave(wb_session* session, const char* reason);
/* Ends the session. NULL is allowed. */
WB_API void wb_session_destroy(wb_session* session);
/* The session id in hex, as logs and status show it; "" while the daemon is lost. */
WB_API const char* wb_session_id(const wb_session* session);
/* The daemon's node; "" while the daemon is lost. */
WB_API const char* wb_session_node(const wb_session* session);

/* What the worker's own memory holds. This library is the one who knows: it calls the memory
 * invalid before it lets the daemon write, and valid only when a version has landed whole. */
typedef int32_t wb_memory_state;
enum {
  WB_MEMORY_EMPTY = 1,   /* no version has been received */
  WB_MEMORY_VALID = 2,   /* holds wb_session_held_version() */
  WB_MEMORY_INVALID = 3, /* undefined until a later version is received */
  /* Every byte of a version has landed, but the daemon or the leader was lost before it said
   * whether the version counts. Serve nothing from it: a later call, or the next Join, learns the
   * outcome. */
  WB_MEMORY_IN_DOUBT = 4
};
/* This and the next may be called by any thread while the session lives, also during a call on it:
 * what serves a request reads the version at the request's start and at its end. */
WB_API wb_memory_state wb_session_memory_state(const wb_session* session);
/* The version that a rollout's memory holds; 0 unless it is valid. Never fails, also before any
 * version. A trainer's memory is its own: 0, and WB_MEMORY_EMPTY. */
WB_API uint64_t wb_session_held_version(const wb_session* session);

/* ------------------------------------------------------------------------------- trainer --- */

typedef struct wb_publish_options {
  size_t struct_size;
  const char* label;  /* for people: the training step; NULL: none */
  int64_t timeout_ms; /* 0: 600 s */
  /* Names of the rollout groups without which the publish fails, the same set at all ranks; none:
   * all that take part. At most 1024, and with the label 64 KiB in all. */
  const char* const* required_groups;
  size_t required_group_count;
  wb_source source; /* WB_SOURCE_SNAPSHOT only if joined so (WB_FAILED_PRECONDITION) */
} wb_publish_options;

typedef struct wb_publish_report {
  size_t struct_size; /* set by the caller */
  uint64_t version;
  uint64_t bytes_sent;  /* by this worker */
  double wait_seconds;  /* for the other ranks and the receivers */
  double move_seconds;  /* from go to the last delivery staged */
  double total_seconds; /* inside this call: the worker's stall */
  /* Where move_seconds went: for each phase the seconds in which at least one of this worker's
   * chunks was in it, in the delivery in which it took longest. Phases overlap. */
  double pack_seconds;     /* gathered from strided memory, or summed for their checksum */
  double wire_seconds;     /* on their way to another daemon */
  double copy_seconds;     /* copied inside the daemon: it serves both ends */
  double snapshot_seconds; /* until the snapshot was taken; 0: in place */
  /* Of wb_publish: how the version before ended that was published from a snapshot, if nobody has
   * asked wb_wait_published; version 0: nothing to tell. The text holds until the next wb_publish
   * of the session. */
  uint64_t previous_version;
  wb_status previous_code;
  const char* previous_message;
} wb_publish_report;

/* Offers the memory as version `version`. All ranks of the trainer group name the same version, a
 * larger one than ever before (as long as the job's leader runs), at least 1. It waits for all
 * ranks of the group within timeout_ms; once they are there, the leader waits timeouts.start of its
 * configuration (10 s) for a whole rollout group, and fails the version when there is none
 * (WB_FAILED_PRECONDITION). The memory must not be written until this returns. With
 * WB_OK every required rollout group holds the version (required_groups; by default all that took
 * part). Otherwise the error is the first culprit's and the details give the outcome of each group;
 * the version number is spent. A required group that is not there is waited for as long, and then
 * named (WB_FAILED_PRECONDITION). options and report may be NULL. An error with "may still be read"
 * means that the daemon did not answer and is not known to have ended: until the next call has
 * joined again, the memory is not to be written.
 *
 * From a snapshot it returns as soon as the daemon has copied the memory, which may be written from
 * then on, and the version moves by itself: of the report only version, snapshot_seconds,
 * total_seconds and previous are known. How it ends is told by wb_wait_published, or by the report
 * of the next wb_publish that succeeds. That one waits for the end first, for a session has one
 * snapshot: WB_DEADLINE_EXCEEDED, if it does not come in time. timeout_ms is of the whole
 * publication. An error means, as ever, that the version is not published, and what it says of the
 * memory is as above. The end of the session, or of its process, fails every delivery that is not
 * staged yet. */
WB_API wb_status wb_publish(wb_session* session,
                            uint64_t version,
                            const wb_publish_options* options,
                            wb_publish_report* report);

/* How the version ended that was published last from a snapshot: what wb_publish would have
 * returned and reported in place (total_seconds: inside this call). It waits for that at most
 * timeout_ms (0: does not wait); then WB_DEADLINE_EXCEEDED, which changes nothing. WB_UNAVAILABLE
 * with "outcome is unknown": the daemon is lost. WB_FAILED_PRECONDITION: another version was
 * published last from a snapshot, or none. */
WB_API wb_status wb_wait_published(wb_session* session,
                                   uint64_t version,
                                   int64_t timeout_ms,
                                   wb_publish_report* report);

typedef struct wb_group_outcome {
  const char* group;
  wb_status code;
  const char* message;
} wb_group_outcome;

/* How each rollout group fared in the last wb_publish or wb_wait_published of this session, failed
 * or not; none is known when a snapshot is published. The strings hold until the next of these. */
WB_API size_t wb_publish_outcome_count(const wb_session* session);
WB_API wb_status wb_publish_outcome(const wb_session* session,
                                    size_t index,
                                    wb_group_outcome* outcome);

/* ------------------------------------------------------------------------------- rollout --- */

/* Waits until this group may receive a version >= at_least and gives it. timeout_ms 0: does not
 * wait; then, or later, WB_DEADLINE_EXCEEDED. */
WB_API wb_status wb_wait_for_version(wb_session* session,
                                     uint64_t at_least,
                                     int64_t timeout_ms,
                                     uint64_t* version);

typedef struct wb_receive_options {
  size_t struct_size;
  int64_t timeout_ms; /* 0: 600 s */
} wb_receive_options;

typedef struct wb_receive_report {
  size_t struct_size; /* set by the caller */
  uint64_t version;
  uint64_t bytes_received; /* into this worker */
  double wait_seconds;     /* for the trainers and the other ranks */
  double move_seconds;     /* from go to commit */
  double total_seconds;    /* inside this call: the worker's stall */
  /* As in wb_publish_report. */
  double wire_seconds;    /* on their way from another daemon */
  double scatter_seconds; /* checked, and put into strided memory */
  double copy_seconds;
} wb_receive_report;

/* Receives version `version` in place. The memory must not be used until this returns WB_OK: then
 * it holds the version whole, every byte verified at every rank of the group. After an error
 * wb_session_memory_state() tells: valid (nothing was written, the version before is intact),
 * invalid or in doubt. An error with "may still change" means that the daemon did not answer and is
 * not known to have ended: until it has, or has let this worker join again, it may write. The
 * next calls try that, and say so where it fails. options and report may be NULL. */
WB_API wb_status wb_receive(wb_session* session,
                            uint64_t version,
                            const wb_receive_options* options,
                            wb_receive_report* report);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* WEIGHTBRIDGE_WEIGHTBRIDGE_H_ */
/* NOLINTEND */
