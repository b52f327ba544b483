"""`python -m bench.figures [source] [paths] [functions]` prints figures for a reviewer; none is a limit.

Without arguments: source and paths. `functions` adds the functions of each path.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from bench.figures import source
from bench.figures.probe import PATHS


def main(wanted: set[str]) -> None:
    """Print the sections that are wanted."""
    if not wanted or "source" in wanted:
        for headline, lines in source.sections():
            show(headline, lines)
    if not wanted or wanted & {"paths", "functions"}:
        show("paths of a call, warm: functions / files of ours", paths("functions" in wanted))


def show(headline: str, lines: list[str]) -> None:
    """Print a headline and its lines."""
    print(f"{headline}", *(f"  {line}" for line in lines), "", sep="\n", flush=True)


def paths(with_functions: bool) -> list[str]:
    """Return the length of each path, from a gateway of its own."""
    return [line for path in PATHS for line in path_lines(path, with_functions)]


def path_lines(path: str, with_functions: bool) -> Iterator[str]:
    """Yield the line of one path, and those of its functions."""
    with tempfile.TemporaryDirectory(prefix="figures-") as folder:
        probe = [sys.executable, "-m", "bench.figures.probe", path, folder]
        ran = subprocess.run(probe, capture_output=True, timeout=120, check=False, cwd=source.ROOT)
    if not ran.stdout:
        yield f"{path}: could not be traced: {ran.stderr.decode().strip()[-2000:]}"
        return
    found = json.loads(ran.stdout)
    crossed = found["crossed"]
    in_files = {name.partition(":")[0] for name in crossed}
    extent = f"{found['rounds']} requests, {found['notifications']} notifications"
    yield f"{path}: {len(crossed)} / {len(in_files)} ({extent})"
    if with_functions:
        yield from (f"  {name}" for name in crossed)


if __name__ == "__main__":
    main(set(sys.argv[1:]))
