#include "client/src/layout_draft.h"

#include <cerrno>
#include <limits>
#include <utility>

#include <fcntl.h>

namespace wb::client {
namespace {

// The daemon's limit. Checked here too because these many entries are read from the caller's
// arrays.
constexpr std::uint32_t kMaxNdim = 8;

Result<void> CheckNdim(const std::string& what, std::uint32_t ndim) {
  if (ndim >= 1 && ndim <= kMaxNdim) return {};
  return Invalid(what + ": ndim is " + std::to_string(ndim) + ", want 1 to 8");
}

template <typename T, typename Field>
void Append(const T* values, int count, Field* field) {
  for (int i = 0; i < count; ++i) field->Add(values[i]);
}

}  // namespace

const std::string& BufferOf(const v1::Param& param) {
  return param.buffer().empty() ? param.name() : param.buffer();
}

Result<LayoutDraft> LayoutDraft::FromBytes(std::string_view bytes) {
  LayoutDraft draft;
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (bytes.size() > kMost ||
      !draft.wire_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Invalid("layout: " + std::to_string(bytes.size()) +
                   " bytes are not a serialised weightbridge.v1.Layout");
  }
  return draft;
}

Result<void> LayoutDraft::AddTensor(const wb_tensor& tensor) {
  if (tensor.name == nullptr) return Invalid("tensor: name is missing");
  const std::string name = tensor.name;
  if (Result<void> text = CheckUtf8("tensor: name", name); !text.ok()) return text;
  if (Result<void> fits = CheckNdim("tensor " + name, tensor.ndim); !fits.ok()) return fits;
  if (tensor.shape == nullptr) return Invalid("tensor " + name + ": shape is missing");
  if (wire_.tensors().contains(name)) {
    return Error{WB_ALREADY_EXISTS, "tensor " + name + " is declared twice", {}};
  }
  v1::Tensor& added = (*wire_.mutable_tensors())[name];
  added.set_dtype(static_cast<v1::Dtype>(tensor.dtype));
  added.set_overlap(static_cast<v1::Overlap>(tensor.overlap));
  Append(tensor.shape, static_cast<int>(tensor.ndim), added.mutable_shape());
  return {};
}

Result<void> LayoutDraft::AddAlias(const char* alias, const char* target) {
  if (alias == nullptr || target == nullptr) return Invalid("alias: a name is missing");
  for (const char* name : {alias, target}) {
    if (Result<void> text = CheckUtf8("alias: a name", name); !text.ok()) return text;
  }
  if (wire_.aliases().contains(alias)) {
    return Error{WB_ALREADY_EXISTS, std::string("alias ") + alias + " is declared twice", {}};
  }
  (*wire_.mutable_aliases())[alias] = target;
  return {};
}

Result<std::uint32_t> LayoutDraft::AddParam(const wb_param& param) {
  if (param.name == nullptr) return Invalid("param: name is missing");
  const std::string name = param.name;
  const std::string buffer = param.buffer != nullptr ? param.buffer : "";
  if (Result<void> text = CheckUtf8("param: name", name); !text.ok()) return text.error();
  if (Result<void> text = CheckUtf8("param " + name + ": buffer", buffer); !text.ok()) {
    return text.error();
  }
  if (Result<void> fits = CheckNdim("param " + name, param.ndim); !fits.ok()) return fits.error();
  if (param.shape == nullptr) return Invalid("param " + name + ": shape is missing");
  if (param.offset_bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return Invalid("param " + name + ": offset_bytes is " + std::to_string(param.offset_bytes) +
                   ", want less than 2^63");
  }
  const int index = wire_.worker().params_size();
  const int ndim = static_cast<int>(param.ndim);
  v1::Param& added = *wire_.mutable_worker()->add_params();
  added.set_name(name);
  Append(param.shape, ndim, added.mutable_shape());
  if (param.strides != nullptr) Append(param.strides, ndim, added.mutable_strides());
  added.set_dtype(static_cast<v1::Dtype>(param.dtype));
  added.set_buffer(buffer);
  added.set_offset_bytes(static_cast<std::int64_t>(param.offset_bytes));
  added.set_local(param.local != 0);
  return static_cast<std::uint32_t>(index);
}

Result<void> LayoutDraft::AddPiece(std::uint32_t param, const wb_piece& piece) {
  const auto params = static_cast<std::uint32_t>(wire_.worker().params_size());
  if (param >= params) {
    return Invalid("piece: param " + std::to_string(param) + " of " + std::to_string(params));
  }
  v1::Param& owner = *wire_.mutable_worker()->mutable_params(static_cast<int>(param));
  if (piece.tensor == nullptr) return Invalid("param " + owner.name() + ", piece: no tensor named");
  if (Result<void> text = CheckUtf8("param " + owner.name() + ", piece: tensor", piece.tensor);
      !text.ok()) {
    return text;
  }
  const std::string what = "param " + owner.name() + ", piece of " + piece.tensor;
  if (Result<void> fits = CheckNdim(what, piece.ndim); !fits.ok()) return fits;
  if (piece.lo == nullptr || piece.hi == nullptr) return Invalid(what + ": lo or hi is missing");
  const int ndim = static_cast<int>(piece.ndim);
  v1::Piece& added = *owner.add_pieces();
  added.set_tensor(piece.tensor);
  Append(piece.lo, ndim, added.mutable_box()->mutable_lo());
  Append(piece.hi, ndim, added.mutable_box()->mutable_hi());
  for (int d = 0; d < owner.shape_size(); ++d) {
    added.add_at(piece.at != nullptr ? piece.at[d] : 0);
  }
  if (piece.axes != nullptr) Append(piece.axes, ndim, added.mutable_axes());
  return {};
}

Result<void> LayoutDraft::SetMemory(const char* buffer,
                                    const wb_memory& memory,
                                    std::shared_ptr<const SealedBuffer> shared) {
  if (buffer == nullptr) return Invalid("memory: no buffer named");
  if (Result<void> text = CheckUtf8("memory: buffer", buffer); !text.ok()) return text;
  const std::string what = std::string("memory of buffer ") + buffer;
  if (memory.provider != WB_PROVIDER_FD) {
    return Invalid(what + ": provider is " + std::to_string(memory.provider) + ", want " +
                   std::to_string(WB_PROVIDER_FD) + " (a memfd)");
  }
  if (memory.handle < 0 || memory.handle > std::numeric_limits<int>::max()) {
    return Invalid(what + ": " + std::to_string(memory.handle) + " is not a descriptor");
  }
  const int copy = ::fcntl(static_cast<int>(memory.handle), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) {
    const int error = errno;
    return SystemError(
        error, what + ": fcntl(F_DUPFD_CLOEXEC) on descriptor " + std::to_string(memory.handle));
  }
  FdHandle owned(copy);
  memory_.insert_or_assign(
      buffer,
      BufferMemory{std::make_shared<const FdHandle>(std::move(owned)), std::move(shared),
                   memory.offset_bytes, memory.bytes, memory.epoch == 0 ? 1 : memory.epoch});
  return {};
}

}  // namespace wb::client
