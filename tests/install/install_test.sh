#!/usr/bin/env bash
# Installs a build, moves the prefix, and uses what is there as a project of someone else does.
#
# usage: install_test.sh tree|find_package|pkg_config SOURCE_DIR BUILD_DIR
#   tree          every file is where it belongs and knows neither the build tree nor the old prefix
#   find_package  a CMake project builds the example programs; they move versions and verify them
#   pkg_config    the same with a compiler and pkg-config alone
set -euo pipefail
part=$1
source=$2
build=$3

scratch=$(mktemp -d)
running=()
finish() {
  for pid in "${running[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait
  rm -rf "$scratch"
}
trap finish EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

cmake --install "$build" --prefix "$scratch/first" >"$scratch/install.log"
mkdir "$scratch/elsewhere"
prefix=$scratch/elsewhere/prefix
mv "$scratch/first" "$prefix"

check_tree() {
  local file
  for file in bin/weightbridged bin/wbctl lib/libweightbridge.so include/weightbridge/client.h \
    include/weightbridge/weightbridge.h lib/cmake/weightbridge/weightbridgeConfig.cmake \
    lib/cmake/weightbridge/weightbridgeConfigVersion.cmake lib/pkgconfig/weightbridge.pc \
    share/weightbridge/weightbridged.yaml share/weightbridge/trainer.cc; do
    [ -e "$prefix/$file" ] || fail "$file is not installed"
  done
  [ "$(readlink "$prefix/lib/libweightbridge.so")" = libweightbridge.so.0 ] ||
    fail "libweightbridge.so is not a link to its soname"
  local soname
  soname=$(readelf -d "$prefix/lib/libweightbridge.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
  [ "$soname" = libweightbridge.so.0 ] || fail "the soname is $soname"

  # Texts that are installed name neither of the three places.
  if grep -rlF -e "$build" -e "$source" -e "$scratch" "$prefix/lib/cmake" "$prefix/lib/pkgconfig" \
    "$prefix/include" "$prefix/share"; then
    fail "these files know where they were built or installed"
  fi
  # Programs find the library beside them, wherever the prefix is, and nothing in the build tree.
  local program
  for program in bin/weightbridged bin/wbctl lib/libweightbridge.so; do
    ldd "$prefix/$program" >"$scratch/ldd"
    if grep -F -e "$build" -e "not found" "$scratch/ldd"; then fail "$program needs these"; fi
    local runpath
    runpath=$(readelf -d "$prefix/$program" | sed -n 's/.*R\(UN\)\{0,1\}PATH.*\[\(.*\)\]/\2/p')
    case "$program:$runpath" in
      'bin/wbctl:$ORIGIN/../lib' | bin/weightbridged: | lib/libweightbridge.so:) ;;
      *) fail "$program has run path '$runpath'" ;;
    esac
  done
  # What a trainer gets into its process: protobuf (which needs zlib), the C++ runtime, libc.
  if ldd "$prefix/lib/libweightbridge.so" |
    grep -vE '^\s*(linux-vdso|lib(protobuf|z|stdc\+\+|gcc_s|m|c)|/.*/ld-linux-.*)\.so'; then
    fail "libweightbridge.so brings these with it"
  fi
  ldd "$prefix/bin/wbctl" >"$scratch/ldd"  # not piped into grep -q, which may leave it unread
  grep -qF "$prefix/" "$scratch/ldd" || fail "wbctl does not use the library beside it"
  "$prefix/bin/wbctl" plan "$source/deploy/examples/tiny-qwen3-moe.json" --summary >/dev/null
  "$prefix/bin/weightbridged" --config "$prefix/share/weightbridge/weightbridged.yaml" \
    --check-config
}

build_with_find_package() {
  cmake -S "$source/tests/install/consumer" -B "$scratch/built" -G Ninja \
    -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLES="$source/deploy/examples" >"$scratch/configure.log" ||
    { cat "$scratch/configure.log"; fail "the consumer does not configure"; }
  cmake --build "$scratch/built" -j 2
}

build_with_pkg_config() {
  local cflags libs
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  [ "$(pkg-config --modversion weightbridge)" = "$("$prefix/bin/wbctl" --version | tr -dc 0-9.)" ] ||
    fail "weightbridge.pc has version $(pkg-config --modversion weightbridge)"
  read -ra cflags < <(pkg-config --cflags weightbridge)
  read -ra libs < <(pkg-config --libs weightbridge)
  mkdir "$scratch/built"
  local name
  for name in trainer rollout; do
    c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror "${cflags[@]}" \
      "$source/deploy/examples/$name.cc" -o "$scratch/built/$name" "${libs[@]}"
  done
  cc -std=c11 -Wall -Wextra -Wpedantic -Werror "${cflags[@]}" "$source/deploy/examples/trainer.c" \
    -o "$scratch/built/trainer_c" "${libs[@]}"
  # pkg-config leaves finding the library at run time to the user.
  export LD_LIBRARY_PATH=$prefix/lib
}

# What the programs were linked with by name is ours and the C and C++ runtimes; protobuf is not.
check_needed() {
  local program
  for program in trainer rollout trainer_c; do
    local needed
    needed=$(readelf -d "$scratch/built/$program" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
    if grep -vE '^(libweightbridge\.so\.0|lib(stdc\+\+|gcc_s|m|c)\.so\.[0-9]+)$' <<<"$needed"; then
      fail "$program needs these"
    fi
  done
}

start_daemon() {
  mkdir "$scratch/run"
  cat >"$scratch/weightbridged.yaml" <<CONFIG
node: n0
run_dir: $scratch/run
leader:
  listen: 127.0.0.1:0
data:
  interface: lo
CONFIG
  : >"$scratch/daemon.log"  # there when tail looks
  "$prefix/bin/weightbridged" --config "$scratch/weightbridged.yaml" 2>>"$scratch/daemon.log" &
  running+=($!)
  # tail ends with the daemon, or when grep has seen enough.
  grep -qm1 ' ready$' < <(timeout 30 tail -n +1 -f --pid="${running[0]}" "$scratch/daemon.log") &&
    return
  cat "$scratch/daemon.log" >&2
  fail "the installed weightbridged does not serve"
}

# run_job JOB TRAINER: two trainer ranks to two rollout ranks, three versions.
run_job() {
  local job=$1 trainer=$2 rank pids=()
  for rank in 0 1; do
    "$scratch/built/rollout" "$scratch/run/worker.sock" "$job" $rank 2 3 \
      >"$scratch/$job-rollout-$rank" 2>&1 &
    pids+=($!)
    "$scratch/built/$trainer" "$scratch/run/worker.sock" "$job" $rank 2 3 \
      >"$scratch/$job-trainer-$rank" 2>&1 &
    pids+=($!)
  done
  running+=("${pids[@]}")
  local pid failed=0
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  tail -n +1 "$scratch/$job"-*
  [ $failed -eq 0 ] || fail "a worker of job $job"
  for rank in 0 1; do
    [ "$(grep -c 'bytes received and right' "$scratch/$job-rollout-$rank")" -eq 3 ] ||
      fail "rollout rank $rank of job $job has not verified three versions"
  done
}

case $part in
  tree)
    check_tree
    exit
    ;;
  find_package) build_with_find_package ;;
  pkg_config) build_with_pkg_config ;;
  *) fail "no part $part" ;;
esac
check_needed
start_daemon
run_job in-cxx trainer
run_job in-c trainer_c
