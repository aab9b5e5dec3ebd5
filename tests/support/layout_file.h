#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace wb::test {

/// The parts of a layout file as a test writes them down, in the file's own words.
using Indices = std::vector<std::int64_t>;

struct PieceSpec {
  std::string tensor;
  Indices lo;
  Indices hi;
  Indices at = {};  // empty: left out, as are the others below
  Indices axes = {};
};

struct ParamSpec {
  std::string name;
  Indices shape;
  std::vector<PieceSpec> pieces = {};
  std::string dtype = {};
  std::string buffer = {};
  std::int64_t offset_bytes = 0;
  Indices strides = {};
  bool local = false;
};

struct WorkerFileSpec {
  std::string group;  // "policy" is the trainers', any other a rollout engine
  std::int32_t rank = 0;
  std::vector<ParamSpec> params = {};
  std::string node = {};  // default: n0 for the trainers, n1 for the rollouts
};

struct TensorSpec {
  std::string name;
  std::string dtype;
  Indices shape;
};

/// A whole layout file. Nothing is checked: what is wrong with it is for the programs to say.
struct LayoutFileSpec {
  std::vector<TensorSpec> tensors;
  std::vector<WorkerFileSpec> workers;
  std::vector<std::pair<std::string, std::string>> aliases = {};  // alias, the tensor it is tied to

  std::string ToJson() const;
};

}  // namespace wb::test
