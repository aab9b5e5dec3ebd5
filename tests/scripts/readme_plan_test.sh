#!/usr/bin/env bash
# README's answer to "what would my cluster do" is what wbctl says, as far as it is shown.
#
# usage: readme_plan_test.sh TREE WBCTL
set -euo pipefail
said=$("$2" plan "$1/deploy/examples/kimi-k2.yaml" --summary -o table)

shown=$(sed -n '/^job  *kimi-k2:/,/^```$/p' "$1/README.md" | grep -vxF -e '```' -e '  ...')
[ "$(wc -l <<<"$shown")" -ge 15 ] || {
  echo "README.md shows no summary of deploy/examples/kimi-k2.yaml" >&2
  exit 1
}
[[ $said == "$shown"* ]] || {
  echo "README.md shows another summary of deploy/examples/kimi-k2.yaml than wbctl:" >&2
  diff <(echo "$shown") <(echo "$said") >&2
  exit 1
}
