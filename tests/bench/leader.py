"""A real leader that is given Kimi-K2's 512 workers over 64 streams; see leader_bench.cc."""

import pathlib
import tempfile

from measure import figures, output
from server import free_port, serving

ROUNDS = 3
DEPLOYMENT = pathlib.Path(__file__).parents[2] / "deploy/examples/kimi-k2.yaml"


def once(binaries):
    with tempfile.TemporaryDirectory() as scratch:
        port = free_port()
        config = pathlib.Path(scratch) / "leader.yaml"
        config.write_text(f"node: leader\nrun_dir: {scratch}/run\n"
                          f"leader:\n  listen: 127.0.0.1:{port}\ndata:\n  interface: lo\n")
        with serving([binaries / "weightbridged", "--config", config], port) as leader:
            return output([binaries / "leader_bench", DEPLOYMENT, f"127.0.0.1:{port}",
                           str(leader.pid)])


def rows(binaries):
    return figures(once(binaries) for _ in range(ROUNDS))
