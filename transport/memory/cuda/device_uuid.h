#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wb {

/// The name of a device, the same in every process and after every restart: of a whole GPU, or of
/// a slice of one (MIG). Ordinals are not: each process counts the devices that it sees in an order
/// of its own (CUDA_VISIBLE_DEVICES). Immutable value.
class DeviceUuid {
 public:
  enum class Kind : std::uint8_t { kGpu, kMig };
  using Bytes = std::array<char, 16>;

  DeviceUuid(Kind kind, const Bytes& bytes) : kind_(kind), bytes_(bytes) {}
  /// "GPU-" or "MIG-" and 8-4-4-4-12 hexadecimal digits, as nvidia-smi -L prints them.
  /// INVALID_ARGUMENT names the text.
  static absl::StatusOr<DeviceUuid> Parse(const std::string& text);
  /// The way back, in lower case.
  std::string ToString() const;

  Kind kind() const { return kind_; }
  const Bytes& bytes() const { return bytes_; }
  friend bool operator==(const DeviceUuid&, const DeviceUuid&) = default;

 private:
  Kind kind_;
  Bytes bytes_;
};

/// Whether memory of the device can be named to another process by legacy CUDA IPC, from it or to
/// it: FAILED_PRECONDITION for a slice, also towards another slice of the same GPU, and says why.
[[nodiscard]] absl::Status CheckCudaIpc(const DeviceUuid& device);

/// `status`, which says of which device it speaks.
[[nodiscard]] absl::Status OfDevice(const DeviceUuid& device, const absl::Status& status);

}  // namespace wb
