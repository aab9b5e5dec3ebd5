#include "tests/support/job_builder.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace wb::test {
namespace {

std::uint64_t BytesOf(std::int64_t elements, Dtype dtype) {
  return static_cast<std::uint64_t>(elements * DtypeBytes(dtype));
}

// One past the last element, in elements from element 0.
std::int64_t EndElement(const Index& shape, const Index& strides) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    last += (shape[d] - 1) * strides[d];
  }
  return last + 1;
}

// Hands out buffers of a layout by name.
class Buffers {
 public:
  explicit Buffers(Layout& layout) : layout_(layout) {}
  std::uint32_t Named(const std::string& name) {
    const auto [found, added] =
        numbers_.try_emplace(name, static_cast<std::uint32_t>(layout_.buffers.size()));
    if (added) layout_.buffers.Edit().push_back({name, 0});
    return found->second;
  }

 private:
  Layout& layout_;
  std::map<std::string, std::uint32_t> numbers_;
};

// `tensors` are ordered by name.
TensorId Find(const std::vector<Tensor>& tensors, const std::string& name) {
  const auto found = std::partition_point(tensors.begin(), tensors.end(),
                                          [&](const Tensor& tensor) { return tensor.name < name; });
  if (found == tensors.end() || found->name != name) {
    throw std::invalid_argument("the test declares no tensor " + name);
  }
  return TensorId(static_cast<std::uint32_t>(found - tensors.begin()));
}

bool IsEmpty(const PieceSpec& piece) {
  for (std::size_t d = 0; d < piece.lo.size(); ++d) {
    if (piece.lo[d] >= piece.hi[d]) return true;
  }
  return false;
}

Piece MakePiece(const PieceSpec& spec, TensorId tensor, const Param& param, std::uint32_t number) {
  Index axes = spec.axes;
  if (axes.empty()) {
    const auto skipped = static_cast<std::int64_t>(param.shape.size() - spec.lo.size());
    for (std::size_t d = 0; d < spec.lo.size(); ++d) {
      axes.push_back(skipped + static_cast<std::int64_t>(d));
    }
  }
  Index at = spec.at;
  if (at.empty()) at.assign(param.shape.size(), 0);
  Index strides;
  for (const std::int64_t axis : axes)
    strides.push_back(param.strides[static_cast<std::size_t>(axis)]);
  std::int64_t first = 0;
  for (std::size_t d = 0; d < at.size(); ++d) first += at[d] * param.strides[d];
  return {tensor,
          *Box::Create(spec.lo, spec.hi),
          param.buffer,
          number,
          param.offset_bytes + BytesOf(first, param.dtype),
          std::move(strides),
          std::move(at),
          std::move(axes)};
}

nlohmann::ordered_json List(const Index& index) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::int64_t value : index) list.push_back(value);
  return list;
}

nlohmann::ordered_json ParamJson(const ParamSpec& param) {
  nlohmann::ordered_json json{{"name", param.name}, {"shape", List(param.shape)}};
  if (!param.strides.empty()) json["strides"] = List(param.strides);
  if (!param.dtype.empty()) json["dtype"] = param.dtype;
  if (!param.buffer.empty()) json["buffer"] = param.buffer;
  if (param.offset_bytes != 0) json["offset_bytes"] = param.offset_bytes;
  if (param.local) json["local"] = true;
  json["pieces"] = nlohmann::ordered_json::array();
  for (const PieceSpec& spec : param.pieces) {
    nlohmann::ordered_json piece{{"tensor", spec.tensor},
                                 {"box", {{"lo", List(spec.lo)}, {"hi", List(spec.hi)}}}};
    piece["at"] = List(spec.at.empty() ? Index(param.shape.size(), 0) : spec.at);
    if (!spec.axes.empty()) piece["axes"] = List(spec.axes);
    json["pieces"].push_back(std::move(piece));
  }
  return json;
}

}  // namespace

Index RowMajor(const Index& shape) {
  Index strides(shape.size(), 1);
  for (std::size_t d = shape.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
  return strides;
}

JobBuilder& JobBuilder::AddTensor(const std::string& name,
                                  Dtype dtype,
                                  Index shape,
                                  bool identical) {
  job_.tensors.push_back({name, dtype, std::move(shape), identical});
  return *this;
}

JobBuilder& JobBuilder::Worker(Role role,
                               const std::string& group,
                               int rank,
                               const std::string& node) {
  WorkerSpec& worker = workers_.emplace_back();
  worker.layout.role = role;
  worker.layout.name = {group, rank};
  worker.layout.node = node;
  return *this;
}

JobBuilder& JobBuilder::AddParam(ParamSpec param) {
  workers_.back().params.push_back(std::move(param));
  return *this;
}

JobBuilder& JobBuilder::Holds(const std::string& tensor, Index lo, Index hi) {
  ParamSpec param;
  param.name = tensor + "." + std::to_string(workers_.back().params.size());
  for (std::size_t d = 0; d < lo.size(); ++d) param.shape.push_back(hi[d] - lo[d]);
  param.pieces.push_back({tensor, std::move(lo), std::move(hi), {}, {}});
  return AddParam(std::move(param));
}

Layout JobBuilder::BuildLayout(const WorkerSpec& worker, const std::vector<Tensor>& tensors) const {
  Layout layout = worker.layout;
  Buffers buffers(layout);
  for (const ParamSpec& spec : worker.params) {
    const auto number = static_cast<std::uint32_t>(layout.params.size());
    const Dtype dtype = spec.pieces.empty()
                            ? Dtype::kFp32
                            : tensors[Find(tensors, spec.pieces.front().tensor).value()].dtype;
    const Index strides = spec.strides.empty() ? RowMajor(spec.shape) : spec.strides;
    const std::uint32_t buffer = buffers.Named(spec.buffer.empty() ? spec.name : spec.buffer);
    layout.params.Edit().push_back(
        {spec.name, dtype, spec.shape, strides, buffer, spec.offset_bytes, spec.local});
    std::uint64_t& bytes = layout.buffers.Edit()[buffer].bytes;
    bytes = std::max(bytes, spec.offset_bytes + BytesOf(EndElement(spec.shape, strides), dtype));
    for (const PieceSpec& piece : spec.pieces) {
      const TensorId id = Find(tensors, piece.tensor);
      if (!IsEmpty(piece)) {
        layout.pieces.Edit().push_back(MakePiece(piece, id, layout.params.back(), number));
      }
    }
  }
  std::vector<Piece>& pieces = layout.pieces.Edit();
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.tensor, a.box) < std::tie(b.tensor, b.box);
  });
  return layout;
}

Job JobBuilder::Build() const {
  Job job = job_;
  std::sort(job.tensors.begin(), job.tensors.end(),
            [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
  for (const WorkerSpec& worker : workers_) {
    job.layouts.push_back(BuildLayout(worker, job.tensors));
  }
  std::sort(job.layouts.begin(), job.layouts.end(),
            [](const Layout& a, const Layout& b) { return a.name < b.name; });
  return job;
}

JobBuilder& JobBuilder::AddAlias(const std::string& alias, const std::string& target) {
  aliases_.emplace_back(alias, target);
  return *this;
}

nlohmann::ordered_json JobBuilder::Json() const {
  using Json = nlohmann::ordered_json;
  Json file{{"job", job_.name}, {"tensors", Json::object()}, {"workers", Json::array()}};
  for (const Tensor& tensor : job_.tensors) {
    Json& json = file["tensors"][tensor.name];
    json = {{"dtype", DtypeName(tensor.dtype)}, {"shape", List(tensor.shape)}};
    if (tensor.overlap_identical) json["overlap"] = "IDENTICAL";
  }
  for (const auto& [alias, target] : aliases_) file["aliases"][alias] = target;
  for (const WorkerSpec& worker : workers_) {
    Json json{{"role", worker.layout.role == Role::kTrainer ? "TRAINER" : "ROLLOUT"},
              {"group", worker.layout.name.group},
              {"rank", worker.layout.name.rank},
              {"node", worker.layout.node},
              {"params", Json::array()}};
    for (const ParamSpec& param : worker.params) json["params"].push_back(ParamJson(param));
    file["workers"].push_back(std::move(json));
  }
  return file;
}

TensorId TensorNamed(const Job& job, const std::string& name) {
  return Find(job.tensors, name);
}

WorkerIndex WorkerNamed(const Job& job, const std::string& name) {
  for (std::uint32_t w = 0; w < job.layouts.size(); ++w) {
    if (job.layouts[w].name.ToString() == name) return WorkerIndex(w);
  }
  throw std::invalid_argument("the test has no worker " + name);
}

}  // namespace wb::test
