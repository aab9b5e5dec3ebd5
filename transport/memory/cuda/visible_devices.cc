#include "transport/memory/cuda/visible_devices.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "planner/base/status_macros.h"

namespace wb {
namespace {

constexpr char kGpuPrefix[] = "GPU-";

absl::Status Refused(const std::string& entry, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("CUDA_VISIBLE_DEVICES: '", entry, "' ", why));
}

/// The one GPU whose UUID begins so, or nothing.
absl::StatusOr<std::optional<DeviceUuid>> FindShort(const std::string& entry,
                                                    std::span<const DeviceUuid> node) {
  std::optional<DeviceUuid> found;
  for (const DeviceUuid& device : node) {
    if (!absl::StartsWithIgnoreCase(device.ToString(), entry)) continue;
    if (found.has_value()) {
      return Refused(entry, absl::StrCat("may be ", found->ToString(), " or ", device.ToString(),
                                         ", want more digits"));
    }
    found = device;
  }
  return found;
}

/// What an entry names, or nothing.
absl::StatusOr<std::optional<DeviceUuid>> Find(const std::string& entry,
                                               std::span<const DeviceUuid> node) {
  std::size_t index = 0;
  if (absl::SimpleAtoi(entry, &index)) {
    return index < node.size() ? std::optional(node[index]) : std::nullopt;
  }
  if (absl::StartsWith(entry, kGpuPrefix) && entry != kGpuPrefix) return FindShort(entry, node);
  const absl::StatusOr<DeviceUuid> uuid = DeviceUuid::Parse(entry);
  const bool known = uuid.ok() && std::find(node.begin(), node.end(), *uuid) != node.end();
  return known ? std::optional(*uuid) : std::nullopt;
}

}  // namespace

absl::StatusOr<std::vector<DeviceUuid>> ParseVisibleDevices(const std::optional<std::string>& text,
                                                            std::span<const DeviceUuid> node) {
  if (!text.has_value()) return std::vector<DeviceUuid>(node.begin(), node.end());
  std::vector<DeviceUuid> visible;
  for (const absl::string_view part : absl::StrSplit(*text, ',')) {
    const std::string entry(absl::StripAsciiWhitespace(part));
    WB_ASSIGN_OR_RETURN(const std::optional<DeviceUuid> device, Find(entry, node));
    if (!device.has_value()) break;
    if (std::find(visible.begin(), visible.end(), *device) != visible.end()) {
      return Refused(entry, absl::StrCat("names ", device->ToString(), " a second time"));
    }
    visible.push_back(*device);
  }
  return visible;
}

}  // namespace wb
