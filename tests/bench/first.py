"""The first figures: what each part comes to beside the usual tool for it, in the same run.

- A strided copy, as packing does it, beside memcpy of as many bytes.
- Updates of 256 MiB between two daemons, whole tensors and columns cut out of them, packed and
  scattered as 4 KiB runs; from the first publish to the last commit, checksums included. Beside
  ucx_perftest over the same transport, set as our fabric sets UCX and asleep where it waits, which
  packs, checks and commits nothing: messages of 1 MiB, as our chunks are, always out of the same
  cached memory, and of 64 MiB, which no cache holds. Over TCP beside iperf3 as well.
- The same update where one daemon serves both ends, beside memcpy of as many bytes.
- An update of a few KiB: what control costs, in round trips of two processes over TCP.

Measurements that are compared take turns, and each figure is the median of its rounds. Rates are
GB/s (1e9 bytes). Have a core for each of two processes: ucx_perftest gives way to nothing else that
runs, and over shared memory it falls to a twentieth where it has to share.
"""

import json
import os
import shutil
import statistics

from measure import in_turns, memcpy_rate, output, row
from rehearsal import cuts, rehearse, worker
from server import free_port, serving

ROUNDS = 5
MIB = 1 << 20
ROWS, COLUMNS = 8192, 4096  # of 4 tensors of BF16: 256 MiB
TENSORS = 4
BYTES = TENSORS * ROWS * COLUMNS * 2
KINDS = {"contiguous": 1, "4 KiB runs": 2}  # rollouts that share the columns
# ucx_perftest's test, its bytes a message, and how many of them.
TESTS = (("ucp_am_bw", MIB, 300), ("ucp_am_bw", 64 * MIB, 6), ("tag_bw", 64 * MIB, 6))
# As transport/ucx/ucx_stack.cc pins it.
UCX = {"UCX_RNDV_THRESH": "64k", "UCX_RNDV_SCHEME": "am", "UCX_KEEPALIVE_INTERVAL": "1s"}
UCX_OF = {
    "tcp": {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo", "UCX_MAX_RNDV_RAILS": "1",
            "UCX_TCP_TX_SEG_SIZE": "1m", "UCX_TCP_RX_SEG_SIZE": "1m"},
    "shm": {"UCX_TLS": "posix", "UCX_MAX_RNDV_RAILS": "0", "UCX_MM_ERROR_HANDLING": "y"},
}


def layout(nodes, rollouts, extent=ROWS):
    """One trainer that holds everything, and `rollouts` that hold even shares of its columns."""
    tensors = {f"w{i}": {"dtype": "BF16", "shape": [extent, COLUMNS]} for i in range(TENSORS)}
    workers = [worker("TRAINER", "policy", 0, nodes[0], tensors, 1, (0, COLUMNS))]
    workers += [worker("ROLLOUT", "engine0", rank, nodes[1], tensors, 1, bounds)
                for rank, bounds in enumerate(cuts(COLUMNS, rollouts))]
    return {"job": "bench", "tensors": tensors, "workers": workers}


def rehearsed_rate(binaries, file, transport):
    return statistics.median(v["gb_per_s"] for v in rehearse(binaries, file, transport, 3))


def with_server(server, client, port, environment=None):
    """What `client` prints beside `server`, which ends with it."""
    with serving(server, port, environment):
        return output(client, environment)


def perftest(transport, test, bytes_, count):
    """The figures of ucx_perftest's last line: its number, then latencies, rates and messages/s."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("UCX_")}
    port = free_port()
    tool = ["ucx_perftest", "-p", str(port), "-e"]
    out = with_server(tool, tool + ["127.0.0.1", "-t", test, "-s", str(bytes_), "-n", str(count),
                                    "-w", str(max(2, count // 20)), "-E", "sleep", "-f"],
                      port, {**inherited, **UCX, **UCX_OF[transport]})
    return [float(figure) for figure in out.split("\n")[-2].split()]


def perftest_rate(transport, test, bytes_, count):
    return perftest(transport, test, bytes_, count)[5] * MIB / 1e9  # its MB are MiB


def round_trip_ms():
    """Of a message of 64 bytes and its like, over TCP."""
    return 2 * perftest("tcp", "ucp_am_lat", 64, 5000)[3] / 1e3  # of one way, in microseconds


def iperf_rate():
    port = free_port()
    out = with_server(["iperf3", "-s", "-1", "-p", str(port)],
                      ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-t", "1", "-J"], port)
    return json.loads(out)["end"]["sum_received"]["bits_per_second"] / 8e9


def strided(binaries):
    for line in output([binaries / "strided_bench"]).splitlines():
        run, copied, limit = line.split()
        yield row(f"strided copy, runs of {run} B / memcpy", float(copied), "GB/s", float(limit),
                  "memcpy of as many bytes, one thread")


def between_daemons(binaries):
    measures = {}
    for transport in UCX_OF:
        for kind, rollouts in KINDS.items():
            measures[transport, kind] = lambda file=layout(("n0", "n1"), rollouts), by=transport: (
                rehearsed_rate(binaries, file, by))
        for test in TESTS:
            measures[transport, test] = lambda by=transport, test=test: perftest_rate(by, *test)
    measures["iperf3"] = iperf_rate
    median = in_turns(measures, ROUNDS)

    for transport in UCX_OF:
        for kind in KINDS:
            name, value = f"two daemons, {transport}, {kind}", median[transport, kind]
            for test in TESTS:
                size = test[1] // MIB
                yield row(f"{name} / ucx_perftest {test[0]} {size} MiB", value, "GB/s",
                          median[transport, test],
                          f"ucx_perftest {test[0]}, messages of {size} MiB over {transport}")
            if transport == "tcp":
                yield row(f"{name} / iperf3", value, "GB/s", median["iperf3"],
                          "iperf3, one stream over the loopback interface")


def one_daemon(binaries):
    measures = {kind: lambda file=layout(("n0", "n0"), rollouts): (
                    rehearsed_rate(binaries, file, "tcp"))
                for kind, rollouts in KINDS.items()}
    measures["memcpy"] = lambda: memcpy_rate(binaries, BYTES)
    median = in_turns(measures, ROUNDS)
    for kind in KINDS:
        yield row(f"one daemon, {kind} / memcpy", median[kind], "GB/s", median["memcpy"],
                  "memcpy of as many bytes, one thread")


def control_time(binaries):
    def tiny(transport):
        updates = rehearse(binaries, layout(("n0", "n1"), 1, extent=1), transport, 21)
        return statistics.median(v["end_to_end_ms"] for v in updates)

    measures = {transport: lambda by=transport: tiny(by) for transport in UCX_OF}
    measures["round trip"] = round_trip_ms
    median = in_turns(measures, ROUNDS)
    for transport in UCX_OF:
        yield row(f"tiny update, two daemons, {transport} / round trip", median[transport], "ms",
                  median["round trip"],
                  "ucx_perftest ucp_am_lat, two ways of 64 B over tcp", better="lower")


def rows(binaries):
    for tool in ("iperf3", "ucx_perftest"):
        if shutil.which(tool) is None:
            raise ProgramFailed(f"{tool} is missing; scripts/setup bench installs it")
    return [*strided(binaries), *between_daemons(binaries), *one_daemon(binaries),
            *control_time(binaries)]
