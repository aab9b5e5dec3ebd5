#pragma once

namespace wb::test {

/// The complete layout file of the design: a fused and interleaved trainer, a transposed and a
/// padded param.
inline constexpr const char* kGqaFile = R"({
  "job": "gqa",
  "tensors": { "q": {"dtype": "BF16", "shape": [16, 2]}, "k": {"dtype": "BF16", "shape": [4, 2]},
               "w": {"dtype": "FP32", "shape": [2, 3]} },
  "workers": [
    { "role": "TRAINER", "group": "policy", "rank": 0, "node": "n0",
      "params": [
        { "name": "linear_qkv.weight", "shape": [20, 2],
          "pieces": [
            {"tensor": "q", "box": {"lo": [0,0], "hi": [8,2]}, "at": [0,0]},
            {"tensor": "k", "box": {"lo": [0,0], "hi": [2,2]}, "at": [8,0]},
            {"tensor": "q", "box": {"lo": [8,0], "hi": [16,2]}, "at": [10,0]},
            {"tensor": "k", "box": {"lo": [2,0], "hi": [4,2]}, "at": [18,0]} ] },
        { "name": "w_t", "shape": [3, 2],
          "pieces": [
            {"tensor": "w", "box": {"lo": [0,0], "hi": [2,3]}, "at": [0,0], "axes": [1,0]} ] } ] },
    { "role": "ROLLOUT", "group": "engine0", "rank": 0, "node": "n1",
      "params": [
        { "name": "qkv", "shape": [20, 2],
          "pieces": [
            {"tensor": "q", "box": {"lo": [0,0], "hi": [16,2]}, "at": [0,0]},
            {"tensor": "k", "box": {"lo": [0,0], "hi": [4,2]}, "at": [16,0]} ] },
        { "name": "w", "shape": [2, 3], "strides": [4, 1], "dtype": "FP32",
          "pieces": [ {"tensor": "w", "box": {"lo": [0,0], "hi": [2,3]}, "at": [0,0]} ] } ] } ] })";

}  // namespace wb::test
