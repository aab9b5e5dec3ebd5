"""Runs one benchmark and prints its rows; scripts/bench builds and calls it.

A row is {name, value, unit, limit, ratio, aim, better}: `limit` is a figure taken in the same run,
`ratio` = value / limit; null where there is none.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 3  # medians, because the machine is noisy


def row(name, value, unit, limit=None, better="higher"):
    ratio = value / limit if limit else None
    return {"name": name, "value": value, "unit": unit, "limit": limit, "ratio": ratio,
            "aim": None, "better": better}


def cuts(extent, parts):
    """Bounds of `parts` even shares of `extent`."""
    return [(extent * part // parts, extent * (part + 1) // parts) for part in range(parts)]


def worker(role, group, rank, node, tensors, dim, bounds):
    params = []
    for name, spec in tensors.items():
        lo, hi = [0, 0], list(spec["shape"])
        lo[dim], hi[dim] = bounds
        params.append({"name": name, "shape": [h - l for l, h in zip(lo, hi)],
                       "pieces": [{"tensor": name, "box": {"lo": lo, "hi": hi}, "at": [0, 0]}]})
    return {"role": role, "group": group, "rank": rank, "node": node, "params": params}


def layout(rollout_dim):
    """1 GiB of BF16 in 16 tensors: 2 trainers hold rows, 2 rollouts hold rows or columns."""
    shape = [8192, 4096]
    tensors = {f"w{i:02}": {"dtype": "BF16", "shape": shape} for i in range(16)}
    workers = [worker("TRAINER", "policy", rank, "n0", tensors, 0, bounds)
               for rank, bounds in enumerate(cuts(shape[0], 2))]
    workers += [worker("ROLLOUT", "engine0", rank, "n1", tensors, rollout_dim, bounds)
                for rank, bounds in enumerate(cuts(shape[rollout_dim], 2))]
    return {"job": "bench", "tensors": tensors, "workers": workers}


def memcpy_rate(binaries, bytes_):
    """GB/s of one thread's memcpy of as many bytes, both sides touched before."""
    done = subprocess.run([binaries / "memcpy_limit", str(bytes_)], check=True,
                          capture_output=True, text=True)
    return float(done.stdout)


def demo(binaries):
    rows = []
    for kind, dim in (("rows to rows (contiguous)", 0), ("rows to columns (4 KiB runs)", 1)):
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "layout.json"
            path.write_text(json.dumps(layout(dim)))
            done = subprocess.run(
                [binaries / "wbctl", "rehearse", path, "--fill", "row", "--versions",
                 str(ROUNDS + 1), "-o", "json"], check=True, capture_output=True, text=True)
        # The first version pays for page faults and connections; it is left out.
        warm = json.loads(done.stdout)["versions"][1:]
        seconds = statistics.median(version["end_to_end_ms"] for version in warm) / 1e3
        moved = warm[0]["bytes_moved"]
        limit = statistics.median(memcpy_rate(binaries, moved) for _ in range(ROUNDS))
        rows.append(row(f"demo 1 GiB, {kind}, tcp, first publish to last commit",
                        moved / seconds / 1e9, "GB/s", limit))
    return rows


def micro(binaries, name):
    done = subprocess.run([binaries / f"{name}_bench", "--benchmark_format=json"], check=True,
                          capture_output=True, text=True)
    rows = []
    for bench in json.loads(done.stdout)["benchmarks"]:
        if "bytes_per_second" in bench:
            rows.append(row(bench["name"], bench["bytes_per_second"] / 1e9, "GB/s",
                            bench.get("limit_gb_per_s")))
        elif "real_time" in bench:
            rows.append(row(bench["name"], bench["real_time"], bench["time_unit"],
                            better="lower"))
    return rows


def show(rows):
    width = max(len(r["name"]) for r in rows)
    print(f"{'name':<{width}}  {'value':>10}  {'unit':<5}  {'limit':>10}  {'ratio':>6}")
    for r in rows:
        limit = f"{r['limit']:10.2f}" if r["limit"] else " " * 10
        ratio = f"{r['ratio']:6.2f}" if r["ratio"] else ""
        print(f"{r['name']:<{width}}  {r['value']:10.2f}  {r['unit']:<5}  {limit}  {ratio}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    binaries = options.bin.resolve()
    rows = demo(binaries) if options.name == "demo" else micro(binaries, options.name)
    show(rows)
    if options.json:
        temporary = options.json.with_suffix(".tmp")
        temporary.write_text(json.dumps(rows, indent=1) + "\n")
        os.replace(temporary, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
