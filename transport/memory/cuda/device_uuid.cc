#include "transport/memory/cuda/device_uuid.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace wb {
namespace {

constexpr std::size_t kPrefixBytes = 4;
constexpr std::array<std::size_t, 4> kDashes = {8, 13, 18, 23};  // between the groups of digits
constexpr std::size_t kDigitsBytes = 36;                         // with the dashes

/// "GPU-" or "MIG-".
const char* PrefixOf(DeviceUuid::Kind kind) {
  return kind == DeviceUuid::Kind::kGpu ? "GPU-" : "MIG-";
}

/// What comes after the prefix.
std::optional<DeviceUuid::Bytes> ParseDigits(std::string text) {
  if (text.size() != kDigitsBytes) return std::nullopt;
  for (const std::size_t dash : kDashes) {
    if (text[dash] != '-') return std::nullopt;
  }
  std::erase(text, '-');
  DeviceUuid::Bytes bytes{};
  if (text.size() != 2 * bytes.size()) return std::nullopt;
  if (!std::all_of(text.begin(), text.end(),
                   [](unsigned char c) { return absl::ascii_isxdigit(c); })) {
    return std::nullopt;
  }
  const std::string raw = absl::HexStringToBytes(text);
  std::copy(raw.begin(), raw.end(), bytes.begin());
  return bytes;
}

}  // namespace

absl::StatusOr<DeviceUuid> DeviceUuid::Parse(const std::string& text) {
  for (const Kind kind : {Kind::kGpu, Kind::kMig}) {
    if (!absl::StartsWith(text, PrefixOf(kind))) continue;
    const std::optional<Bytes> bytes = ParseDigits(text.substr(kPrefixBytes));
    if (bytes.has_value()) return DeviceUuid(kind, *bytes);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "device '", text,
      "' is no UUID, want \"GPU-\" or \"MIG-\" and 8-4-4-4-12 hexadecimal digits "
      "as nvidia-smi -L prints them; an ordinal names another device in each process"));
}

std::string DeviceUuid::ToString() const {
  std::string digits = absl::BytesToHexString({bytes_.data(), bytes_.size()});
  for (const std::size_t dash : kDashes) digits.insert(dash, 1, '-');
  return absl::StrCat(PrefixOf(kind_), digits);
}

absl::Status OfDevice(const DeviceUuid& device, const absl::Status& status) {
  if (status.ok()) return status;
  return {status.code(), absl::StrCat("device ", device.ToString(), ": ", status.message())};
}

absl::Status CheckCudaIpc(const DeviceUuid& device) {
  if (device.kind() == DeviceUuid::Kind::kGpu) return absl::OkStatus();
  return OfDevice(device, absl::FailedPreconditionError(
                              "CUDA IPC is not supported from or to a MIG slice, also not between "
                              "slices of one GPU; want a whole GPU"));
}

}  // namespace wb
