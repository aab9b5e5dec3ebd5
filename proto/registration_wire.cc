#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "proto/convert.h"
#include "proto/door/strided.h"
#include "proto/door/tensor_table.h"

namespace wb {
namespace {

void PutIndex(const Index& index, google::protobuf::RepeatedField<std::int64_t>& wire) {
  wire.Add(index.begin(), index.end());
}

v1::Param ToProto(const Param& param, const Layout& layout) {
  v1::Param wire;
  wire.set_name(param.name);
  PutIndex(param.shape, *wire.mutable_shape());
  if (RowMajorStrides(param.shape) != param.strides)
    PutIndex(param.strides, *wire.mutable_strides());
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
  PutIndex(piece.box.lo(), *wire.mutable_box()->mutable_lo());
  PutIndex(piece.box.hi(), *wire.mutable_box()->mutable_hi());
  PutIndex(piece.at, *wire.mutable_at());
  for (const std::int64_t axis : piece.axes) wire.add_axes(static_cast<std::int32_t>(axis));
  return wire;
}

// Puts back the empty boxes of those params of a rollout that have no others: they were dropped at
// the door, and with none at all the params would be refused. Each tensor that no piece names goes
// to the param of most dimensions, each param left over gets the tensor of fewest.
class EmptyBoxes {
 public:
  EmptyBoxes(const Registration& registration, v1::Worker& wire)
      : tensors_(registration.tensors), params_(registration.layout.params), wire_(wire) {
    unfilled_.resize(params_.size(), registration.layout.role == Role::kRollout);
    spare_.resize(tensors_.size(), true);
    for (std::size_t i = 0; i < params_.size(); ++i) {
      const Index& shape = params_[i].shape;
      if (params_[i].local || std::count(shape.begin(), shape.end(), 0) > 0) unfilled_[i] = false;
    }
    for (const Piece& piece : registration.layout.pieces) {
      unfilled_[piece.param] = false;
      spare_[piece.tensor.value()] = false;
    }
  }

  void PutBack() {
    std::map<Dtype, std::size_t> widest_param;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      if (!unfilled_[i]) continue;
      const auto [widest, added] = widest_param.try_emplace(params_[i].dtype, i);
      if (params_[i].shape.size() > params_[widest->second].shape.size()) widest->second = i;
    }
    std::map<Dtype, std::size_t> narrowest_tensor;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const auto [narrowest, added] = narrowest_tensor.try_emplace(tensors_[i].dtype, i);
      if (tensors_[i].shape.size() < tensors_[narrowest->second].shape.size()) {
        narrowest->second = i;
      }
      const auto widest = widest_param.find(tensors_[i].dtype);
      if (spare_[i] && widest != widest_param.end()) Put(widest->second, i);
    }
    for (std::size_t i = 0; i < params_.size(); ++i) {
      const auto narrowest = narrowest_tensor.find(params_[i].dtype);
      const bool none = wire_.params(static_cast<int>(i)).pieces().empty();
      if (unfilled_[i] && none && narrowest != narrowest_tensor.end()) Put(i, narrowest->second);
    }
  }

 private:
  void Put(std::size_t param, std::size_t tensor) {
    v1::Piece& piece = *wire_.mutable_params(static_cast<int>(param))->add_pieces();
    piece.set_tensor(tensors_[tensor].name);
    PutIndex(Index(tensors_[tensor].shape.size(), 0), *piece.mutable_box()->mutable_lo());
    PutIndex(Index(tensors_[tensor].shape.size(), 0), *piece.mutable_box()->mutable_hi());
    PutIndex(Index(params_[param].shape.size(), 0), *piece.mutable_at());
  }

  const std::vector<Tensor>& tensors_;
  const SharedList<Param>& params_;
  v1::Worker& wire_;
  std::vector<bool> unfilled_;  // per param
  std::vector<bool> spare_;     // per tensor: no piece names it
};

}  // namespace

namespace {

/// All but the worker's name, node and job.
v1::Layout ContentsToProto(const Registration& registration) {
  const Layout& layout = registration.layout;
  v1::Layout wire;
  for (const Tensor& tensor : registration.tensors) {
    (*wire.mutable_tensors())[tensor.name] = ToProto(tensor);
  }
  v1::Worker& worker = *wire.mutable_worker();
  worker.set_role(layout.role == Role::kTrainer ? v1::TRAINER : v1::ROLLOUT);
  for (const Param& param : layout.params) *worker.add_params() = ToProto(param, layout);
  for (const Piece& piece : layout.pieces) {
    *worker.mutable_params(static_cast<int>(piece.param))->add_pieces() =
        ToProto(piece, registration.tensors[piece.tensor.value()].name);
  }
  EmptyBoxes(registration, worker).PutBack();
  return wire;
}

void Identify(const Registration& registration, v1::Layout& wire) {
  wire.set_job(registration.job);
  wire.mutable_worker()->set_group(registration.layout.name.group);
  wire.mutable_worker()->set_rank(registration.layout.name.rank);
  wire.mutable_worker()->set_node(registration.layout.node);
}

Refusals Refused(const Registration& identity, const std::string& text) {
  return {{"contents", "", identity.layout.name.ToString(), text}};
}

}  // namespace

v1::Layout ToProto(const Registration& registration) {
  v1::Layout wire = ContentsToProto(registration);
  Identify(registration, wire);
  return wire;
}

std::string ContentsOf(const Registration& registration) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  ContentsToProto(registration).SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

std::variant<Registration, Refusals> RegistrationFromContents(const Registration& identity,
                                                              std::string_view contents) {
  v1::Layout wire;
  if (!wire.ParseFromArray(contents.data(), static_cast<int>(contents.size()))) {
    return Refused(identity, "contents: no serialised weightbridge.v1.Layout");
  }
  const v1::Role role = identity.layout.role == Role::kTrainer ? v1::TRAINER : v1::ROLLOUT;
  if (wire.worker().role() != role) {
    return Refused(identity, "contents: role " + v1::Role_Name(wire.worker().role()) + ", " +
                                 identity.layout.name.ToString() + " registers as " +
                                 v1::Role_Name(role));
  }
  Identify(identity, wire);
  return RegistrationFromProto(wire);
}

}  // namespace wb
