#!/usr/bin/env bash
# README's C++ is lines of the example programs, which are built and run: it cannot grow stale.
#
# usage: readme_code_test.sh TREE
set -euo pipefail
examples=("$1"/deploy/examples/{trainer,rollout}.cc)

shown=0
while IFS= read -r line; do
  shown=$((shown + 1))
  grep -qxF -- "$line" "${examples[@]}" || {
    echo "README.md shows a line that is in no example: $line" >&2
    exit 1
  }
done < <(sed -n '/^```cpp$/,/^```$/p' "$1/README.md" | grep -v '^```' | grep .)
[ "$shown" -ge 30 ] || {
  echo "README.md shows $shown lines of the examples, want a program" >&2
  exit 1
}
