#include "client/wbctl/contents/worker_memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "client/wbctl/contents/runs.h"

namespace wb {
namespace {

constexpr std::uint64_t kWordBits = 64;
constexpr std::size_t kScratchBytes = kMaxRunElements * sizeof(std::uint64_t);
using Scratch = std::array<std::byte, kScratchBytes>;

template <typename Bits>
void GatherAs(const std::byte* from, std::uint64_t stride, std::uint64_t count, std::byte* to) {
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * sizeof(Bits), from + i * stride, sizeof(Bits));
  }
}

template <typename Bits>
void ScatterAs(const std::byte* from, std::uint64_t stride, std::uint64_t count, std::byte* to) {
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * stride, from + i * sizeof(Bits), sizeof(Bits));
  }
}

/// Elements of `element` bytes at distances, packed.
void Gather(std::size_t element, const std::byte* from, const ElementRun& run, std::byte* to) {
  switch (element) {
    case 1:
      return GatherAs<std::uint8_t>(from, run.stride, run.count, to);
    case 2:
      return GatherAs<std::uint16_t>(from, run.stride, run.count, to);
    case 4:
      return GatherAs<std::uint32_t>(from, run.stride, run.count, to);
    default:
      return GatherAs<std::uint64_t>(from, run.stride, run.count, to);
  }
}

/// Packed elements of `element` bytes, to distances.
void Scatter(std::size_t element, const std::byte* from, const ElementRun& run, std::byte* to) {
  switch (element) {
    case 1:
      return ScatterAs<std::uint8_t>(from, run.stride, run.count, to);
    case 2:
      return ScatterAs<std::uint16_t>(from, run.stride, run.count, to);
    case 4:
      return ScatterAs<std::uint32_t>(from, run.stride, run.count, to);
    default:
      return ScatterAs<std::uint64_t>(from, run.stride, run.count, to);
  }
}

std::string Hex(std::span<const std::byte> little_endian) {
  std::string text = "0x";
  for (std::size_t i = little_endian.size(); i > 0; --i) {
    absl::StrAppendFormat(&text, "%02x", std::to_integer<unsigned>(little_endian[i - 1]));
  }
  return text;
}

Index IndexOf(std::uint64_t linear, const Index& shape) {
  Index index(shape.size(), 0);
  for (std::size_t d = shape.size(); d > 0; --d) {
    const auto extent = static_cast<std::uint64_t>(shape[d - 1]);
    index[d - 1] = static_cast<std::int64_t>(linear % extent);
    linear /= extent;
  }
  return index;
}

void Add(CheckResult& result, Mismatch mismatch) {
  ++result.mismatches;
  if (result.first.size() < kMaxMismatches) result.first.push_back(std::move(mismatch));
}

/// Sets bits [begin, end).
void SetBits(std::vector<std::uint64_t>& bits, std::uint64_t begin, std::uint64_t end) {
  while (begin < end) {
    const std::uint64_t low = begin % kWordBits;
    const std::uint64_t count = std::min(kWordBits - low, end - begin);
    const std::uint64_t ones =
        count == kWordBits ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    bits[begin / kWordBits] |= ones << low;
    begin += count;
  }
}

}  // namespace

WorkerMemory::WorkerMemory(const Registration& registration,
                           std::vector<std::span<std::byte>> buffers,
                           std::byte hole)
    : registration_(registration), buffers_(std::move(buffers)), hole_(hole) {
  for (const std::span<std::byte> buffer : buffers_) {
    covered_.emplace_back((buffer.size() + kWordBits - 1) / kWordBits, 0);
    // Bits past the end count as covered.
    SetBits(covered_.back(), buffer.size(), covered_.back().size() * kWordBits);
  }
  std::uint64_t piece_bytes = 0;
  for (const Piece& piece : registration_.layout.pieces) piece_bytes += Cover(piece);
  std::uint64_t covered_bytes = 0;
  for (std::size_t i = 0; i < covered_.size(); ++i) {
    std::uint64_t set = 0;
    for (const std::uint64_t word : covered_[i]) {
      set += static_cast<std::uint64_t>(std::popcount(word));
    }
    const std::uint64_t all = covered_[i].size() * kWordBits;
    covered_bytes += set - (all - buffers_[i].size());
    if (set == all) covered_[i] = {};
  }
  pieces_share_bytes_ = piece_bytes > covered_bytes;
}

std::uint64_t WorkerMemory::Cover(const Piece& piece) {
  const Tensor& tensor = registration_.tensors[piece.tensor.value()];
  const auto element = static_cast<std::uint64_t>(DtypeBytes(tensor.dtype));
  std::vector<std::uint64_t>& bits = covered_[piece.buffer];
  ForEachRun(tensor, piece, [&](const ElementRun& run) {
    if (run.stride == element) {
      return SetBits(bits, run.offset, run.offset + run.count * element);
    }
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const std::uint64_t at = run.offset + i * run.stride;
      SetBits(bits, at, at + element);
    }
  });
  return static_cast<std::uint64_t>(piece.box.elements()) * element;
}

void WorkerMemory::Blank() {
  for (const std::span<std::byte> buffer : buffers_) {
    std::fill(buffer.begin(), buffer.end(), hole_);
  }
}

void WorkerMemory::Write(const Contents& contents) {
  for (const Piece& piece : registration_.layout.pieces) WritePiece(piece, contents);
}

void WorkerMemory::WritePiece(const Piece& piece, const Contents& contents) {
  const Tensor& tensor = registration_.tensors[piece.tensor.value()];
  const auto element = static_cast<std::size_t>(DtypeBytes(tensor.dtype));
  std::byte* const memory = buffers_[piece.buffer].data();
  Scratch scratch;
  ForEachRun(tensor, piece, [&](const ElementRun& run) {
    std::byte* const at = memory + run.offset;
    if (run.stride == element) {
      return contents.Write(tensor, run.begin, run.count, {at, run.count * element});
    }
    contents.Write(tensor, run.begin, run.count, {scratch.data(), run.count * element});
    Scatter(element, scratch.data(), run, at);
  });
}

void WorkerMemory::Read(const Visit& visit) const {
  for (const Piece& piece : registration_.layout.pieces) ReadPiece(piece, visit);
}

void WorkerMemory::ReadPiece(const Piece& piece, const Visit& visit) const {
  const Tensor& tensor = registration_.tensors[piece.tensor.value()];
  const auto element = static_cast<std::size_t>(DtypeBytes(tensor.dtype));
  const std::byte* const memory = buffers_[piece.buffer].data();
  Scratch scratch;
  ForEachRun(tensor, piece, [&](const ElementRun& run) {
    const std::byte* at = memory + run.offset;
    if (run.stride != element) {
      Gather(element, at, run, scratch.data());
      at = scratch.data();
    }
    visit(piece, run.begin, {at, run.count * element});
  });
}

bool WorkerMemory::FlipFirstElement() {
  if (registration_.layout.pieces.empty()) return false;
  const Piece& piece = registration_.layout.pieces.front();
  buffers_[piece.buffer][piece.offset_bytes] ^= std::byte{1};
  return true;
}

CheckResult WorkerMemory::Check(const Contents& contents) const {
  CheckResult result;
  Scratch wanted;
  Read([&](const Piece& piece, std::uint64_t begin, std::span<const std::byte> got) {
    const Tensor& tensor = registration_.tensors[piece.tensor.value()];
    const auto element = static_cast<std::size_t>(DtypeBytes(tensor.dtype));
    const std::uint64_t count = got.size() / element;
    contents.Write(tensor, begin, count, {wanted.data(), got.size()});
    result.element_bytes += got.size();
    if (std::memcmp(got.data(), wanted.data(), got.size()) == 0) return;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::span<const std::byte> want(wanted.data() + i * element, element);
      const std::span<const std::byte> have = got.subspan(i * element, element);
      if (std::equal(have.begin(), have.end(), want.begin())) continue;
      Add(result, {.param = registration_.layout.params[piece.param].name,
                   .tensor = tensor.name,
                   .index = IndexOf(begin + i, tensor.shape),
                   .got = Hex(have),
                   .wanted = Hex(want)});
    }
  });
  for (std::size_t buffer = 0; buffer < buffers_.size(); ++buffer) CheckHoles(buffer, result);
  return result;
}

void WorkerMemory::CheckHoles(std::size_t buffer, CheckResult& result) const {
  const std::vector<std::uint64_t>& bits = covered_[buffer];
  const std::span<const std::byte> memory = buffers_[buffer];
  for (std::uint64_t word = 0; word < bits.size(); ++word) {
    for (std::uint64_t holes = ~bits[word]; holes != 0; holes &= holes - 1) {
      const std::uint64_t at =
          word * kWordBits + static_cast<std::uint64_t>(std::countr_zero(holes));
      ++result.hole_bytes;
      if (memory[at] == hole_) continue;
      Add(result, {.param = registration_.layout.buffers[buffer].name,
                   .tensor = "",
                   .index = {static_cast<std::int64_t>(at)},
                   .got = Hex(memory.subspan(at, 1)),
                   .wanted = Hex({&hole_, 1})});
    }
  }
}

}  // namespace wb
