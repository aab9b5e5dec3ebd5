#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/convert.h"
#include "proto/door/strided.h"
#include "proto/door/tensor_table.h"

namespace wb {
namespace {

void Put(const Index& index, google::protobuf::RepeatedField<std::int64_t>& wire) {
  wire.Add(index.begin(), index.end());
}

v1::Param ToProto(const Param& param, const Layout& layout) {
  v1::Param wire;
  wire.set_name(param.name);
  Put(param.shape, *wire.mutable_shape());
  if (RowMajorStrides(param.shape) != param.strides) Put(param.strides, *wire.mutable_strides());
  wire.set_dtype(ToProto(param.dtype));
  const std::string& buffer = layout.buffers[param.buffer].name;
  if (buffer != param.name) wire.set_buffer(buffer);
  wire.set_offset_bytes(static_cast<std::int64_t>(param.offset_bytes));
  wire.set_local(param.local);
  return wire;
}

v1::Piece ToProto(const Piece& piece, const std::string& tensor) {
  v1::Piece wire;
  wire.set_tensor(tensor);
  Put(piece.box.lo(), *wire.mutable_box()->mutable_lo());
  Put(piece.box.hi(), *wire.mutable_box()->mutable_hi());
  Put(piece.at, *wire.mutable_at());
  for (const std::int64_t axis : piece.axes) wire.add_axes(static_cast<std::int32_t>(axis));
  return wire;
}

}  // namespace

v1::Layout ToProto(const Registration& registration) {
  const Layout& layout = registration.layout;
  v1::Layout wire;
  wire.set_job(registration.job);
  for (const Tensor& tensor : registration.tensors) {
    (*wire.mutable_tensors())[tensor.name] = ToProto(tensor);
  }
  v1::Worker& worker = *wire.mutable_worker();
  worker.set_role(layout.role == Role::kTrainer ? v1::TRAINER : v1::ROLLOUT);
  worker.set_group(layout.name.group);
  worker.set_rank(layout.name.rank);
  worker.set_node(layout.node);
  for (const Param& param : layout.params) *worker.add_params() = ToProto(param, layout);
  for (const Piece& piece : layout.pieces) {
    *worker.mutable_params(static_cast<int>(piece.param))->add_pieces() =
        ToProto(piece, registration.tensors[piece.tensor.value()].name);
  }
  return wire;
}

}  // namespace wb
