#!/usr/bin/env bash
# scripts/check_layers accepts the tree as it is and names each kind of fault in a small one.
set -euo pipefail
script=$1
tree=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$script" "$tree"

# file, its include, what the complaint must say
expect_refusal() {
  local file=$1 include=$2 complaint=$3
  rm -rf "${scratch:?}"/*
  mkdir -p "$scratch/$(dirname "$file")"
  printf '#pragma once\n#include %s\n' "$include" >"$scratch/$file"
  if "$script" "$scratch" 2>"$scratch/stderr"; then
    echo "$file with $include was accepted" >&2
    exit 1
  fi
  grep -qF "$complaint" "$scratch/stderr" || {
    cat "$scratch/stderr" >&2
    exit 1
  }
}
expect_acceptance() {
  local file=$1 include=$2
  rm -rf "${scratch:?}"/*
  mkdir -p "$scratch/$(dirname "$file")"
  printf '#pragma once\n#include %s\n' "$include" >"$scratch/$file"
  "$script" "$scratch"
}

expect_refusal planner/model/a.h '"planner/solve/planner.h"' \
  'planner/model/a.h:2: planner/model may not include planner/solve/planner.h'
expect_refusal transport/a.h '"planner/model/plan.h"' 'transport may not include planner/model/plan.h'
expect_refusal daemon/move/a.h '"daemon/rpc/local_door.h"' 'daemon/move may not include'
expect_refusal daemon/rpc/a.h '"daemon/daemon.h"' 'daemon/rpc may not include daemon/daemon.h'
expect_refusal daemon/move/a.h '<grpcpp/grpcpp.h>' 'grpcpp/grpcpp.h is for'
expect_refusal daemon/move/a.h '"weightbridge/v1/layout.pb.h"' 'layout.pb.h is for'
expect_refusal client/src/a.h '"absl/status/status.h"' 'absl/status/status.h is for'
expect_refusal client/src/a.h '"transport/fabric.h"' 'client/src may not include transport/fabric.h'
expect_refusal transport/a.h '<ucp/api/ucp.h>' 'ucp/api/ucp.h is for transport/ucx'
expect_refusal tests/planner/a.cc '<catch2/catch.hpp>' 'catch2/catch.hpp is for tests/support'
expect_acceptance daemon/rpc/a.h '"daemon/leader/leader.h"'
expect_acceptance transport/ucx/a.h '<ucp/api/ucp.h>'

rm -rf "${scratch:?}"/*
if "$script" "$scratch" 2>/dev/null; then
  echo "an empty tree was accepted" >&2
  exit 1
fi
