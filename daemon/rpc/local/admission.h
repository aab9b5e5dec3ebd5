#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace wb {

/// What one daemon's local door takes in: limits.workers and limits.memory_bytes, and what is
/// taken of them. Loop-confined.
class Admission {
 public:
  Admission(std::uint32_t max_workers, std::uint64_t max_memory_bytes)
      : max_workers_(max_workers), max_memory_bytes_(max_memory_bytes) {}

  std::uint32_t max_workers() const { return max_workers_; }
  std::uint32_t workers() const { return workers_; }
  std::uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  friend class AdmissionTicket;
  const std::uint32_t max_workers_;
  const std::uint64_t max_memory_bytes_;
  std::uint32_t workers_ = 0;
  std::uint64_t memory_bytes_ = 0;
};

/// One worker's share of an Admission, given back at its end. The bytes are given back when the
/// session ends, a moment before its regions are unmapped. Loop-confined.
class AdmissionTicket {
 public:
  /// `admission` outlives the ticket.
  explicit AdmissionTicket(Admission& admission) : admission_(admission) {}
  AdmissionTicket(const AdmissionTicket&) = delete;
  AdmissionTicket& operator=(const AdmissionTicket&) = delete;
  ~AdmissionTicket() {
    if (admitted_) --admission_.workers_;
    admission_.memory_bytes_ -= bytes_;
  }

  /// RESOURCE_EXHAUSTED names the limit. At most once.
  absl::Status AdmitWorker() {
    if (admission_.workers_ >= admission_.max_workers_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("limits.workers: this daemon already serves ", admission_.workers_, " of ",
                       admission_.max_workers_, " workers"));
    }
    ++admission_.workers_;
    admitted_ = true;
    return absl::OkStatus();
  }

  /// RESOURCE_EXHAUSTED names the limit and what is taken.
  absl::Status AdmitMemory(std::uint64_t bytes) {
    const std::uint64_t left = admission_.max_memory_bytes_ - admission_.memory_bytes_;
    if (bytes > left) {
      return absl::ResourceExhaustedError(absl::StrCat("limits.memory_bytes: ", bytes,
                                                       " bytes wanted, ", left, " left of ",
                                                       admission_.max_memory_bytes_));
    }
    admission_.memory_bytes_ += bytes;
    bytes_ += bytes;
    return absl::OkStatus();
  }

 private:
  Admission& admission_;
  bool admitted_ = false;
  std::uint64_t bytes_ = 0;
};

}  // namespace wb
