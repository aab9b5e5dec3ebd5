"""Servers that a benchmark starts beside its programs."""

import contextlib
import pathlib
import socket
import subprocess
import time

from measure import SECONDS, ProgramFailed


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(pid, port):
    """Whether anything in the process's network does. A connection to find out would be the only one
    that some tools take."""
    lines = [line.split() for table in ("tcp", "tcp6")
             for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]]
    return any(state == "0A" and int(local.rsplit(":", 1)[1], 16) == port
               for _, local, _, state, *_ in lines)


@contextlib.contextmanager
def serving(server, port, environment=None):
    """`server`'s process while it listens on `port`; it ends with the block."""
    process = subprocess.Popen(server, env=environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + SECONDS
        while not listens(process.pid, port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise ProgramFailed(f"{server[0]} does not listen on port {port}")
            time.sleep(0.005)
        yield process
    finally:
        process.kill()
        process.wait()
