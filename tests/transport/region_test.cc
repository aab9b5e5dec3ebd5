#include "transport/memory/region.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "planner/base/fd_handle.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/file_mappings.h"

namespace wb {
namespace {

using test::MappingsOf;

constexpr std::uint64_t kPage = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_SEAL;

FdHandle Memfd(std::uint64_t bytes, int seals) {
  FdHandle fd(memfd_create("region_test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0);
  if (seals != 0) REQUIRE(fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
  return fd;
}

absl::Status Open(int fd,
                  std::uint64_t bytes,
                  std::uint64_t offset = 0,
                  RegionAccess access = RegionAccess::kReadWrite) {
  return Region::OpenHostFd(fd, offset, bytes, access).status();
}

bool Names(const absl::Status& status, const std::string& word) {
  return std::string(status.message()).find(word) != std::string::npos;
}

/// The permissions of the mapping that holds `address`, as "rw-s"; empty if there is none.
std::string Permissions(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0;
    unsigned long to = 0;
    char permissions[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &from, &to, permissions) != 3) continue;
    if (from <= wanted && wanted < to) return permissions;
  }
  return "";
}

TEST_CASE("a memfd without the seals is refused, naming the one it lacks", "[transport][memory]") {
  const absl::Status none = Open(Memfd(kPage, 0).get(), kPage);
  REQUIRE(none.code() == absl::StatusCode::kInvalidArgument);
  REQUIRE(Names(none, "lacks F_SEAL_SHRINK"));
  const absl::Status no_seal = Open(Memfd(kPage, F_SEAL_SHRINK).get(), kPage);
  REQUIRE(no_seal.code() == absl::StatusCode::kInvalidArgument);
  REQUIRE(Names(no_seal, "lacks F_SEAL_SEAL"));
  const absl::Status no_shrink = Open(Memfd(kPage, F_SEAL_SEAL).get(), kPage);
  REQUIRE(no_shrink.code() == absl::StatusCode::kInvalidArgument);
  REQUIRE(Names(no_shrink, "lacks F_SEAL_SHRINK"));
  const FdHandle never(memfd_create("never sealed", MFD_CLOEXEC));  // as a plain file of a tmpfs
  REQUIRE(ftruncate(never.get(), kPage) == 0);
  REQUIRE(Names(Open(never.get(), kPage), "lacks F_SEAL_SHRINK"));
}

TEST_CASE("what is no memfd is refused", "[transport][memory]") {
  const FdHandle device(open("/dev/zero", O_RDWR | O_CLOEXEC));
  int ends[2] = {};
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const FdHandle reader(ends[0]);
  const FdHandle writer(ends[1]);
  const FdHandle closed(-1);
  for (const FdHandle* fd : {&device, &reader, &closed}) {
    REQUIRE(Open(fd->get(), kPage).code() == absl::StatusCode::kInvalidArgument);
    REQUIRE(Names(Open(fd->get(), kPage), "not a memfd"));
  }
}

TEST_CASE("a memfd smaller than what shall be mapped is refused, with both sizes",
          "[transport][memory]") {
  const FdHandle fd = Memfd(2 * kPage, kSeals);
  const absl::Status more = Open(fd.get(), 2 * kPage + 1);
  REQUIRE(more.code() == absl::StatusCode::kInvalidArgument);
  REQUIRE(Names(more, "8192"));
  REQUIRE(Names(more, "8193"));
  REQUIRE_FALSE(Open(fd.get(), kPage + 1, kPage).ok());
  REQUIRE_FALSE(Open(fd.get(), 1, 2 * kPage).ok());
  REQUIRE_FALSE(Open(fd.get(), ~std::uint64_t{0}, kPage).ok());
  REQUIRE_FALSE(Open(fd.get(), kPage, ~std::uint64_t{0}).ok());
  REQUIRE_FALSE(Open(fd.get(), 0, 2 * kPage + 1).ok());
  REQUIRE(Open(fd.get(), 2 * kPage).ok());
}

TEST_CASE("the owner of an opened memfd cannot truncate it", "[transport][memory]") {
  const FdHandle fd = Memfd(2 * kPage, kSeals);
  const Region region =
      Region::OpenHostFd(fd.get(), 0, 2 * kPage, RegionAccess::kReadWrite).value();
  REQUIRE(ftruncate(fd.get(), kPage) != 0);
  REQUIRE(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW) != 0);
  region.host_memory().value()[2 * kPage - 1] = std::byte{1};
}

TEST_CASE("a region is the memory of the memfd itself, from any offset", "[transport][memory]") {
  const std::uint64_t offset = GENERATE(std::uint64_t{0}, 1, 4095, 4096, 5000);
  const FdHandle fd = Memfd(4 * kPage, kSeals);
  std::vector<std::byte> bytes(4 * kPage);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 7 >> 3 & 0xFF);
  REQUIRE(pwrite(fd.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  const std::uint64_t size = 4 * kPage - offset - 3;
  Region region = Region::OpenHostFd(fd.get(), offset, size, RegionAccess::kReadWrite).value();
  REQUIRE(region.bytes() == size);
  REQUIRE(region.kind() == RegionKind::kHostFd);
  REQUIRE(std::ranges::equal(region.host_memory().value(), std::span(bytes).subspan(offset, size)));

  region.host_memory().value()[size - 1] = std::byte{0x5A};
  std::byte seen{};
  REQUIRE(pread(fd.get(), &seen, 1, static_cast<off_t>(offset + size - 1)) == 1);
  REQUIRE(seen == std::byte{0x5A});
}

TEST_CASE("a region outlives the descriptor that it was opened from", "[transport][memory]") {
  FdHandle fd = Memfd(kPage, kSeals);
  const Region region = Region::OpenHostFd(fd.get(), 0, kPage, RegionAccess::kReadWrite).value();
  fd.Reset();
  region.host_memory().value()[0] = std::byte{1};
}

TEST_CASE("a read-only region cannot be written", "[transport][memory]") {
  const FdHandle fd = Memfd(kPage, kSeals);
  RegionTable table;
  REQUIRE(
      table
          .Add(RegionId(1), Region::OpenHostFd(fd.get(), 0, kPage, RegionAccess::kReadOnly).value())
          .ok());
  const absl::StatusOr<std::span<const std::byte>> bytes = table.Resolve({RegionId(1), 0, kPage});
  REQUIRE(bytes.ok());
  REQUIRE(Permissions(bytes->data()) == "r--s");
  REQUIRE(table.ResolveWritable({RegionId(1), 0, 1}).status().code() ==
          absl::StatusCode::kPermissionDenied);
}

TEST_CASE("memory that the worker itself may not write is not opened writable",
          "[transport][memory]") {
  const FdHandle sealed = Memfd(kPage, F_SEAL_WRITE | kSeals);
  const absl::Status status = Open(sealed.get(), kPage);
  REQUIRE(status.code() == absl::StatusCode::kPermissionDenied);
  REQUIRE(Names(status, "writable"));
  REQUIRE(Open(sealed.get(), kPage, 0, RegionAccess::kReadOnly).ok());

  const FdHandle fd = Memfd(kPage, kSeals);
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  const FdHandle reading(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(Open(reading.get(), kPage).code() == absl::StatusCode::kPermissionDenied);
}

TEST_CASE("a region of no bytes is legal and maps nothing", "[transport][memory]") {
  const FdHandle fd = Memfd(0, kSeals);
  Region region = Region::OpenHostFd(fd.get(), 0, 0, RegionAccess::kReadWrite).value();
  REQUIRE(region.bytes() == 0);
  REQUIRE(region.host_memory().value().empty());
  RegionTable table;
  REQUIRE(table.Add(RegionId(1), std::move(region)).ok());
  REQUIRE(table.Resolve({RegionId(1), 0, 0})->empty());
  REQUIRE_FALSE(table.Resolve({RegionId(1), 0, 1}).ok());
  REQUIRE(Region::AllocateArena(0).ok());
}

TEST_CASE("opening makes the pages present", "[transport][memory]") {
  const std::uint64_t pages = 64;
  const FdHandle fd = Memfd(pages * kPage, kSeals);
  const Region region =
      Region::OpenHostFd(fd.get(), 0, pages * kPage, RegionAccess::kReadWrite).value();
  std::vector<unsigned char> present(pages);
  REQUIRE(mincore(region.host_memory().value().data(), pages * kPage, present.data()) == 0);
  REQUIRE(std::ranges::all_of(present, [](unsigned char page) { return (page & 1) != 0; }));
}

TEST_CASE("memory that cannot be mapped is refused, naming the limit of mappings",
          "[transport][memory]") {
  const std::uint64_t bytes = std::uint64_t{1} << 30;
  const FdHandle fd = Memfd(bytes, kSeals);
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  const rlimit few{pages * kPage + bytes / 2, before.rlim_max};  // room for all but this mapping
  REQUIRE(setrlimit(RLIMIT_AS, &few) == 0);
  MappedFiles files;
  const absl::Status refused =
      Region::MapHostFd(fd.get(), 0, bytes, RegionAccess::kReadOnly, files).status();
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  REQUIRE(refused.code() == absl::StatusCode::kResourceExhausted);
  REQUIRE(
      Names(refused, "cannot map 1073741824 bytes read-only (vm.max_map_count allows a process "));
  REQUIRE_FALSE(Names(refused, "?"));
  REQUIRE(files.size() == 0);
}

Region ToRead(const FdHandle& fd, MappedFiles& files, std::uint64_t offset = 0) {
  return Region::MapHostFd(fd.get(), offset, kPage, RegionAccess::kReadOnly, files).value();
}

TEST_CASE("consumers that open the same memory 1,000 times have one mapping until the last closes",
          "[transport][memory][field][case-63]") {
  const FdHandle fd = Memfd(kPage, kSeals);
  const std::byte value{0x5A};
  REQUIRE(pwrite(fd.get(), &value, 1, 0) == 1);
  MappedFiles files;
  std::optional<Region> one(ToRead(fd, files));
  const std::byte* const address = one->addresses().data();
  for (int i = 0; i < 1'000; ++i) {
    std::optional<Region> other(ToRead(fd, files));
    REQUIRE(other->addresses().data() == address);
    REQUIRE(files.size() == 1);
    if (i % 50 == 0) REQUIRE(MappingsOf(fd.get()) == 1);
    if (i % 2 == 1) std::swap(one, other);
    other.reset();
    REQUIRE(one->addresses()[0] == value);
  }
  one.reset();
  REQUIRE(Permissions(address).empty());
  REQUIRE(MappingsOf(fd.get()) == 0);
  REQUIRE(files.size() == 0);
}

TEST_CASE("threads that open and close the same memory leave no mapping",
          "[transport][memory][field][case-63]") {
  const FdHandle fd = Memfd(kPage, kSeals);
  const std::byte value{0x5A};
  REQUIRE(pwrite(fd.get(), &value, 1, 0) == 1);
  MappedFiles files;
  std::vector<std::future<bool>> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.push_back(std::async(std::launch::async, [&] {
      bool good = true;
      for (int i = 0; i < 1'000; ++i) good = good && ToRead(fd, files).addresses()[0] == value;
      return good;
    }));
  }
  for (std::future<bool>& thread : threads) REQUIRE(thread.get());
  REQUIRE(MappingsOf(fd.get()) == 0);
  REQUIRE(files.size() == 0);
}

TEST_CASE("only what is read of the same stretch of the same memory is one mapping",
          "[transport][memory]") {
  const FdHandle fd = Memfd(2 * kPage, kSeals);
  const FdHandle another = Memfd(2 * kPage, kSeals);
  MappedFiles files;
  const Region read = ToRead(fd, files);
  std::vector<Region> others;
  others.push_back(ToRead(fd, files, kPage));
  others.push_back(ToRead(another, files));
  for (int i = 0; i < 2; ++i) {
    others.push_back(
        Region::MapHostFd(fd.get(), 0, kPage, RegionAccess::kReadWrite, files).value());
  }
  for (const Region& other : others) {
    REQUIRE(other.addresses().data() != read.addresses().data());
  }
  REQUIRE(Permissions(read.addresses().data()) == "r--s");
  REQUIRE(Permissions(others.back().addresses().data()) == "rw-s");
  REQUIRE(files.size() == 3);
}

TEST_CASE("a descriptor that may not read gets nothing by what another has mapped",
          "[transport][memory]") {
  const FdHandle fd = Memfd(kPage, kSeals);
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  const FdHandle writing(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  MappedFiles files;
  const Region read = ToRead(fd, files);
  const absl::Status refused =
      Region::MapHostFd(writing.get(), 0, kPage, RegionAccess::kReadOnly, files).status();
  REQUIRE(refused.code() == absl::StatusCode::kPermissionDenied);
  REQUIRE(Names(refused, "cannot map 4096 bytes read-only"));
}

TEST_CASE("an arena is zeroed and page-aligned, and one that cannot be is refused",
          "[transport][memory]") {
  const Region arena = Region::AllocateArena(3 * kPage + 5).value();
  REQUIRE(arena.kind() == RegionKind::kArena);
  REQUIRE(arena.access() == RegionAccess::kReadWrite);
  REQUIRE(reinterpret_cast<std::uintptr_t>(arena.host_memory().value().data()) % kPage == 0);
  REQUIRE(std::ranges::all_of(arena.host_memory().value(),
                              [](std::byte b) { return b == std::byte{0}; }));
  REQUIRE(Region::AllocateArena(~std::uint64_t{0}).status().code() ==
          absl::StatusCode::kResourceExhausted);
  REQUIRE(Region::AllocateArena(std::uint64_t{1} << 46).status().code() ==
          absl::StatusCode::kResourceExhausted);
}

TEST_CASE("a region is unmapped once, by its last owner", "[transport][memory]") {
  const void* address = nullptr;
  {
    Region first = Region::AllocateArena(kPage).value();
    address = first.host_memory().value().data();
    Region second = std::move(first);
    REQUIRE(second.host_memory().value().data() == address);
    Region third = Region::AllocateArena(0).value();
    third = std::move(second);
    REQUIRE(third.host_memory().value().data() == address);
    REQUIRE(Permissions(address) == "rw-p");
  }
  REQUIRE(Permissions(address).empty());
}

TEST_CASE("memory of a device is known by its addresses, and not to CPU or fabric",
          "[transport][memory]") {
  test::FakeDevice device(DeviceId(3));
  Region region = device.Open(device.Allocate(100), RegionAccess::kReadOnly);
  REQUIRE(region.kind() == RegionKind::kDevice);
  REQUIRE(region.device() == DeviceId(3));
  REQUIRE(region.bytes() == 100);
  REQUIRE(region.Populate([] { return false; }).ok());  // there is nothing to be done
  const std::byte* const address = region.addresses().data();
  REQUIRE(Permissions(address) == "---p");
  const absl::Status none = region.host_memory().status();
  REQUIRE(none.code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(Names(none, "device 3"));

  RegionTable table;
  REQUIRE(table.Add(RegionId(7), std::move(region)).ok());
  for (const absl::Status& status : {table.Resolve({RegionId(7), 0, 1}).status(),
                                     table.Resolve({RegionId(7), 40, 60}).status()}) {
    REQUIRE(status.code() == absl::StatusCode::kFailedPrecondition);
    REQUIRE(Names(status, "region 7"));
    REQUIRE(Names(status, "device 3"));
  }
  const CopierMemory memory =
      table.ResolveForCopier({RegionId(7), 40, 60}, RegionAccess::kReadOnly).value();
  REQUIRE(memory.bytes.data() == address + 40);
  REQUIRE(memory.bytes.size() == 60);
  REQUIRE(memory.device == DeviceId(3));
  REQUIRE(table.ResolveForCopier({RegionId(7), 40, 60}, RegionAccess::kReadWrite).status().code() ==
          absl::StatusCode::kPermissionDenied);
  REQUIRE(table.Resolve({RegionId(7), 41, 60}).status().code() == absl::StatusCode::kOutOfRange);
  REQUIRE(table.Remove(RegionId(7)).ok());
  REQUIRE(Permissions(address).empty());  // closed
}

TEST_CASE("the host's memory is the same for copiers as for the CPU", "[transport][memory]") {
  RegionTable table;
  REQUIRE(table.Add(RegionId(7), Region::AllocateArena(100).value()).ok());
  const CopierMemory memory =
      table.ResolveForCopier({RegionId(7), 40, 60}, RegionAccess::kReadWrite).value();
  REQUIRE(memory.bytes.data() == table.Resolve({RegionId(7), 40, 60})->data());
  REQUIRE_FALSE(memory.device.has_value());
}

TEST_CASE("a table names the region, the range and the size that do not fit",
          "[transport][memory]") {
  RegionTable table;
  REQUIRE(table.Add(RegionId(7), Region::AllocateArena(100).value()).ok());
  REQUIRE(table.Add(RegionId(8), Region::AllocateArena(50).value()).ok());
  REQUIRE(table.size() == 2);
  REQUIRE(table.bytes() == 150);
  REQUIRE(table.Add(RegionId(7), Region::AllocateArena(1).value()).code() ==
          absl::StatusCode::kAlreadyExists);
  REQUIRE(table.bytes() == 150);

  REQUIRE(table.Resolve({RegionId(7), 40, 60})->size() == 60);
  const absl::Status outside = table.Resolve({RegionId(7), 41, 60}).status();
  REQUIRE(outside.code() == absl::StatusCode::kOutOfRange);
  for (const char* word : {"region 7", "100", "60", "41"}) REQUIRE(Names(outside, word));
  REQUIRE(table.Resolve({RegionId(7), ~std::uint64_t{0}, 2}).status().code() ==
          absl::StatusCode::kOutOfRange);

  REQUIRE(table.Remove(RegionId(7)).ok());
  REQUIRE(table.bytes() == 50);
  REQUIRE(table.Remove(RegionId(7)).code() == absl::StatusCode::kNotFound);
  REQUIRE(table.Resolve({RegionId(7), 0, 1}).status().code() == absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace wb
