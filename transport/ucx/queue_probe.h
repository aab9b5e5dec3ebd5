#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <ucp/api/ucp.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wb {

/// A worker's endpoint to itself, through shared memory: what is sent over it goes into the same
/// queue as what peers send. UCX calls back within ucp_worker_progress only. Loop-confined;
/// `Close`d, and progressed until `closed`, before its worker goes.
class QueueProbe {
 public:
  static absl::StatusOr<std::unique_ptr<QueueProbe>> Open(ucp_worker_h worker);
  ~QueueProbe() = default;
  QueueProbe(const QueueProbe&) = delete;
  QueueProbe& operator=(const QueueProbe&) = delete;

  /// Sends a message; nothing while the last one is on its way.
  absl::Status Send();
  /// Messages that have come by the queue.
  std::uint64_t arrivals() const { return arrivals_; }
  void Close();
  bool closed() const { return ep_ == nullptr && requests_ == 0; }

 private:
  QueueProbe() = default;
  static ucs_status_t OnArrival(void* argument,
                                const void* header,
                                std::size_t header_bytes,
                                void* data,
                                std::size_t bytes,
                                const ucp_am_recv_param_t* param);
  static void OnDone(void* request, ucs_status_t status, void* argument);
  absl::Status Connect(ucp_worker_h worker);

  ucp_ep_h ep_ = nullptr;
  std::size_t requests_ = 0;  // of UCX that have not completed
  std::uint64_t sent_ = 0;
  std::uint64_t arrivals_ = 0;
  std::array<std::byte, 8> header_{};
};

}  // namespace wb
