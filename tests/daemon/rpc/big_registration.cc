#include "tests/daemon/rpc/big_registration.h"

#include <memory>
#include <utility>
#include <variant>

#include "proto/convert.h"

namespace wb::test {

Registration BigRegistration(int tensors) {
  v1::Layout wire;
  wire.set_job("job");
  wire.mutable_worker()->set_role(v1::ROLLOUT);
  wire.mutable_worker()->set_group("engine0");
  wire.mutable_worker()->set_rank(0);
  wire.mutable_worker()->set_node("n0");
  for (int i = 0; i < tensors; ++i) {
    const std::string name = std::string(300, 't') + std::to_string(i);
    v1::Tensor& tensor = (*wire.mutable_tensors())[name];
    tensor.set_dtype(v1::FP32);
    tensor.add_shape(4);
    v1::Param& param = *wire.mutable_worker()->add_params();
    param.set_name(name);
    param.add_shape(4);
    v1::Piece& piece = *param.add_pieces();
    piece.set_tensor(name);
    piece.mutable_box()->add_lo(0);
    piece.mutable_box()->add_hi(4);
    piece.add_at(0);
  }
  return std::get<Registration>(RegistrationFromProto(wire));
}

RegisterWorker WorkerOf(const std::string& group, Registration registration) {
  registration.layout.name.group = group;
  return {std::string(32, group.back()),
          Incarnation(5),
          1,
          Epoch(1),
          Version(0),
          MemoryState::kEmpty,
          AttemptId(),
          std::make_shared<const Registration>(std::move(registration)),
          {},
          {}};
}

}  // namespace wb::test
