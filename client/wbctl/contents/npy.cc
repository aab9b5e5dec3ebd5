#include "client/wbctl/contents/npy.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"

#include "client/wbctl/contents/runs.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

const char* Descr(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp64:
      return "<f8";
    case Dtype::kFp32:
      return "<f4";
    case Dtype::kFp16:
      return "<f2";
    case Dtype::kBf16:
      return "<u2";
    case Dtype::kInt64:
      return "<i8";
    case Dtype::kInt32:
      return "<i4";
    case Dtype::kInt16:
      return "<i2";
    case Dtype::kInt8:
      return "|i1";
    case Dtype::kFp8E4m3:
    case Dtype::kFp8E5m2:
    case Dtype::kUint8:
    case Dtype::kBool:
      return "|u1";
  }
  return "|u1";
}

/// Version 1.0 of the format: magic, length, a Python dict, padded so that data begin at 64 * n.
std::string Head(const Param& param) {
  std::string dict =
      absl::StrCat("{'descr': '", Descr(param.dtype), "', 'fortran_order': False, 'shape': (");
  for (const std::int64_t extent : param.shape) absl::StrAppend(&dict, extent, ", ");
  absl::StrAppend(&dict, "), }");
  constexpr std::size_t kPrefixBytes = 10;
  constexpr std::size_t kAlign = 64;
  dict.append(kAlign - 1 - (kPrefixBytes + dict.size()) % kAlign, ' ');
  dict.push_back('\n');
  std::string head("\x93NUMPY\x01\x00", 8);
  head.push_back(static_cast<char>(dict.size() & 0xFF));
  head.push_back(static_cast<char>(dict.size() >> 8));
  return head + dict;
}

/// The elements in C order: the whole param read as one piece of a tensor of its shape.
absl::Status WriteElements(const Param& param,
                           std::span<const std::byte> buffer,
                           std::ostream& out) {
  WB_ASSIGN_OR_RETURN(Box box, Box::Create(Index(param.shape.size(), 0), param.shape));
  const Piece piece{.tensor = TensorId(0),
                    .box = std::move(box),
                    .offset_bytes = param.offset_bytes,
                    .strides = param.strides,
                    .at = {},
                    .axes = {}};
  const Tensor whole{.name = param.name, .dtype = param.dtype, .shape = param.shape};
  const auto element = static_cast<std::uint64_t>(DtypeBytes(param.dtype));
  const auto write = [&](std::uint64_t at, std::uint64_t bytes) {
    out.write(reinterpret_cast<const char*>(buffer.data() + at),
              static_cast<std::streamsize>(bytes));
  };
  ForEachRun(whole, piece, [&](const ElementRun& run) {
    if (run.stride == element) return write(run.offset, run.count * element);
    for (std::uint64_t i = 0; i < run.count; ++i) write(run.offset + i * run.stride, element);
  });
  return absl::OkStatus();
}

}  // namespace

std::string NpyFileName(const WorkerName& worker, const std::string& param) {
  std::string name = absl::StrCat(worker.group, "-", worker.rank, "-");
  for (const char c : param) {
    if (c == '%') {
      name += "%25";
    } else if (c == '/') {
      name += "%2F";
    } else {
      name.push_back(c);
    }
  }
  return name + ".npy";
}

absl::Status WriteNpy(const std::filesystem::path& path,
                      const Param& param,
                      std::span<const std::byte> buffer) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << Head(param);
  const bool empty = std::find(param.shape.begin(), param.shape.end(), 0) != param.shape.end();
  if (!empty) {
    WB_RETURN_IF_ERROR(WriteElements(param, buffer, out));
  }
  out.close();
  if (out) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path.string()));
}

}  // namespace wb
