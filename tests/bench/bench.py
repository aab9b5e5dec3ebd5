"""Runs one benchmark and prints its rows; scripts/bench builds and calls it.

A row is {name, value, unit, limit, ratio, aim, better, against}: `limit` is a figure of `against`,
taken in the same run, `ratio` = value / limit; null where there is none.
"""

import argparse
import json
import math
import os
import pathlib
import signal
import statistics
import sys

import leader
import transfer
from measure import ProgramFailed, figures, memcpy_rate, output, row
from rehearsal import cuts, rehearse, worker

ROUNDS = 3  # medians, because the machine is noisy
MICRO_SECONDS = 600  # of a whole program of micro-benchmarks
# Of planner_bench, each in a process of its own; those that grow are there to show the fit.
PLANNER = ("moonlight", "qwen3-30b", "qwen3-235b", "kimi-k2", "kimi-k2-joins",
           "kimi-k2-explained", "1024", "2048", "4096", "fan-out", "trainer-daemon",
           "rollout-daemon")
GROWING = ("Kimi-K2, 256 to 8 x 32", "1024 to 32 x 32", "2048 to 64 x 32", "4096 to 128 x 32")
PLANNER_ROUNDS = 5


def layout(rollout_dim):
    """1 GiB of BF16 in 16 tensors: 2 trainers hold rows, 2 rollouts hold rows or columns."""
    shape = [8192, 4096]
    tensors = {f"w{i:02}": {"dtype": "BF16", "shape": shape} for i in range(16)}
    workers = [worker("TRAINER", "policy", rank, "n0", tensors, 0, bounds)
               for rank, bounds in enumerate(cuts(shape[0], 2))]
    workers += [worker("ROLLOUT", "engine0", rank, "n1", tensors, rollout_dim, bounds)
                for rank, bounds in enumerate(cuts(shape[rollout_dim], 2))]
    return {"job": "bench", "tensors": tensors, "workers": workers}


def demo(binaries):
    rows = []
    for kind, dim in (("rows to rows (contiguous)", 0), ("rows to columns (4 KiB runs)", 1)):
        warm = rehearse(binaries, layout(dim), "tcp", ROUNDS + 1)
        seconds = statistics.median(version["end_to_end_ms"] for version in warm) / 1e3
        moved = warm[0]["bytes_moved"]
        limit = statistics.median(memcpy_rate(binaries, moved) for _ in range(ROUNDS))
        rows.append(row(f"demo 1 GiB, {kind}, tcp, first publish to last commit",
                        moved / seconds / 1e9, "GB/s", limit, "memcpy of as many bytes"))
    return rows


def micro(binaries, name):
    done = output([binaries / f"{name}_bench", "--benchmark_format=json"], seconds=MICRO_SECONDS)
    rows = []
    for bench in json.loads(done)["benchmarks"]:
        if "bytes_per_second" in bench:
            rows.append(row(bench["name"], bench["bytes_per_second"] / 1e9, "GB/s",
                            bench.get("limit_gb_per_s"), "memcpy"))
        elif "real_time" in bench:
            rows.append(row(bench["name"], bench["real_time"], bench["time_unit"],
                            better="lower"))
    return rows


def fabric(binaries):
    """Messages in flight, and their sizes: what each fabric carries, cold memory."""
    return [row(f"{transport}, messages of {size >> 10} KiB, {in_flight} in flight",
                float(output([binaries / "fabric_bench", transport, str(size), str(in_flight),
                              str(1 << 28)])), "GB/s")
            for transport in ("tcp", "shm") for size in (4 << 10, 64 << 10, 1 << 20, 4 << 20)
            for in_flight in (1, 2, 4, 8)]


def planner(binaries):
    """Medians; the limit is what a figure must be at most."""
    rows = figures(output([binaries / "planner_bench", scenario])
                   for _ in range(PLANNER_ROUNDS) for scenario in PLANNER)
    return rows + [fit({r["name"]: r["value"] for r in rows})] + leader.rows(binaries)


def fit(values):
    """The exponent e of seconds = c * slices^e, by least squares over logarithms; 1 is linear."""
    points = [(math.log(values[f"{name}, slices"]),
               math.log(values[f"{name}, from deployment file to checked plan"]))
              for name in GROWING]
    x, y = (statistics.fmean(axis) for axis in zip(*points))
    exponent = (sum((a - x) * (b - y) for a, b in points)
                / sum((a - x) ** 2 for a, _ in points))
    return row("256 to 4096 trainers, seconds grow as slices to the power", exponent, "", 1.1, "must",
               better="lower")


def show(rows):
    width = max(len(r["name"]) for r in rows)
    print(f"{'name':<{width}}  {'value':>10}  {'unit':<5}  {'limit':>10}  {'ratio':>6}  {'aim':>4}")
    for r in rows:
        limit = f"{r['limit']:10.2f}" if r["limit"] else " " * 10
        ratio = f"{r['ratio']:6.2f}" if r["ratio"] else ""
        aim = f"{r['aim']:4.2f}" if r["aim"] else ""
        print(f"{r['name']:<{width}}  {r['value']:10.2f}  {r['unit']:<5}  {limit}  {ratio:>6}  {aim}")


def write(rows, path):
    """Whole or not at all; "-" is stdout."""
    text = json.dumps(rows, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    temporary = f"{path}.tmp"
    pathlib.Path(temporary).write_text(text)
    os.replace(temporary, path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--json", nargs="?", const="-")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    binaries = options.bin.resolve()
    whole = {"demo": demo, "fabric": fabric, "leader": leader.rows,
             "planner": planner, "transfer": transfer.rows}
    try:
        rows = (whole[options.name](binaries) if options.name in whole
                else micro(binaries, options.name))
    except ProgramFailed as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    if options.json != "-":
        show(rows)
    if options.json:
        write(rows, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
