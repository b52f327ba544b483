"""`python -m bench` measures afoot, the official SDK and FastMCP, and prints the table of ratios."""

import argparse
import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uvloop

from bench import table
from bench.launch import SUBJECTS, Setup, cores, peers_python, raise_limits
from bench.measure import MEASURES, QUICK, Size
from bench.run import Choice, pick, run
from bench.wire import ERAS, BenchError

TRANSPORTS = ("http", "stdio")
BUSY = 0.5
"""The load average above which something else is running."""
WORDS = (*TRANSPORTS, *ERAS, *SUBJECTS, *[m.name for m in MEASURES])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; exits with 0 if all was measured, 1 if something was not, 2 on wrong usage."""
    options = parser().parse_args(arguments)
    words = [word for given in options.only or [] for word in given.split(",") if word]
    unknown = [word for word in words if word not in WORDS]
    if unknown:
        print(
            f"bench: --only does not know {', '.join(unknown)}; it knows {', '.join(WORDS)}", file=sys.stderr
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        try:
            choice = choose(words, options, Path(folder))
        except BenchError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
        return show(choice, options.json)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    found.add_argument("--json", action="store_true", help="print one object instead of the table")
    found.add_argument("--quick", action="store_true", help="one short round of each, 200 waiting calls")
    found.add_argument(
        "--only",
        action="append",
        metavar="WORDS",
        help=f"measure only these, separated by commas: {', '.join(WORDS)} (bare: no protocol, HTTP)",
    )
    found.add_argument(
        "--peers-uvloop", action="store_true", help="run the peers on uvloop, not on their own loop"
    )
    found.add_argument("--rounds", type=int, metavar="N", help="how many rounds the medians are of")
    return found


def choose(words: Sequence[str], options: argparse.Namespace, folder: Path) -> Choice:
    """Return the choice: the named words of each kind, or all of a kind if none was named."""
    raise_limits()
    server_core, client_core = cores()
    os.sched_setaffinity(0, client_core)
    subjects = pick(words, SUBJECTS) if set(words) & set(SUBJECTS) else SUBJECTS[:3]
    python = peers_python() if set(subjects) & {"mcp", "fastmcp"} else sys.executable
    size = QUICK if options.quick else Size()
    return Choice(
        transports=pick(words, TRANSPORTS),
        eras=pick(words, ERAS),
        subjects=subjects,
        measures=tuple(m for m in MEASURES if m.name in pick(words, [m.name for m in MEASURES])),
        size=dataclasses.replace(size, rounds=options.rounds or size.rounds),
        setup=Setup(python, folder, options.peers_uvloop),
        core=server_core,
    )


def show(choice: Choice, as_json: bool) -> int:
    """Run the chosen measures and print the table."""
    load = os.getloadavg()[0]
    if load > BUSY:
        print(f"bench: the machine is busy (load {load:.1f}): the figures will be rough", file=sys.stderr)
    rows, complaints = uvloop.run(run(choice))
    if as_json:
        print(json.dumps(table.data(rows, complaints, choice, load), indent=1))
    else:
        print(table.text(rows, choice.subjects))
    for complaint in complaints:
        print(f"bench: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
