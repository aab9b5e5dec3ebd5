#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/frameworks/megatron_layout.h"
#include "planner/frameworks/sglang_layout.h"

namespace wb::test {

/// The four deployments that this project is measured by.
struct Canonical {
  std::string config;
  MegatronLayout trainer;
  SglangLayout engine;
  std::int64_t engines = 1;
};

inline Canonical Moonlight() {
  return {"moonlight-16b-a3b",
          {.ranks = 8, .tp = 2, .ep = 8, .pipeline = {}},
          {.tp = 8, .ep = 8, .physical_to_logical = {}},
          1};
}
inline Canonical Qwen30B() {
  return {"qwen3-30b-a3b",
          {.ranks = 16, .tp = 4, .ep = 8, .pipeline = {}},
          {.tp = 8, .ep = 8, .physical_to_logical = {}},
          2};
}
inline Canonical Qwen235B() {
  return {"qwen3-235b-a22b",
          {.ranks = 64,
           .tp = 4,
           .cp = 2,
           .ep = 16,
           .pipeline = {.pp = 4, .last_stage_layers = 22, .layout = ""}},
          {.tp = 32, .ep = 32, .physical_to_logical = {}},
          2};
}
inline Canonical KimiK2() {
  return {"kimi-k2",
          {.ranks = 256,
           .tp = 8,
           .cp = 4,
           .ep = 32,
           .pipeline = {.pp = 8, .last_stage_layers = 5, .layout = ""}},
          {.tp = 32,
           .ep = 32,
           .dp = 8,
           .dp_lm_head = true,
           .dense_tp_one = true,
           .physical_to_logical = {}},
          8};
}

}  // namespace wb::test
