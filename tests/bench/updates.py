"""Updates between daemons that run as they do on their nodes, in one network or in two."""

import contextlib
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

from measure import SECONDS, ProgramFailed, output
from server import free_port

START_SECONDS = 120  # workers fill gigabytes


class Place:
    """Where a node's daemon runs: the prefix of its command, its address and its interface."""

    def __init__(self, prefix=(), address="127.0.0.1", interface="lo"):
        self.prefix, self.address, self.interface = list(prefix), address, interface


def on_loopback(*nodes):
    return {node: Place() for node in nodes}


@contextlib.contextmanager
def two_networks():
    """Places of n0 and n1 in network namespaces, joined by a virtual cable; ProgramFailed where none
    can be made."""
    names = [f"wb-bench-{os.getpid()}-{end}" for end in (0, 1)]
    places = [Place(["ip", "netns", "exec", name], f"10.78.0.{end + 1}", "data0")
              for end, name in enumerate(names)]
    try:
        for name in names:
            output(["ip", "netns", "add", name])
            output(["ip", "-n", name, "link", "set", "lo", "up"])
        output(["ip", "-n", names[0], "link", "add", "data0", "type", "veth",
                "peer", "name", "data0", "netns", names[1]])
        for name, place in zip(names, places):
            output(["ip", "-n", name, "address", "add", f"{place.address}/24", "dev", "data0"])
            output(["ip", "-n", name, "link", "set", "data0", "up"])
        for name in names:
            await_link(name)
        yield {"n0": places[0], "n1": places[1]}
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def await_link(namespace):
    """The kernel says so up to a second after both ends are up; UCX looks once."""
    deadline = time.monotonic() + SECONDS
    while "state UP" not in output(["ip", "-n", namespace, "link", "show", "data0"]):
        if time.monotonic() > deadline:
            raise ProgramFailed(f"data0 of {namespace} does not come up")
        time.sleep(0.005)


def certificate(folder, places):
    """One that all daemons show and trust: beyond loopback they speak TLS only."""
    names = ",".join(f"IP:{place.address}" for place in places.values())
    output(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "2", "-subj", "/CN=bench", "-addext", f"subjectAltName={names}",
            "-keyout", f"{folder}/key", "-out", f"{folder}/cert"])
    os.chmod(f"{folder}/key", 0o640)
    return f"tls: {{cert: {folder}/cert, key: {folder}/key, ca: {folder}/cert}}\n"


class Session:
    """A daemon at each of `places` (by its node's name, the first one leads) and the workers of a
    file, joined and warm; `update` runs one more version. Leaving the block checks every byte that
    the rollouts hold."""

    def __init__(self, binaries, file, places, transport="tcp", threads=1, integrity="wire",
                 layers=0):
        self.binaries, self.file, self.places, self.layers = binaries, file, places, layers
        self.common = (f"data:\n  transports: {transport}\n  interface: {{}}\n"
                       f"integrity: {integrity}\ncopy_threads: {threads}\n"
                       "timeouts:\n  start: 60s\n  peer: 30s\n")
        self.daemons, self.workers = [], None

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="wb-bench-"))
        try:
            self._start()
            self.update()  # the first pays for page faults and connections
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self._check()
        finally:
            self._end()

    def _start(self):
        path = self.file
        if not isinstance(path, pathlib.Path):
            path = self.folder / "layout.json"
            path.write_text(json.dumps(self.file))
        first = next(iter(self.places.values()))
        tls = "" if first.interface == "lo" else certificate(self.folder, self.places)
        leader = f"{first.address}:{free_port()}"
        for node, place in self.places.items():
            config = self.folder / f"{node}.yaml"
            role = "address" if self.daemons else "listen"
            config.write_text(f"node: {node}\nrun_dir: {self.folder}/{node}\n{tls}"
                              f"leader:\n  {role}: {leader}\n"
                              + self.common.format(place.interface))
            self._start_daemon(node, [*place.prefix, self.binaries / "weightbridged", "--config",
                                      config])
        sockets = [f"{node}={self.folder}/{node}/worker.sock" for node in self.places]
        self.workers = subprocess.Popen(
            [self.binaries / "update_workers", path, str(self.layers), *sockets],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._answer()

    def _start_daemon(self, node, command):
        log = self.folder / f"{node}.log"
        with open(log, "wb") as out:
            daemon = subprocess.Popen(command, stdout=out, stderr=out)
        self.daemons.append(daemon)
        deadline = time.monotonic() + SECONDS
        while not (self.folder / node / "worker.sock").exists():
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise ProgramFailed(f"weightbridged does not start: {log.read_text()[-500:]}")
            time.sleep(0.005)

    def _answer(self):
        ready, _, _ = select.select([self.workers.stdout], [], [], START_SECONDS)
        line = self.workers.stdout.readline() if ready else ""
        if not line:
            self.workers.kill()
            raise ProgramFailed(f"update_workers: {self.workers.communicate()[1][-500:]}")
        return line

    def update(self):
        """Seconds from the first call of a worker to the last return."""
        self.workers.stdin.write("\n")
        self.workers.stdin.flush()
        return float(self._answer())

    def _check(self):
        _, error = self.workers.communicate(timeout=START_SECONDS)
        if self.workers.returncode != 0:
            raise ProgramFailed(f"update_workers: {error[-500:]}")

    def _end(self):
        for process in [*self.daemons, *([self.workers] if self.workers else [])]:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def processor_seconds(self):
        """Of each daemon, all threads, since it started."""
        return [sum(int((task / "schedstat").read_text().split()[0])
                    for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir()) / 1e9
                for daemon in self.daemons]
