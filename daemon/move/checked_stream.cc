#include "daemon/move/checked_stream.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "planner/base/checked_math.h"
#include "planner/base/status_macros.h"
#include "transport/copy/byte_runs.h"

namespace wb {
namespace {

constexpr std::size_t kMaxDims = 8;  // as many as ByteRuns walks

/// A block's packed bytes and where its last byte ends, computed without trust in its numbers.
struct BlockSize {
  std::uint64_t packed = 0;
  std::uint64_t end = 0;
};

absl::StatusOr<BlockSize> SizeOf(const ByteBlock& block) {
  if (block.dims.size() > kMaxDims) {
    return absl::InvalidArgumentError(
        absl::StrCat("block with ", block.dims.size(), " dimensions, want <= ", kMaxDims));
  }
  BlockSize size;
  size.packed = block.run_bytes;
  WB_ASSIGN_OR_RETURN(size.end, CheckedAdd(block.offset, block.run_bytes));
  for (const ByteDim& dim : block.dims) {
    if (dim.extent == 0) return absl::InvalidArgumentError("block with an empty dimension");
    WB_ASSIGN_OR_RETURN(size.packed, CheckedMul(size.packed, dim.extent));
    WB_ASSIGN_OR_RETURN(const std::uint64_t reach, CheckedMul(dim.extent - 1, dim.stride_bytes));
    WB_ASSIGN_OR_RETURN(size.end, CheckedAdd(size.end, reach));
  }
  return size;
}

absl::Status CheckPart(const ChunkPart& part, std::vector<std::uint64_t>& ends) {
  if (part.buffer >= ends.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("part in buffer ", part.buffer, " of ", ends.size()));
  }
  WB_ASSIGN_OR_RETURN(const BlockSize size, SizeOf(part.block));
  if (part.begin >= part.end || part.end > size.packed) {
    return absl::InvalidArgumentError(absl::StrCat("part [", part.begin, ", ", part.end,
                                                   ") of a block of ", size.packed, " bytes"));
  }
  ends[part.buffer] = std::max(ends[part.buffer], size.end);
  return absl::OkStatus();
}

/// The packed side of a copy: one run, as long as its memory is.
const ByteBlock& OneRun() {
  static const ByteBlock* const one_run =
      new ByteBlock{0, std::numeric_limits<std::uint64_t>::max(), {}};
  return *one_run;
}

/// The status with the stream's and the place's name in front.
absl::Status Named(const absl::Status& status,
                   const LocalStream& stream,
                   const std::string& place) {
  return {status.code(), absl::StrCat("stream from worker ", stream.src.value(), " to worker ",
                                      stream.dst.value(), ", ", place, ": ", status.message())};
}

}  // namespace

/// A place in the parts of a chunk, one after the other.
class CheckedStream::PartCursor {
 public:
  explicit PartCursor(std::span<const ChunkPart> parts) : parts_(parts) {}
  const ChunkPart& part() const { return parts_.front(); }
  std::uint64_t used() const { return used_; }
  std::uint64_t left() const { return part().bytes() - used_; }
  void Skip(std::uint64_t bytes) {
    used_ += bytes;
    while (!parts_.empty() && used_ >= part().bytes()) {
      used_ -= part().bytes();
      parts_ = parts_.subspan(1);
    }
  }

 private:
  std::span<const ChunkPart> parts_;
  std::uint64_t used_ = 0;  // bytes of the first part
};

absl::StatusOr<CheckedStream> CheckedStream::Create(BoundStream bound,
                                                    const RegionTable& regions,
                                                    StreamEnd end) {
  CheckedStream stream;
  stream.bound_ = std::move(bound);
  WB_RETURN_IF_ERROR(stream.Check(regions, end));
  stream.FindDirect();
  return stream;
}

absl::Status CheckedStream::Check(const RegionTable& regions, StreamEnd end) {
  const LocalStream& stream = bound_.stream;
  if (bound_.offsets.size() != bound_.regions.size()) {
    return absl::InvalidArgumentError(absl::StrCat(bound_.regions.size(), " regions but ",
                                                   bound_.offsets.size(), " offsets of buffers"));
  }
  std::vector<std::uint64_t> ends(bound_.regions.size());  // one past the last byte, per buffer
  std::uint64_t total = 0;
  for (std::uint32_t chunk = 0; chunk < chunks(); ++chunk) {
    if (absl::Status status = CheckChunk(chunk, ends); !status.ok()) {
      return Named(status, stream, absl::StrCat("chunk ", chunk));
    }
    WB_ASSIGN_OR_RETURN(total, CheckedAdd(total, stream.chunks[chunk].bytes));
  }
  if (total != stream.bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("stream from worker ", stream.src.value(), " to worker ", stream.dst.value(),
                     " of ", stream.bytes, " bytes, its chunks hold ", total));
  }
  return ResolveBuffers(regions, end, ends);
}

absl::Status CheckedStream::CheckChunk(std::uint32_t chunk,
                                       std::vector<std::uint64_t>& ends) const {
  const LocalChunk& local = bound_.stream.chunks[chunk];
  std::uint64_t total = 0;
  for (const ChunkPart& part : local.parts) {
    WB_RETURN_IF_ERROR(CheckPart(part, ends));
    WB_ASSIGN_OR_RETURN(total, CheckedAdd(total, part.bytes()));
  }
  if (total != local.bytes || total == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(local.bytes, " bytes, its parts hold ", total, "; want the same, not 0"));
  }
  for (const LocalChunk::Extra& extra : local.extra) {
    WB_RETURN_IF_ERROR(CheckPart(extra.part, ends));
    if (!InRange(extra.at, extra.part.bytes(), local.bytes)) {
      return absl::InvalidArgumentError(absl::StrCat("further landing of ", extra.part.bytes(),
                                                     " bytes from byte ", extra.at, " of ",
                                                     local.bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckedStream::ResolveBuffers(const RegionTable& regions,
                                           StreamEnd end,
                                           const std::vector<std::uint64_t>& ends) {
  memory_.resize(ends.size());
  of_host_.resize(ends.size());
  if (end == StreamEnd::kDestination) writable_.resize(ends.size());
  for (std::size_t buffer = 0; buffer < ends.size(); ++buffer) {
    if (ends[buffer] == 0) continue;
    const MemoryRef ref{bound_.regions[buffer], bound_.offsets[buffer], ends[buffer]};
    if (absl::Status status = ResolveBuffer(regions, ref, buffer); !status.ok()) {
      return Named(status, bound_.stream, absl::StrCat("buffer ", buffer));
    }
    if (std::find(used_.begin(), used_.end(), ref.region) == used_.end()) {
      used_.push_back(ref.region);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckedStream::ResolveBuffer(const RegionTable& regions,
                                          const MemoryRef& ref,
                                          std::size_t buffer) {
  const bool source = writable_.empty();
  const RegionAccess access = source ? RegionAccess::kReadOnly : RegionAccess::kReadWrite;
  WB_ASSIGN_OR_RETURN(const CopierMemory memory, regions.ResolveForCopier(ref, access));
  memory_[buffer] = memory.bytes;
  if (!source) writable_[buffer] = memory.bytes;
  of_host_[buffer] = !memory.device.has_value();
  return memory.device.has_value() ? NoteDevice(*memory.device) : absl::OkStatus();
}

absl::Status CheckedStream::NoteDevice(DeviceId device) {
  if (device_.has_value() && *device_ != device) {
    return absl::InvalidArgumentError(absl::StrCat("memory of device ", device.value(),
                                                   " beside memory of device ", device_->value(),
                                                   ", want one device"));
  }
  device_ = device;
  return absl::OkStatus();
}

void CheckedStream::FindDirect() {
  direct_.assign(chunks(), kPacked);
  for (std::uint32_t chunk = 0; chunk < chunks(); ++chunk) {
    const LocalChunk& local = bound_.stream.chunks[chunk];
    if (local.parts.size() != 1) continue;
    const ChunkPart& part = local.parts.front();
    if (!of_host_[part.buffer]) continue;
    const ByteRuns runs(part.block, part.begin, part.end);
    if (runs.run_left() >= part.bytes()) direct_[chunk] = runs.offset();
  }
}

MemoryRef CheckedStream::Ref(std::uint32_t chunk) const {
  const LocalChunk& local = bound_.stream.chunks[chunk];
  const std::uint32_t buffer = local.parts.front().buffer;
  return {bound_.regions[buffer], bound_.offsets[buffer] + direct_[chunk], local.bytes};
}

std::span<const std::byte> CheckedStream::Memory(std::uint32_t chunk) const {
  const LocalChunk& local = bound_.stream.chunks[chunk];
  return memory_[local.parts.front().buffer].subspan(direct_[chunk], local.bytes);
}

void CheckedStream::Pack(std::uint32_t chunk,
                         std::span<std::byte> packed,
                         std::vector<CopyStep>& steps) const {
  std::uint64_t at = 0;
  for (const ChunkPart& part : bound_.stream.chunks[chunk].parts) {
    steps.push_back(
        {memory_[part.buffer], &part.block, part.begin, packed, &OneRun(), at, part.bytes()});
    at += part.bytes();
  }
}

void CheckedStream::Unpack(std::uint32_t chunk,
                           std::span<const std::byte> packed,
                           std::vector<CopyStep>& steps) const {
  std::uint64_t at = 0;
  for (const ChunkPart& part : bound_.stream.chunks[chunk].parts) {
    steps.push_back(
        {packed, &OneRun(), at, writable_[part.buffer], &part.block, part.begin, part.bytes()});
    at += part.bytes();
  }
}

void CheckedStream::UnpackExtras(std::uint32_t chunk,
                                 std::span<const std::byte> packed,
                                 std::vector<CopyStep>& steps) const {
  for (const LocalChunk::Extra& extra : bound_.stream.chunks[chunk].extra) {
    const ChunkPart& part = extra.part;
    steps.push_back({packed, &OneRun(), extra.at, writable_[part.buffer], &part.block, part.begin,
                     part.bytes()});
  }
}

void CheckedStream::CopyFrom(const CheckedStream& source,
                             std::uint32_t chunk,
                             std::vector<CopyStep>& steps) const {
  const LocalChunk& local = bound_.stream.chunks[chunk];
  PartCursor from(source.bound_.stream.chunks[chunk].parts);
  for (const ChunkPart& part : local.parts) CopyPart(source, from, part, steps);
  for (const LocalChunk::Extra& extra : local.extra) {
    PartCursor again(source.bound_.stream.chunks[chunk].parts);
    again.Skip(extra.at);
    CopyPart(source, again, extra.part, steps);
  }
}

void CheckedStream::CopyPart(const CheckedStream& source,
                             PartCursor& from,
                             const ChunkPart& part,
                             std::vector<CopyStep>& steps) const {
  std::uint64_t done = 0;
  while (done < part.bytes()) {
    const ChunkPart& piece = from.part();
    const std::uint64_t bytes = std::min(from.left(), part.bytes() - done);
    steps.push_back({source.memory_[piece.buffer], &piece.block, piece.begin + from.used(),
                     writable_[part.buffer], &part.block, part.begin + done, bytes});
    from.Skip(bytes);
    done += bytes;
  }
}

}  // namespace wb
