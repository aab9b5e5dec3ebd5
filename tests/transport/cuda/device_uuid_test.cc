#include "transport/memory/cuda/device_uuid.h"

#include "absl/strings/match.h"

#include "tests/support/catch.h"

namespace wb::test {
namespace {

constexpr char kGpu[] = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6";
constexpr char kMig[] = "MIG-8932f937-d72c-4106-c12f-20bd9faed9f6";

TEST_CASE("a device's UUID is read and printed as nvidia-smi writes it", "[transport][cuda]") {
  const std::string text = GENERATE(kGpu, kMig);
  const auto uuid = DeviceUuid::Parse(text);
  REQUIRE(uuid.ok());
  REQUIRE(uuid->ToString() == text);
  REQUIRE(uuid->kind() == (text == kGpu ? DeviceUuid::Kind::kGpu : DeviceUuid::Kind::kMig));
}

TEST_CASE("a UUID's digits are the same in upper case", "[transport][cuda]") {
  REQUIRE(DeviceUuid::Parse("GPU-8932F937-D72C-4106-C12F-20BD9FAED9F6") == DeviceUuid::Parse(kGpu));
}

TEST_CASE("a slice is not the GPU that has the same bytes", "[transport][cuda]") {
  REQUIRE_FALSE(*DeviceUuid::Parse(kGpu) == *DeviceUuid::Parse(kMig));
}

TEST_CASE("what is no UUID is refused with its text, an ordinal above all",
          "[transport][cuda][field][case-152]") {
  const std::string text = GENERATE(
      "", "0", "-1", "cuda:0", "GPU-", "GPU-8932f937", "gpu-8932f937-d72c-4106-c12f-20bd9faed9f6",
      "8932f937-d72c-4106-c12f-20bd9faed9f6", "GPU-8932f937d72c4106c12f20bd9faed9f6----",
      "GPU-8932f937-d72c-4106-c12f-20bd9faed9f", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f66",
      "GPU-8932f937-d72c-4106-c12f-20bd9faed9fg", "GPU-8932f937--d72c4106-c12f-20bd9faed9f6",
      "GPU-8932f937-d72c-4106-c12f-20bd9fae-9f6",
      "MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/1/0");
  const auto uuid = DeviceUuid::Parse(text);
  REQUIRE(uuid.status().code() == absl::StatusCode::kInvalidArgument);
  CAPTURE(uuid.status().message());
  CHECK(absl::StrContains(uuid.status().message(), "'" + text + "'"));
  CHECK(absl::StrContains(uuid.status().message(),
                          "an ordinal names another device in each process"));
}

TEST_CASE("CUDA IPC is for whole GPUs, and a slice is told why",
          "[transport][cuda][field][case-153]") {
  REQUIRE(CheckCudaIpc(*DeviceUuid::Parse(kGpu)).ok());
  const absl::Status status = CheckCudaIpc(*DeviceUuid::Parse(kMig));
  REQUIRE(status.code() == absl::StatusCode::kFailedPrecondition);
  CAPTURE(status.message());
  CHECK(absl::StrContains(status.message(), kMig));
  CHECK(
      absl::StrContains(status.message(), "also not between slices of one GPU; want a whole GPU"));
}

}  // namespace
}  // namespace wb::test
