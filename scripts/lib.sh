# Shared by the scripts: sourced, not run.
# shellcheck shell=bash

# The repository's top folder becomes the working folder.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# ccache hits across clones of the tree and is bounded.
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$PWD}" CCACHE_NOHASHDIR=1
export CCACHE_MAXSIZE="${CCACHE_MAXSIZE:-2G}"

# build PRESET [TARGET...]: configures once and builds.
build() {
  local preset=$1
  shift
  if [ ! -f "build/$preset/build.ninja" ]; then
    mkdir -p build
    cmake --preset "$preset" >"build/configure-$preset.log" 2>&1 || {
      cat "build/configure-$preset.log" >&2
      rm -f "build/configure-$preset.log"
      return 1
    }
    rm -f "build/configure-$preset.log"
  fi
  local targets=()
  for target in "$@"; do targets+=(--target "$target"); done
  cmake --build --preset "$preset" "${targets[@]}"
}
