#include "tests/support/layout_file.h"

#include <nlohmann/json.hpp>

namespace wb::test {
namespace {

using nlohmann::json;

json ToJson(const PieceSpec& piece) {
  json out{{"tensor", piece.tensor}, {"box", {{"lo", piece.lo}, {"hi", piece.hi}}}};
  if (!piece.at.empty()) out["at"] = piece.at;
  if (!piece.axes.empty()) out["axes"] = piece.axes;
  return out;
}

json ToJson(const ParamSpec& param) {
  json out{{"name", param.name}, {"shape", param.shape}, {"pieces", json::array()}};
  for (const PieceSpec& piece : param.pieces) out["pieces"].push_back(ToJson(piece));
  if (!param.dtype.empty()) out["dtype"] = param.dtype;
  if (!param.buffer.empty()) out["buffer"] = param.buffer;
  if (param.offset_bytes != 0) out["offset_bytes"] = param.offset_bytes;
  if (!param.strides.empty()) out["strides"] = param.strides;
  if (param.local) out["local"] = true;
  return out;
}

json ToJson(const WorkerFileSpec& worker) {
  const bool trainer = worker.group == "policy";
  json out{{"role", trainer ? "TRAINER" : "ROLLOUT"},
           {"group", worker.group},
           {"rank", worker.rank},
           {"node", !worker.node.empty() ? worker.node
                    : trainer            ? "n0"
                                         : "n1"},
           {"params", json::array()}};
  for (const ParamSpec& param : worker.params) out["params"].push_back(ToJson(param));
  return out;
}

}  // namespace

std::string LayoutFileSpec::ToJson() const {
  json out{{"job", "field"}, {"tensors", json::object()}, {"workers", json::array()}};
  for (const TensorSpec& tensor : tensors) {
    out["tensors"][tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}};
  }
  for (const auto& [alias, target] : aliases) out["aliases"][alias] = target;
  for (const WorkerFileSpec& worker : workers) out["workers"].push_back(test::ToJson(worker));
  return out.dump(1);
}

}  // namespace wb::test
