"""What benchmarks share: their rows, and programs that are run to an end."""

import statistics
import subprocess

SECONDS = 60  # that any one program may take


class ProgramFailed(Exception):
    """A program that a benchmark runs is not there, failed, or took too long; the text names it."""


def row(name, value, unit, limit=None, against=None, better="higher"):
    """`limit` is a figure taken in the same run, `against` what it is of."""
    ratio = value / limit if limit else None
    return {"name": name, "value": value, "unit": unit, "limit": limit, "ratio": ratio,
            "aim": None, "better": better, "against": against}


def output(command, environment=None, seconds=SECONDS):
    """What the program prints. It is killed when its time is over."""
    program = str(command[0]).rsplit("/", maxsplit=1)[-1]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True,
                              timeout=seconds, check=False)
    except FileNotFoundError as error:
        raise ProgramFailed(f"{program} is missing") from error
    except subprocess.TimeoutExpired as error:
        raise ProgramFailed(f"{program} has not ended within {seconds} s") from error
    if done.returncode != 0:
        raise ProgramFailed(f"{program} ended with code {done.returncode}: "
                            f"{done.stdout[-500:]}{done.stderr[-500:]}")
    return done.stdout


def memcpy_rate(binaries, bytes_, threads=1):
    """GB/s of memcpy of as many bytes, both sides touched before."""
    return float(output([binaries / "memcpy_limit", str(bytes_), str(threads)]))


def in_turns(measures, rounds):
    """The medians of measurements that take turns, by name: what is compared has then had the same
    share of whatever else the machine did."""
    taken = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            taken[name].append(measure())
    return {name: statistics.median(values) for name, values in taken.items()}


def figures(outputs):
    """Rows of the medians of what a program printed each time: a figure a line, as name, value, unit
    and what it must be at most (0: nothing), with tabs between."""
    taken = {}
    for out in outputs:
        for line in out.splitlines():
            name, value, unit, must = line.split("\t")
            taken.setdefault((name, unit, float(must)), []).append(float(value))
    return [row(name, statistics.median(values), unit, must or None, "must" if must else None,
                better="lower" if must else None)
            for (name, unit, must), values in taken.items()]
