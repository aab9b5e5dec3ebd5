#include <array>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "tests/support/catch.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "transport/memory/cuda/cuda_api.h"
#include "transport/memory/cuda/device_table.h"

namespace wb::test {
namespace {

// Nobody but CudaDevice::WhileCurrent comes by what works on memory, and it stays where it is.
static_assert(!std::is_constructible_v<CurrentDevice, const PrimaryContext&, const DeviceUuid&>);
static_assert(!std::is_move_constructible_v<CurrentDevice>);

constexpr std::size_t kBytes = 4096;

std::string GpuText(int number) {
  return absl::StrFormat("GPU-%08x-0000-0000-0000-000000000000", number + 0xa0);
}
DeviceUuid Gpu(int number) {
  return DeviceUuid::Parse(GpuText(number)).value();
}

/// A node of that many GPUs, as its environment has it.
std::string Node(int gpus) {
  std::vector<std::string> texts;
  for (int i = 0; i < gpus; ++i) texts.push_back(GpuText(i));
  return absl::StrJoin(texts, ",");
}

constexpr char kSliceA[] = "MIG-000000c0-0000-0000-0000-000000000000";
constexpr char kSliceB[] = "MIG-000000c1-0000-0000-0000-000000000000";

std::unique_ptr<DeviceTable> Open(const FakeCuda& fake) {
  return DeviceTable::Open(CudaApi::Load(fake.library()).value()).value();
}

/// Host memory by its unified address.
template <typename Memory>
cuda::Address AddressOf(Memory& memory) {
  return reinterpret_cast<cuda::Address>(memory.data());
}

absl::Status Nothing(const CurrentDevice& /*current*/) {
  return absl::OkStatus();
}

TEST_CASE("without a CUDA driver there is a reason, and nothing else", "[transport][cuda]") {
  const TempFolder empty;
  const auto missing = CudaApi::Load(empty.File("libcuda.so.1"));
  REQUIRE(missing.status().code() == absl::StatusCode::kUnavailable);
  CAPTURE(missing.status().message());
  CHECK(absl::StrContains(missing.status().message(), "no CUDA: " + empty.path()));
}

TEST_CASE("a library that is no CUDA driver is refused with the function it lacks",
          "[transport][cuda]") {
  const auto other = CudaApi::Load("libc.so.6");
  REQUIRE(other.status().code() == absl::StatusCode::kUnavailable);
  REQUIRE(other.status().message() == "no CUDA: libc.so.6 has no cuInit");
}

TEST_CASE("a process that sees no device has no CUDA, and is told the driver's word for it",
          "[transport][cuda][field][case-153]") {
  const std::string visible = GENERATE("", "-1", "0,0");
  const FakeCuda fake(Node(2), visible);
  const auto api = CudaApi::Load(fake.library());
  REQUIRE(api.status().code() == absl::StatusCode::kUnavailable);
  CAPTURE(api.status().message());
  CHECK(absl::StrContains(api.status().message(), "cuInit: CUDA_ERROR_NO_DEVICE (100)"));
}

TEST_CASE("two processes that see the node's devices in another order meet by UUID",
          "[transport][cuda][field][case-152]") {
  const FakeCuda trainer(Node(4), "0,1,2,3");
  const FakeCuda rollout(Node(4), "3,2,1,0");
  const auto trainers = Open(trainer);
  const auto rollouts = Open(rollout);
  REQUIRE(trainers->devices()[0].uuid() == Gpu(0));
  REQUIRE(rollouts->devices()[0].uuid() == Gpu(3));  // ordinal 0 is another device there
  CudaDevice* const found = rollouts->Find(trainers->devices()[0].uuid()).value();
  REQUIRE(found == &rollouts->devices()[3]);

  // And it is device 3 of the rollout's process that becomes current.
  REQUIRE(found->WhileCurrent(Nothing).ok());
  REQUIRE(rollout.IsActive(3));
  REQUIRE_FALSE(rollout.IsActive(0));
}

TEST_CASE("a device that a process does not see is not found, and those it sees are named",
          "[transport][cuda][field][case-152]") {
  const FakeCuda fake(Node(4), "1,3");
  const auto table = Open(fake);
  const absl::Status status = table->Find(Gpu(0)).status();
  REQUIRE(status.code() == absl::StatusCode::kNotFound);
  REQUIRE(status.message() == absl::StrCat("device ", GpuText(0),
                                           " is not visible here, these are: ", GpuText(1), ", ",
                                           GpuText(3)));
}

TEST_CASE("two slices of one GPU are two devices, with memory of their own and no CUDA IPC",
          "[transport][cuda][field][case-153]") {
  const FakeCuda fake(absl::StrCat(kSliceA, "@", GpuText(0), ",", kSliceB, "@", GpuText(0)));
  const auto table = Open(fake);
  REQUIRE(table->devices().size() == 2);
  REQUIRE(table->devices()[0].name() == "Fake GPU MIG 1g.10gb");
  const int ordinal = GENERATE(0, 1);
  const std::string text = ordinal == 0 ? kSliceA : kSliceB;
  CudaDevice& device = *table->Find(DeviceUuid::Parse(text).value()).value();
  const cuda::Address address = fake.Allocate(ordinal, kBytes);
  std::array<char, 4> word{};
  const absl::Status copied = device.WhileCurrent([&](const CurrentDevice& current) {
    return current.Copy(AddressOf(word), address, word.size());
  });
  REQUIRE(copied.ok());
  const auto exported =
      device.WhileCurrent([&](const CurrentDevice& current) { return current.Export(address); });
  REQUIRE(exported.status().code() == absl::StatusCode::kFailedPrecondition);
  CAPTURE(exported.status().message());
  CHECK(absl::StrContains(exported.status().message(), text));
}

TEST_CASE("an address is exported as its allocation and its place in there", "[transport][cuda]") {
  const FakeCuda fake(Node(2));
  const auto table = Open(fake);
  const cuda::Address base = fake.Allocate(1, kBytes);
  const auto exported = table->Find(Gpu(1)).value()->WhileCurrent(
      [&](const CurrentDevice& current) { return current.Export(base + 100); });
  REQUIRE(exported.ok());
  CHECK(exported->device == Gpu(1));
  CHECK(exported->base == base);
  CHECK(exported->bytes == kBytes);
  CHECK(exported->offset == 100);
}

TEST_CASE("an address of another device is not exported under this one's name",
          "[transport][cuda][field][case-154]") {
  const FakeCuda fake(Node(2));
  const auto table = Open(fake);
  const cuda::Address elsewhere = fake.Allocate(0, kBytes);
  const absl::Status status =
      table->Find(Gpu(1))
          .value()
          ->WhileCurrent([&](const CurrentDevice& current) { return current.Export(elsewhere); })
          .status();
  REQUIRE(status.code() == absl::StatusCode::kInvalidArgument);
  CAPTURE(status.message());
  CHECK(absl::StrContains(status.message(), "device " + GpuText(1) + ": address 0x"));
  CHECK(absl::StrContains(status.message(), "memory of another device, in this process device 0"));
  REQUIRE(fake.misuses() == 0);
}

TEST_CASE("what the driver refuses is told with the device, the call and its name",
          "[transport][cuda]") {
  const FakeCuda fake(Node(2));
  const auto table = Open(fake);
  const cuda::Address elsewhere = fake.Allocate(0, kBytes);
  std::array<char, 4> word{};
  const absl::Status status =
      table->Find(Gpu(1)).value()->WhileCurrent([&](const CurrentDevice& current) {
        return current.Copy(AddressOf(word), elsewhere, word.size());
      });
  REQUIRE(status.message() ==
          absl::StrCat("device ", GpuText(1), ": cuMemcpy: CUDA_ERROR_INVALID_CONTEXT (201)"));
  REQUIRE(fake.misuses() == 1);
}

TEST_CASE("a device's context is retained at its first use, once, and given back with the table",
          "[transport][cuda]") {
  const FakeCuda fake(Node(2));
  auto table = Open(fake);
  REQUIRE_FALSE(fake.IsActive(0));
  CudaDevice& device = *table->Find(Gpu(0)).value();
  for (int i = 0; i < 3; ++i) REQUIRE(device.WhileCurrent(Nothing).ok());
  REQUIRE(fake.IsActive(0));
  REQUIRE_FALSE(fake.IsActive(1));
  table.reset();
  REQUIRE_FALSE(fake.IsActive(0));
}

TEST_CASE("what was current before is current again, nested and after a failure too",
          "[transport][cuda][field][case-154]") {
  const FakeCuda fake(Node(3));
  const auto table = Open(fake);
  const bool runtime = GENERATE(false, true);
  if (runtime) fake.SetCurrent(0);
  const cuda::Context before = fake.current();
  REQUIRE((before != nullptr) == runtime);
  CudaDevice& outer = *table->Find(Gpu(1)).value();
  CudaDevice& inner = *table->Find(Gpu(2)).value();
  const absl::Status status = outer.WhileCurrent([&](const CurrentDevice& /*current*/) {
    const cuda::Context own = fake.current();
    CHECK(own != before);
    const absl::Status failed = inner.WhileCurrent([&](const CurrentDevice& /*inside*/) {
      CHECK(fake.current() != own);
      return absl::AbortedError("enough");
    });
    CHECK(fake.current() == own);
    return failed;
  });
  REQUIRE(status == absl::AbortedError("enough"));
  REQUIRE(fake.current() == before);
}

TEST_CASE("the fake fails and counts what is done with another device's context, or none",
          "[transport][cuda][field][case-154]") {
  const FakeCuda fake(Node(2));
  REQUIRE(CudaApi::Load(fake.library()).ok());
  const cuda::Address address = fake.Allocate(1, kBytes);
  std::array<char, 4> word{};
  cuda::IpcMemHandle handle{};
  auto* const get_handle = fake.Find<decltype(cuda::cuIpcGetMemHandle)>("cuIpcGetMemHandle");
  auto* const copy = fake.Find<decltype(cuda::cuMemcpy)>("cuMemcpy");
  CHECK(get_handle(&handle, address) == cuda::kInvalidContext);
  fake.SetCurrent(0);
  CHECK(get_handle(&handle, address) == cuda::kInvalidContext);
  CHECK(copy(AddressOf(word), address, word.size()) == cuda::kInvalidContext);
  CHECK(copy(address, AddressOf(word), word.size()) == cuda::kInvalidContext);
  CHECK(fake.misuses() == 4);
  fake.SetCurrent(1);
  CHECK(get_handle(&handle, address) == cuda::kSuccess);
  CHECK(copy(AddressOf(word), address, word.size()) == cuda::kSuccess);
  CHECK(fake.misuses() == 4);
}

/// Memory of a worker, as it is registered: its device by name.
struct Registered {
  DeviceUuid device;
  cuda::Address address = 0;
};

/// Exports the memory, writes it and reads it back; what goes wrong.
absl::Status UseMemory(DeviceTable& table, const Registered& memory, char pattern) {
  WB_ASSIGN_OR_RETURN(CudaDevice* const device, table.Find(memory.device));
  WB_ASSIGN_OR_RETURN(const ExportedMemory exported,
                      device->WhileCurrent([&](const CurrentDevice& current) {
                        return current.Export(memory.address);
                      }));
  if (exported.base != memory.address || !(exported.device == memory.device)) {
    return absl::DataLossError("another allocation than was asked for");
  }
  std::vector<char> sent(kBytes, pattern);
  std::vector<char> back(kBytes);
  WB_RETURN_IF_ERROR(device->WhileCurrent([&](const CurrentDevice& current) {
    return current.Copy(memory.address, AddressOf(sent), kBytes);
  }));
  WB_RETURN_IF_ERROR(device->WhileCurrent([&](const CurrentDevice& current) {
    return current.Copy(AddressOf(back), memory.address, kBytes);
  }));
  return back == sent ? absl::OkStatus() : absl::DataLossError("other bytes than were written");
}

TEST_CASE("eight threads export and copy on eight devices, each on the one that is registered",
          "[transport][cuda][field][case-154]") {
  constexpr int kDevices = 8;
  constexpr int kThreads = 8;
  // Ordinals are not the node's, and half of the threads come from CUDA's runtime, which has made
  // device 0 current.
  const FakeCuda fake(Node(kDevices), "7,6,5,4,3,2,1,0");
  const auto table = Open(fake);
  std::vector<std::vector<Registered>> memories(kThreads);
  for (std::vector<Registered>& memory : memories) {
    for (int i = 0; i < kDevices; ++i) {
      memory.push_back({Gpu(kDevices - 1 - i), fake.Allocate(i, kBytes)});
    }
  }
  std::vector<absl::Status> failures(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      if (t % 2 == 0) fake.SetCurrent(0);
      const cuda::Context before = fake.current();
      for (int i = 0; i < 4 * kDevices; ++i) {
        const auto place = static_cast<std::size_t>((t + i) % kDevices);
        const Registered& memory = memories[static_cast<std::size_t>(t)][place];
        failures[static_cast<std::size_t>(t)].Update(
            UseMemory(*table, memory, static_cast<char>(t * kDevices + i)));
      }
      if (fake.current() != before) {
        failures[static_cast<std::size_t>(t)].Update(
            absl::InternalError("another device is current"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& failure : failures) CHECK(failure.ToString() == "OK");
  REQUIRE(fake.misuses() == 0);
}

}  // namespace
}  // namespace wb::test
