#include <limits>
#include <random>
#include <string>
#include <utility>
#include <variant>

#include "proto/convert.h"
#include "tests/proto/layout_cases.h"
#include "tests/support/catch.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::Kinds;
using test::Texts;
using Wanted = std::vector<std::string>;

v1::Layout Wire() {
  return test::Accepted(test::GqaFile()).wire[0];
}  // engine0/0

Registration Passed(const v1::Layout& wire) {
  std::variant<Registration, Refusals> registration = RegistrationFromProto(wire);
  if (const auto* refusals = std::get_if<Refusals>(&registration)) {
    for (const Refusal& refusal : *refusals) UNSCOPED_INFO(refusal.text);
    FAIL("the layout is refused");
  }
  return std::get<Registration>(std::move(registration));
}

Refusals Rejected(const v1::Layout& wire) {
  std::variant<Registration, Refusals> registration = RegistrationFromProto(wire);
  REQUIRE(std::holds_alternative<Refusals>(registration));
  return std::get<Refusals>(std::move(registration));
}

TEST_CASE("A layout on the wire becomes a registration of its own tensors, in order", "[proto]") {
  const Registration registration = Passed(Wire());
  CHECK(registration.job == "gqa");
  REQUIRE(registration.tensors.size() == 3);
  CHECK(registration.tensors[0].name == "k");
  CHECK(registration.tensors[1].name == "q");
  CHECK(registration.layout.name.ToString() == "engine0/0");
  CHECK(registration.layout.pieces[1].tensor == TensorId(1));
}

TEST_CASE("Tensors that no piece names are checked and left out", "[proto]") {
  v1::Layout wire = Wire();
  v1::Tensor& spare = (*wire.mutable_tensors())["a.spare"];
  spare.set_dtype(v1::INT8);
  spare.add_shape(3);
  CHECK(Passed(wire) == Passed(Wire()));
  spare.add_shape(-3);
  CHECK(Texts(Rejected(wire)) == Wanted{"tensor a.spare: shape[1] is -3, want >= 0"});
}

TEST_CASE("An empty message is refused for each thing it lacks", "[proto]") {
  CHECK(Texts(Rejected({})) == Wanted{"job \"\" is empty, want a name", "worker: group is required",
                                      "worker: rank is required (of group \"\")",
                                      "worker: node is required",
                                      "worker: role is required, want TRAINER or ROLLOUT"});
}

TEST_CASE("The way back to the wire leaves out what is the default", "[proto]") {
  const v1::Layout wire = ToProto(Passed(Wire()));
  CHECK(wire.worker().params(0).strides().empty());
  CHECK(wire.worker().params(0).buffer().empty());
  CHECK(wire.worker().params(0).dtype() == v1::BF16);
  CHECK(wire.worker().params(1).strides_size() == 2);
  CHECK(wire.worker().params(1).pieces(0).axes_size() == 2);
}

TEST_CASE("A rollout's params of empty boxes alone survive the wire without becoming local",
          "[proto]") {
  v1::Layout wire = Wire();
  for (const char* name : {"x", "y"}) {
    v1::Tensor& tensor = (*wire.mutable_tensors())[name];
    tensor.set_dtype(v1::FP32);
    tensor.add_shape(5);
  }
  const auto add = [&wire](const std::string& param, const std::string& tensor, int ndim) {
    v1::Param& added = *wire.mutable_worker()->add_params();
    added.set_name(param);
    for (int dim = 0; dim < ndim; ++dim) added.add_shape(2);
    v1::Piece& piece = *added.add_pieces();
    piece.set_tensor(tensor);
    piece.mutable_box()->add_lo(3);
    piece.mutable_box()->add_hi(3);
    for (int dim = 0; dim < ndim; ++dim) piece.add_at(0);
  };
  add("narrow", "x", 1);
  add("wide", "y", 3);
  add("again", "x", 2);
  const Registration registration = Passed(wire);
  REQUIRE(registration.tensors.size() == 5);
  CHECK(registration.layout.pieces.size() == 3);
  CHECK_FALSE(registration.layout.params[2].local);
  CHECK(Passed(ToProto(registration)) == registration);
}

// A random layout that the door accepts: params with pads, permuted axes, shared buffers, local
// params, empty boxes, pieces in random order.
class RandomLayout {
 public:
  explicit RandomLayout(std::mt19937_64& rng) : rng_(rng) {
    wire_.set_job("random");
    v1::Worker& worker = *wire_.mutable_worker();
    worker.set_role(Draw(0, 1) == 0 ? v1::TRAINER : v1::ROLLOUT);
    worker.set_group("g");
    worker.set_rank(static_cast<std::int32_t>(Draw(0, 3)));
    worker.set_node("n");
    for (int i = 0; i < 6; ++i) AddParam(i);
  }

  const v1::Layout& wire() const { return wire_; }

 private:
  std::int64_t Draw(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(rng_);
  }

  // A param of two dimensions that holds two tensors one above the other, the second transposed.
  void AddParam(int index) {
    v1::Param& param = *wire_.mutable_worker()->add_params();
    param.set_name("p" + std::to_string(index));
    const std::int64_t rows = Draw(1, 4);
    const std::int64_t columns = Draw(1, 4);
    param.add_shape(2 * rows + Draw(0, 2));
    param.add_shape(columns + Draw(0, 2));
    if (Draw(0, 1) == 0) {
      param.add_strides(param.shape(1) + Draw(0, 3));
      param.add_strides(1);
    }
    const auto dtype = static_cast<v1::Dtype>(Draw(1, 12));
    if (Draw(0, 1) == 0) param.set_dtype(dtype);
    if (Draw(0, 1) == 0) {
      param.set_buffer("shared");
      param.set_offset_bytes(index * 10'000);
    }
    if (Draw(0, 4) == 0) {
      param.set_local(true);
      param.set_dtype(dtype);
      return;
    }
    AddPiece(param, dtype, {rows, columns}, 0);
    AddPiece(param, dtype, {rows, columns}, rows);
  }

  void AddPiece(v1::Param& param,
                v1::Dtype dtype,
                std::pair<std::int64_t, std::int64_t> extents,
                std::int64_t row) {
    const bool transposed = row > 0;
    if (transposed) std::swap(extents.first, extents.second);
    const std::string name =
        std::string(1, static_cast<char>('a' + Draw(0, 25))) + std::to_string(wire_.tensors_size());
    v1::Tensor& tensor = (*wire_.mutable_tensors())[name];
    tensor.set_dtype(dtype);
    tensor.add_shape(extents.first + 1);
    tensor.add_shape(extents.second);
    if (Draw(0, 3) == 0) tensor.set_overlap(v1::IDENTICAL);
    v1::Piece& piece = *param.add_pieces();
    piece.set_tensor(name);
    const std::int64_t lo = Draw(0, 1);
    piece.mutable_box()->add_lo(lo);
    piece.mutable_box()->add_hi(Draw(0, 5) == 0 ? lo : lo + extents.first);
    piece.mutable_box()->add_lo(0);
    piece.mutable_box()->add_hi(extents.second);
    piece.add_at(row);
    piece.add_at(0);
    if (!transposed) return;
    piece.add_axes(1);
    piece.add_axes(0);
  }

  std::mt19937_64& rng_;
  v1::Layout wire_;
};

TEST_CASE("A registration survives the wire", "[proto][property]") {
  const int round = GENERATE(range(0, 300));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const RandomLayout random(rng);
  INFO(random.wire().DebugString());
  const Registration registration = Passed(random.wire());
  const v1::Layout again = ToProto(registration);
  CHECK(Passed(again) == registration);
  v1::Layout bytes;
  REQUIRE(bytes.ParseFromString(again.SerializeAsString()));
  CHECK(Passed(bytes) == registration);
}

// Every number of a message, wherever it is nested, changed to `value`, one at a time.
void ChangeNumbers(google::protobuf::Message& message,
                   std::int64_t value,
                   const std::function<void()>& try_it);

void ChangeNumber(google::protobuf::Message& message,
                  const google::protobuf::FieldDescriptor& field,
                  std::int64_t value,
                  const std::function<void()>& try_it) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (field.type() == google::protobuf::FieldDescriptor::TYPE_INT64 && field.is_repeated()) {
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      const std::int64_t before = reflection.GetRepeatedInt64(message, &field, i);
      reflection.SetRepeatedInt64(&message, &field, i, value);
      try_it();
      reflection.SetRepeatedInt64(&message, &field, i, before);
    }
  } else if (field.type() == google::protobuf::FieldDescriptor::TYPE_INT64) {
    const std::int64_t before = reflection.GetInt64(message, &field);
    reflection.SetInt64(&message, &field, value);
    try_it();
    reflection.SetInt64(&message, &field, before);
  } else if (field.type() == google::protobuf::FieldDescriptor::TYPE_MESSAGE &&
             field.is_repeated()) {
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      ChangeNumbers(*reflection.MutableRepeatedMessage(&message, &field, i), value, try_it);
    }
  } else if (field.type() == google::protobuf::FieldDescriptor::TYPE_MESSAGE) {
    ChangeNumbers(*reflection.MutableMessage(&message, &field), value, try_it);
  }
}

void ChangeNumbers(google::protobuf::Message& message,
                   std::int64_t value,
                   const std::function<void()>& try_it) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (!field.is_map()) ChangeNumber(message, field, value, try_it);
  }
}

TEST_CASE("Any number of a layout may be anything: it is refused or makes sense", "[proto]") {
  v1::Layout wire = Wire();
  for (v1::Param& param : *wire.mutable_worker()->mutable_params()) {
    param.set_offset_bytes(4);
    for (v1::Piece& piece : *param.mutable_pieces()) {
      piece.add_axes(0);
      piece.add_axes(1);
    }
  }
  static_cast<void>(Passed(wire));
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  int tried = 0;
  for (const std::int64_t value :
       {kMax, kMax - 1, kMax / 2, kMax / 2 + 1, std::int64_t{1} << 32, std::int64_t{1} << 31,
        std::int64_t{9}, std::int64_t{1}, std::int64_t{0}, std::int64_t{-1}, -kMax, -kMax - 1}) {
    ChangeNumbers(wire, value, [&] {
      ++tried;
      const auto registration = RegistrationFromProto(wire);
      if (const auto* passed = std::get_if<Registration>(&registration)) {
        const Layout& layout = passed->layout;
        for (const Piece& piece : layout.pieces) {
          // Its last byte lies in its buffer.
          std::int64_t last = 0;
          for (int dim = 0; dim < piece.box.ndim(); ++dim) {
            last += (piece.box.extent(dim) - 1) * piece.strides[static_cast<std::size_t>(dim)];
          }
          const Param& param = layout.params[piece.param];
          const auto bytes = static_cast<std::uint64_t>((last + 1) * DtypeBytes(param.dtype));
          CHECK(piece.offset_bytes + bytes <= layout.buffers[piece.buffer].bytes);
        }
        CHECK(Passed(ToProto(*passed)) == *passed);
      }
    });
  }
  CHECK(tried > 300);
}

}  // namespace
}  // namespace wb
