#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "client/wbctl/contents/fill.h"
#include "planner/model/registration.h"

namespace wb {

/// An element, or a byte that no piece covers, that is not what it should be.
struct Mismatch {
  std::string param;   // or the buffer, for a byte outside all pieces
  std::string tensor;  // empty outside all pieces
  Index index;         // of the element in the tensor; outside all pieces the byte in the buffer
  std::string got;     // hex, most significant digit first
  std::string wanted;
  friend bool operator==(const Mismatch&, const Mismatch&) = default;
};

/// What a check of a worker's whole memory has found.
struct CheckResult {
  std::uint64_t element_bytes = 0;  // compared, inside pieces
  std::uint64_t hole_bytes = 0;     // compared, outside all pieces
  std::uint64_t mismatches = 0;     // elements and bytes that differ
  std::vector<Mismatch> first;      // at most kMaxMismatches
};
inline constexpr std::size_t kMaxMismatches = 5;

/// One worker's memory as its layout sees it: fills its elements and checks every byte of it,
/// those outside all pieces included.
///
/// Invariant: every piece of the registration lies inside its buffer (the door has checked that;
/// the constructor's spans are at least as long as the layout's buffers).
/// Thread-compatible. The memory and the registration outlive it.
class WorkerMemory {
 public:
  /// `hole` is what a byte outside all pieces holds from Blank() on.
  WorkerMemory(const Registration& registration,
               std::vector<std::span<std::byte>> buffers,
               std::byte hole);

  /// Sets every byte to the hole's value.
  void Blank();
  /// Writes every element of every piece.
  void Write(const Contents& contents);
  /// Compares every byte with `contents` and the hole's value.
  CheckResult Check(const Contents& contents) const;

  /// Elements that follow each other in `tensor`, from row-major index `begin`, packed.
  using Visit = std::function<void(const Piece&, std::uint64_t begin, std::span<const std::byte>)>;
  /// Gives every element of every piece exactly once.
  void Read(const Visit& visit) const;
  /// Flips the lowest bit of the first element; false when there is none. For rehearsals that
  /// prove that a check is alive.
  bool FlipFirstElement();

  /// Whether some byte is in two pieces, as tied tensors' bytes are.
  bool pieces_share_bytes() const { return pieces_share_bytes_; }
  std::span<const std::byte> buffer(std::size_t index) const { return buffers_[index]; }

 private:
  /// Marks a piece's bytes as covered; returns how many.
  std::uint64_t Cover(const Piece& piece);
  void WritePiece(const Piece& piece, const Contents& contents);
  void ReadPiece(const Piece& piece, const Visit& visit) const;
  void CheckHoles(std::size_t buffer, CheckResult& result) const;

  const Registration& registration_;
  std::vector<std::span<std::byte>> buffers_;
  std::byte hole_;
  bool pieces_share_bytes_ = false;
  /// A bit for each byte of each buffer: set inside pieces. Empty when pieces cover all of it.
  std::vector<std::vector<std::uint64_t>> covered_;
};

}  // namespace wb
