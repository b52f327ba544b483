"""Lines of child programs as reports, tried on programs that people use."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from afoot.errors import ToolError
from afoot.providers.functions.progress.programs import ProgramResult, read_progress, run
from afoot.providers.functions.tool import tool
from tests.providers.fake_run import ScriptedRun, call, decoded, text_of
from tests.providers.isolation.isolated_provider import happens

STEPS = "import sys\nfor n in range(1, 6):\n    print(f'step {n}/5', flush=True)\nsys.exit(int(sys.argv[1]))"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Receiving objects:  45% (450/1000), 1.20 MiB", (450, 1000)),
        ("Progress 1,024 of 2,048", (1024, 2048)),
        (" 42.7%", (42.7, 100)),
        ("12.5 MB / 50.0 MB 2.1 MB/s", (12.5, 50)),
        ("1.5MB/1.2GB", (0.0015, 1.2)),
        ("900 kB of 2 MiB", (0.9, 2)),
        ("[3/7] building", (3, 7)),
        ("3 of 7 kittens", (3, 7)),
        ("uses 250% of a processor", (None, None)),
        ("epoch 5/3", (None, None)),
        ("opened /usr/lib/7/8", (None, None)),
        ("at 2026/11/16 all is well", (None, None)),
        ("compiling", (None, None)),
    ],
)
def test_a_line_is_read_for_its_numbers(line: str, said: tuple[float | None, float | None]) -> None:
    """P10: percentages and parts; a path or a date is neither. The line is the message."""
    assert read_progress(line) == (*said, line.strip())
    assert read_progress("  ") is None


@tool
def steps(code: int) -> str:
    ran: ProgramResult = run([sys.executable, "-c", STEPS, str(code)])
    return ran.check().output


@tool
async def steps_awaited() -> str:
    return (await run([sys.executable, "-c", STEPS, "0"])).output


@pytest.mark.parametrize(("function", "arguments"), [(steps, {"code": 0}), (steps_awaited, {})])
async def test_lines_become_reports_in_sync_and_async_tools(function: object, arguments: object) -> None:
    """P10: the last one always; the output is there for whoever wants it."""
    scripted = ScriptedRun()
    result = await call(function, arguments, scripted)  # pyrefly: ignore[bad-argument-type]
    assert scripted.readings[0] == (1, 5, "step 1/5") and scripted.readings[-1] == (5, 5, "step 5/5")
    assert text_of(result).splitlines() == [f"step {n}/5" for n in range(1, 6)]


async def test_a_program_that_fails_says_how_and_its_last_words() -> None:
    """E1: `check` is for whoever needs it to go well."""
    with pytest.raises(ToolError, match=r"exit code 3; its last words: .*step 5/5"):
        await call(steps, {"code": 3})


@tool
async def nothing() -> None:
    await run(["no-such-program-anywhere"])


@tool
async def dies() -> None:
    (await run(["sh", "-c", "kill -9 $$"])).check()


async def test_a_program_that_a_signal_ended_says_which() -> None:
    """E1: no exit code that nobody knows."""
    with pytest.raises(ToolError, match="sh was ended by SIGKILL"):
        await call(dies)


@tool
async def leaves_one_behind() -> int:
    return (await run(["sh", "-c", "yes & exit 3"])).code


async def test_a_program_is_over_though_what_it_left_behind_writes_on() -> None:
    """P10: what it started holds its output open, and ends with it."""
    assert decoded((await call(leaves_one_behind)).structured) == {"result": 3}


@tool
async def unreadable() -> None:
    await run(["echo", "one"], read=lambda line: next(iter(())))


async def test_a_reading_that_breaks_is_the_tools_fault() -> None:
    """E1: whatever it raises, nobody waits for ever."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        await call(unreadable)


async def test_a_program_that_is_not_there_is_not_found() -> None:
    """E1: a clean error."""
    with pytest.raises(ToolError, match="no-such-program-anywhere") as caught:
        await call(nothing)
    assert caught.value.category == "not_found"


DEAF = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
below = subprocess.Popen(["sleep", "600"])
open(sys.argv[1], "w").write(f"{os.getpid()} {below.pid}")
print("1%", flush=True)
time.sleep(600)
"""


@tool
async def deaf(mark: str) -> None:
    await run([sys.executable, "-c", DEAF, mark])


@tool
def deaf_in_a_thread(mark: str) -> None:
    run([sys.executable, "-c", DEAF, mark])


@pytest.mark.parametrize("function", [deaf, deaf_in_a_thread])
async def test_a_cancel_ends_the_program_and_what_it_started(function: object, tmp_path: Path) -> None:
    """X1, C7: one that ignores SIGTERM is killed, its whole group."""
    scripted, mark = ScriptedRun(), tmp_path / "mark"
    task = asyncio.create_task(
        call(function, {"mark": str(mark)}, scripted)  # pyrefly: ignore[bad-argument-type]
    )
    await happens(lambda: scripted.readings)
    scripted.cancelled = "enough"
    task.cancel()
    with pytest.raises((asyncio.CancelledError, ToolError)):
        await task
    for pid in map(int, mark.read_text().split()):
        await happens(lambda pid=pid: _is_over(pid))


@tool
async def custom(command: list[str], folder: str = ".", tty: bool = False) -> str:
    return (await run(command, cwd=folder, tty=tty)).check().output


async def test_git_clone(tmp_path: Path) -> None:
    """P10: a bar that draws itself anew, on stderr."""
    source = tmp_path / "source"
    _git(tmp_path, "init", "-q", str(source))
    for n in range(300):
        (source / f"file-{n}").write_text(os.urandom(2000).hex())
    _git(source, "add", ".")
    _git(source, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "all")
    scripted = ScriptedRun()
    command = ["git", "clone", "--progress", f"file://{source}", str(tmp_path / "copy")]
    await call(custom, {"command": command}, scripted)
    totals = {total for _, total, _ in scripted.readings}
    assert totals & {301.0, 302.0} and any("objects" in (text or "") for _, _, text in scripted.readings)
    assert (tmp_path / "copy" / "file-299").exists()


async def test_tar_with_checkpoints(tmp_path: Path) -> None:
    """P10: lines without a total are messages."""
    (tmp_path / "big").write_bytes(bytes(3_000_000))
    scripted = ScriptedRun()
    command = ["tar", "--checkpoint=50", "-cf", str(tmp_path / "x.tar"), "big"]
    await call(custom, {"command": command, "folder": str(tmp_path)}, scripted)
    assert any("Write checkpoint" in (text or "") for _, _, text in scripted.readings)


@pytest.mark.skipif(find_spec("pip") is None, reason="no pip here")
async def test_pip_with_its_bar(tmp_path: Path) -> None:
    """P10: one that is drawn on terminals only, "1.2/3.0 MB", from a site that serves a wheel."""
    about = "big_one-1.0.dist-info"
    with ZipFile(tmp_path / "big_one-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("big.bin", os.urandom(3_000_000))
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: big-one\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    words = "-m pip download --no-index --no-deps --no-cache-dir --progress-bar on big-one"
    scripted = ScriptedRun()
    with files(tmp_path) as site:
        command = [sys.executable, *words.split(), "-f", f"{site}/", "-d", str(tmp_path / "got")]
        await call(custom, {"command": command, "tty": True}, scripted)
    assert (3.0, 3.0) in {reading[:2] for reading in scripted.readings}


async def test_curl_with_its_bar(tmp_path: Path) -> None:
    """P10: signs and a percentage, drawn anew."""
    (tmp_path / "big").write_bytes(os.urandom(2_000_000))
    with files(tmp_path) as site:
        command = ["curl", "-#", "-o", str(tmp_path / "got"), f"{site}/big"]
        scripted = ScriptedRun()
        await call(custom, {"command": command}, scripted)
    assert scripted.readings[-1][:2] == (100, 100)


@contextmanager
def files(folder: Path) -> Iterator[str]:
    """The address where a folder is served."""
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Quiet(SimpleHTTPRequestHandler):
    """Files of a folder."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


async def test_a_program_that_wants_a_terminal_gets_one() -> None:
    """P10: `tty=True`."""
    command = [sys.executable, "-c", "import sys; print(sys.stdout.isatty(), '7 of 9')"]
    scripted = ScriptedRun()
    assert "True 7 of 9" in text_of(await call(custom, {"command": command, "tty": True}, scripted))
    assert scripted.readings[-1] == (7, 9, "True 7 of 9")


@tool
def own_reading() -> None:
    def frames(line: str) -> tuple[float | None, float | None, str | None] | None:
        return (float(line.split("=")[1]), 50.0, "frames") if line.startswith("frame=") else None

    run(["printf", "frame=25\nnoise\nframe=50\n"], read=frames)


async def test_a_reading_of_ones_own_says_what_counts() -> None:
    """P10: lines that it makes nothing of are no reports."""
    scripted = ScriptedRun()
    await call(own_reading, None, scripted)
    assert scripted.readings == [(25, 50, "frames"), (50, 50, "frames")]


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def _is_over(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
