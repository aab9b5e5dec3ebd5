#include "transport/memory/cuda/visible_devices.h"

#include "absl/strings/match.h"

#include "tests/support/catch.h"

namespace wb::test {
namespace {

// A node of three GPUs, of which two begin alike, and two slices of a fourth.
const std::vector<DeviceUuid>& Node() {
  static const std::vector<DeviceUuid> node = [] {
    std::vector<DeviceUuid> devices;
    for (const char* text :
         {"GPU-af7b61d8-0000-0000-0000-000000000000", "GPU-af7c0000-0000-0000-0000-000000000001",
          "GPU-20bd9fae-0000-0000-0000-000000000002", "MIG-c6d4f1ef-0000-0000-0000-000000000003",
          "MIG-c6d4f1ef-0000-0000-0000-000000000004"}) {
      devices.push_back(DeviceUuid::Parse(text).value());
    }
    return devices;
  }();
  return node;
}

struct Visible {
  std::optional<std::string> text;
  std::vector<std::size_t> indices;  // into the node
};

TEST_CASE("each way to write the visible devices has its result, UUIDs and slices among them",
          "[transport][cuda][field][case-153]") {
  const Visible visible = GENERATE(values<Visible>({
      {std::nullopt, {0, 1, 2, 3, 4}},
      {"", {}},
      {" ", {}},
      {"-1", {}},
      {"NoDevFiles", {}},
      {"0,2", {0, 2}},
      {"2,1,0", {2, 1, 0}},
      {" 2 , 0 ", {2, 0}},
      {"GPU-af7b61d8-0000-0000-0000-000000000000", {0}},
      {"GPU-af7b", {0}},
      {"GPU-AF7C,GPU-2", {1, 2}},
      {"2,GPU-af7b", {2, 0}},
      {"MIG-c6d4f1ef-0000-0000-0000-000000000004", {4}},
      {"MIG-c6d4f1ef-0000-0000-0000-000000000003,MIG-c6d4f1ef-0000-0000-0000-000000000004", {3, 4}},
  }));
  CAPTURE(visible.text.value_or("unset"));
  const auto devices = ParseVisibleDevices(visible.text, Node());
  REQUIRE(devices.ok());
  std::vector<DeviceUuid> wanted;
  for (const std::size_t index : visible.indices) wanted.push_back(Node()[index]);
  REQUIRE(*devices == wanted);
}

TEST_CASE("what comes after an entry that names no device is not visible",
          "[transport][cuda][field][case-153]") {
  const std::string none = GENERATE(
      "-1", "5", "99999999999999999999", "", "GPU-", "GPU-ffff", "MIG-c6d4f1ef", "1gpu",
      "MIG-c6d4f1ef-0000-0000-0000-000000000009", "GPU-c6d4f1ef-0000-0000-0000-000000000003");
  CAPTURE(none);
  const auto devices = ParseVisibleDevices("2," + none + ",1", Node());
  REQUIRE(devices.ok());
  REQUIRE(*devices == std::vector<DeviceUuid>{Node()[2]});
}

struct Refusal {
  const char* text;
  const char* why;
};

TEST_CASE("visible devices that come twice or may be several are refused by name",
          "[transport][cuda][field][case-153]") {
  const Refusal refusal = GENERATE(values<Refusal>({
      {"0,0", "'0' names GPU-af7b61d8-0000-0000-0000-000000000000 a second time"},
      {"1,2,GPU-af7c", "'GPU-af7c' names GPU-af7c0000-0000-0000-0000-000000000001 a second time"},
      {"MIG-c6d4f1ef-0000-0000-0000-000000000003,3",
       "'3' names MIG-c6d4f1ef-0000-0000-0000-000000000003 a second time"},
      {"GPU-af7",
       "'GPU-af7' may be GPU-af7b61d8-0000-0000-0000-000000000000 or "
       "GPU-af7c0000-0000-0000-0000-000000000001, want more digits"},
  }));
  const auto devices = ParseVisibleDevices(refusal.text, Node());
  REQUIRE(devices.status().code() == absl::StatusCode::kInvalidArgument);
  CAPTURE(devices.status().message());
  CHECK(absl::StrContains(devices.status().message(), refusal.why));
}

}  // namespace
}  // namespace wb::test
