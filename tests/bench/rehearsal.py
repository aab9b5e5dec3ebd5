"""Rehearsals of the whole system, as benchmarks run them."""

import json
import os
import pathlib
import tempfile

from measure import output


def worker(role, group, rank, node, tensors, dim, bounds):
    """Holds `bounds` of dimension `dim` of each tensor."""
    params = []
    for name, spec in tensors.items():
        lo, hi = [0, 0], list(spec["shape"])
        lo[dim], hi[dim] = bounds
        params.append({"name": name, "shape": [h - l for l, h in zip(lo, hi)],
                       "pieces": [{"tensor": name, "box": {"lo": lo, "hi": hi}, "at": [0, 0]}]})
    return {"role": role, "group": group, "rank": rank, "node": node, "params": params}


def cuts(extent, parts):
    """Bounds of `parts` even shares of `extent`."""
    return [(extent * part // parts, extent * (part + 1) // parts) for part in range(parts)]


def rehearse(binaries, layout, transport, versions):
    """The figures of each version but the first, which pays for page faults and connections."""
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "layout.json"
        path.write_text(json.dumps(layout))
        out = output([binaries / "wbctl", "rehearse", path, "--fill", "row", "--transport",
                      transport, "--versions", str(versions), "-o", "json"],
                     dict(os.environ, TMPDIR=scratch, XDG_RUNTIME_DIR=scratch))
    return json.loads(out)["versions"][1:]
