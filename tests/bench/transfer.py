"""How fast updates are, against what the machine, the fabric and other people's tools reach in the
same run: measurements that are compared take turns, and each figure is the median of its rounds.

An update's time is from the first worker's call to the last one's return, control and checksums
included, with sessions that are joined and warm; its bytes are checked when the session ends. Rates
are GB/s (1e9 bytes). A peer's ratio means what it says only where each process has a core.

There are no rows yet for what does not exist: snapshots, shadow landings, chunks that are passed on.
"""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from measure import ProgramFailed, in_turns, memcpy_rate, output, row
from rehearsal import cuts, worker
from server import free_port, serving
from updates import Session, on_loopback, two_networks

ROUNDS = 7
GIB, MIB = 1 << 30, 1 << 20
COLUMNS = 4096
EXAMPLES = pathlib.Path(__file__).parents[2] / "deploy/examples"
COPY_THREADS = min(4, os.cpu_count() or 1)
RUNS = (128, 1024, 4608)  # bytes of a row of down_proj or o_proj that a rank holds
IDLE_SECONDS = 10

# As transport/ucx/ucx_stack.cc pins UCX.
UCX = {"UCX_RNDV_THRESH": "64k", "UCX_RNDV_SCHEME": "am", "UCX_KEEPALIVE_INTERVAL": "1s"}
UCX_OF = {
    "tcp": {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo", "UCX_MAX_RNDV_RAILS": "1",
            "UCX_TCP_TX_SEG_SIZE": "1m", "UCX_TCP_RX_SEG_SIZE": "1m"},
    "shm": {"UCX_TLS": "posix", "UCX_MAX_RNDV_RAILS": "0", "UCX_MM_ERROR_HANDLING": "y"},
}

# Row-cut to column-cut: 8 square matrices of BF16, 268 MB, from 2 workers to 2.
RESHARD_TENSORS, RESHARD_SIDE = 8, 4096
OPEN_MPI = {"tcp": ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"],
            "shm": ["--mca", "btl", "vader,self"]}

# One layer of the model whose down_proj are cut by columns on one side, by experts on the other.
LAYER = f"""job: qwen3-30b
model: {{config: {EXAMPLES}/configs/qwen3-30b-a3b.json, dtype: BF16}}
trainer: {{framework: megatron, ranks: 2, tp: 2, pp: 1, ep: 1, etp: 2}}
rollouts: [{{framework: sglang, engines: 1, tp: 2, ep: 2}}]
cluster: {{nodes: 2, gpus_per_node: 2, placement: disjoint, rail_gb_per_s: 50,
          nvlink_gb_per_s: 450, pcie_gb_per_s: 55}}
"""


def matrices(count, shape):
    return {f"w{i:03}": {"dtype": "BF16", "shape": shape} for i in range(count)}


def contiguous(nodes, gib):
    """Whole matrices of 64 MiB from one worker to one."""
    shape = [8192, COLUMNS]
    tensors = matrices(gib * 16, shape)
    return {"job": "bench", "tensors": tensors, "workers": [
        worker("TRAINER", "policy", 0, nodes[0], tensors, 0, (0, shape[0])),
        worker("ROLLOUT", "engine0", 0, nodes[1], tensors, 0, (0, shape[0]))]}


def strided(run):
    """512 MiB in runs of `run` bytes, on one node: half of the matrices are whole at the source and
    cut into columns at the destination, half the other way round."""
    parts = 4
    columns = parts * run // 2
    shape = [(16 * MIB) // (2 * columns), columns]
    tensors = matrices(32, shape)
    halves = dict(list(tensors.items())[::2]), dict(list(tensors.items())[1::2])
    workers = []
    for role, group, whole, cut in (("TRAINER", "policy", *halves),
                                    ("ROLLOUT", "engine0", *halves[::-1])):
        for rank, bounds in enumerate(cuts(columns, parts)):
            held = worker(role, group, rank, "n0", cut, 1, bounds)
            if rank == 0:
                held["params"] += worker(role, group, 0, "n0", whole, 0, (0, shape[0]))["params"]
            workers.append(held)
    bytes_ = 32 * shape[0] * columns * 2
    return {"job": "bench", "tensors": tensors, "workers": workers}, bytes_


def reshard():
    side = RESHARD_SIDE
    tensors = matrices(RESHARD_TENSORS, [side, side])
    workers = [worker("TRAINER", "policy", rank, "n0", tensors, 0, bounds)
               for rank, bounds in enumerate(cuts(side, 2))]
    workers += [worker("ROLLOUT", "engine0", rank, "n1", tensors, 1, bounds)
                for rank, bounds in enumerate(cuts(side, 2))]
    return {"job": "bench", "tensors": tensors, "workers": workers}


def aimed(row_, aim):
    row_["aim"] = aim
    return row_


def rate(session, bytes_):
    return lambda: bytes_ / session.update() / 1e9


def fabric_rate(binaries, transport):
    """Of messages as our chunks are, as many in flight, through memory that no cache holds."""
    return float(output([binaries / "fabric_bench", transport, str(MIB), "4", str(GIB // 2)]))


def with_server(server, client, port, environment=None):
    """What `client` prints beside `server`, which ends with it."""
    with serving(server, port, environment):
        return output(client, environment)


def iperf_rate(places):
    """One stream from the first place to the second."""
    source, target = places.values()
    port = free_port()
    out = with_server([*target.prefix, "iperf3", "-s", "-1", "-p", str(port)],
                      [*source.prefix, "iperf3", "-c", target.address, "-p", str(port),
                       "-t", "1", "-J"], port)
    return json.loads(out)["end"]["sum_received"]["bits_per_second"] / 8e9


def perftest(transport, test, bytes_, count):
    """The figures of ucx_perftest's last line: its number, then latencies, rates and messages/s."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("UCX_")}
    port = free_port()
    tool = ["ucx_perftest", "-p", str(port), "-e"]
    out = with_server(tool, tool + ["127.0.0.1", "-t", test, "-s", str(bytes_), "-n", str(count),
                                    "-w", str(max(2, count // 20)), "-E", "sleep", "-f"],
                      port, {**inherited, **UCX, **UCX_OF[transport]})
    return [float(figure) for figure in out.split("\n")[-2].split()]


def perftest_rate(transport):
    """Messages of 1 MiB, always out of the same cached memory; its MB are MiB."""
    return perftest(transport, "ucp_am_bw", MIB, 300)[5] * MIB / 1e9


def mpi_rate(program, transport):
    """The median of three updates after one that warms up."""
    out = output(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4", "--mca", "pml", "ob1",
                  "--mca", "mpi_yield_when_idle", "1", *OPEN_MPI[transport], program,
                  str(RESHARD_TENSORS), str(RESHARD_SIDE), "4"])
    seconds = statistics.median(float(line) for line in out.splitlines()[1:])
    return RESHARD_TENSORS * RESHARD_SIDE ** 2 * 2 / seconds / 1e9


@contextlib.contextmanager
def busy_process():
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def beside_busy(measure):
    def measured():
        with busy_process():
            return measure()
    return measured


def chunk_work(binaries):
    for line in output([binaries / "strided_bench"]).splitlines():
        name, value, limit = line.split("\t")
        yield aimed(row(f"{name}, one core / memcpy", float(value), "GB/s", float(limit),
                        "memcpy of as many bytes, one core"), 0.8 if name == "checksum" else None)


def one_node(binaries):
    options = {"places": on_loopback("n0"), "threads": COPY_THREADS, "integrity": "off"}
    against = f"memcpy by {COPY_THREADS} threads"
    with contextlib.ExitStack() as stack:
        whole = stack.enter_context(Session(binaries, contiguous(("n0", "n0"), 2), **options))
        measures = {"contiguous": rate(whole, 2 * GIB),
                    "memcpy": lambda: memcpy_rate(binaries, 2 * GIB, COPY_THREADS)}
        for run in RUNS:
            file, bytes_ = strided(run)
            measures[run] = rate(stack.enter_context(Session(binaries, file, **options)), bytes_)
        median = in_turns(measures, ROUNDS)
    yield aimed(row("one node, contiguous / memcpy", median["contiguous"], "GB/s", median["memcpy"],
                    against), 0.9)
    for run in RUNS:
        yield aimed(row(f"one node, runs of {run} B / contiguous", median[run], "GB/s",
                        median["contiguous"], "the contiguous row"), 0.6)


def two_namespaces(binaries):
    try:
        with two_networks() as places, Session(binaries, contiguous(("n0", "n1"), 2),
                                               places) as session:
            median = in_turns({"update": rate(session, 2 * GIB),
                               "iperf3": lambda: iperf_rate(places)}, ROUNDS)
    except ProgramFailed as error:
        print(f"bench: no row of two network namespaces: {error}", file=sys.stderr)
        return
    yield aimed(row("two namespaces, tcp, contiguous / iperf3", median["update"], "GB/s",
                    median["iperf3"], "iperf3, one stream"), 0.85)


def over_tcp(binaries):
    places = on_loopback("n0", "n1")
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        layer = pathlib.Path(scratch) / "layer.yaml"
        layer.write_text(LAYER)
        planned = json.loads(output([binaries / "wbctl", "plan", layer, "--layers", "1",
                                     "--summary"]))["summary"]["bytes"]
        whole = stack.enter_context(Session(binaries, contiguous(("n0", "n1"), 1), places))
        real = stack.enter_context(Session(binaries, layer, on_loopback("node0", "node1"),
                                           layers=1))
        median = in_turns({"contiguous": rate(whole, GIB), "layer": rate(real, planned),
                           "fabric": lambda: fabric_rate(binaries, "tcp"),
                           "perftest": lambda: perftest_rate("tcp")}, ROUNDS)
    yield aimed(row("two daemons, tcp, a layer of Qwen3-30B / contiguous", median["layer"], "GB/s",
                    median["contiguous"], "the contiguous row over tcp"), 0.85)
    yield row("two daemons, tcp, contiguous / raw messages", median["contiguous"], "GB/s",
              median["fabric"], "fabric_bench: 1 MiB messages over tcp, cold memory")
    yield row("two daemons, tcp, contiguous / ucx_perftest", median["contiguous"], "GB/s",
              median["perftest"], "ucx_perftest ucp_am_bw, 1 MiB over tcp, cached")


def over_shm(binaries):
    with Session(binaries, contiguous(("n0", "n1"), 2), on_loopback("n0", "n1"),
                 "shm") as session:
        quiet = rate(session, 2 * GIB)
        median = in_turns({"update": quiet, "busy": beside_busy(quiet),
                           "fabric": lambda: fabric_rate(binaries, "shm"),
                           "perftest": lambda: perftest_rate("shm")}, ROUNDS)
    yield aimed(row("two daemons, shm, contiguous / raw messages", median["update"], "GB/s",
                    median["fabric"], "fabric_bench: 1 MiB messages over shm, cold memory"), 0.85)
    yield aimed(row("two daemons, shm, beside a busy process / quiet", median["busy"], "GB/s",
                    median["update"], "the quiet row"), 0.25)
    yield row("two daemons, shm, contiguous / ucx_perftest", median["update"], "GB/s",
              median["perftest"], "ucx_perftest ucp_am_bw, 1 MiB over shm, cached")


def resharded(binaries):
    places = on_loopback("n0", "n1")
    bytes_ = RESHARD_TENSORS * RESHARD_SIDE ** 2 * 2
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        program = pathlib.Path(scratch) / "reshard_mpi"
        output(["mpicc", "-std=c11", "-O2", "-o", program,
                pathlib.Path(__file__).parent / "reshard_mpi.c"])
        measures = {}
        for transport in OPEN_MPI:
            session = stack.enter_context(Session(binaries, reshard(), places, transport))
            measures[transport] = rate(session, bytes_)
            measures["mpi", transport] = lambda by=transport: mpi_rate(program, by)
        median = in_turns(measures, ROUNDS)
    for transport, aim in (("tcp", 1.2), ("shm", 1.0)):
        yield aimed(row(f"reshard of rows to columns, {transport} / Open MPI", median[transport],
                        "GB/s", median["mpi", transport],
                        f"Open MPI over {transport}, subarray datatypes"), aim)


def control(binaries):
    """The tiny example: 7 MB in 135 tensors, 16 workers; then its daemons left alone."""
    places = on_loopback("trainer0", "trainer1", "rollout0", "rollout1")
    with Session(binaries, EXAMPLES / "tiny-qwen3-moe.json", places) as session:
        ms = statistics.median(session.update() for _ in range(3 * ROUNDS)) * 1e3
        before, start = session.processor_seconds(), time.monotonic()
        time.sleep(IDLE_SECONDS)
        elapsed = time.monotonic() - start
        shares = [100 * (after - first) / elapsed
                  for first, after in zip(before, session.processor_seconds())]
    yield aimed(row("tiny update, first call to last return", ms, "ms", 15, "must", "lower"), 1)
    yield aimed(row("idle daemon, the busiest of four, share of a core", max(shares), "%", 0.5, "must",
                    "lower"), 1)


def rows(binaries):
    return [*one_node(binaries), *two_namespaces(binaries), *resharded(binaries),
            *over_shm(binaries), *over_tcp(binaries), *control(binaries), *chunk_work(binaries)]
