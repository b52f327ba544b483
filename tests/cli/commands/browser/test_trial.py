"""`afoot browser --try`: a real browser with the extension, a page with tools, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from afoot.cli.client import CliError
from afoot.cli.commands.browser.trial import EXAMPLE_FOLDER, QuietRequestHandler, page_url, site_pattern
from tests.cli.commands.test_serve import read, serve
from tests.cli.conftest import program
from tests.e2e.gateway import TOOLS, until

PAGE = """<!doctype html><title>Own</title><script>
document.modelContext.registerTool({
  name: "count", description: "Count", inputSchema: { properties: { n: { type: "integer" } } },
  async execute({ n }, { reportProgress }) {
    for (let i = 1; i <= n; i++) reportProgress({ progress: i, total: n });
    return { counted: n };
  },
});
</script>"""
ENDS_S = 10.0
pytestmark = pytest.mark.timeout(60)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A folder on a server of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietRequestHandler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def trial(environment: dict[str, str], *words: str) -> Iterator["subprocess.Popen[str]"]:
    """The program, trying, until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "afoot", "browser", "--try", "--headless", "--json", *words],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=ENDS_S)


def said(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """What it says once the page is there."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()
    found: dict[str, Any] = json.loads(line)
    return found


def processes(word: str) -> list[int]:
    """The processes with this word in their command line."""
    found = list[int]()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in file.read_bytes():
                found.append(int(file.parent.name))
        except OSError:
            continue
    return [one for one in found if one != os.getpid()]


@pytest.fixture
def environment(lone: dict[str, str]) -> Iterator[dict[str, str]]:
    """An environment in which no gateway runs, and whatever is left behind is found."""
    # Its path is short: a browser puts a socket there.
    with tempfile.TemporaryDirectory(prefix="afoot-try-") as folder:
        yield {**lone, "TMPDIR": folder, "AFOOT_APPROVAL": "auto", "AFOOT_HTTP": "127.0.0.1:0"}


def left(environment: dict[str, str]) -> list[object]:
    """What is left behind: processes and files."""
    folder = Path(environment["TMPDIR"])
    return [*processes(str(folder)), *folder.iterdir()]


def test_a_newcomer_sees_the_tools_of_the_example_and_nothing_stays(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """B3: one command: a gateway, a browser, a page with tools; Ctrl-C ends them all."""
    with trial(environment) as process:
        told = said(process)
        assert told["tools"] and all(name.startswith("127_0_0_1") for name in told["tools"])
        listed = program(("tools", "--json"), environment).stdout.splitlines()
        assert {json.loads(line)["name"] for line in listed} == {*told["tools"], "afoot_tabs"}
        shown = json.loads(program(("browser", "--json", "--to", str(tmp_path / "ext")), environment).stdout)
        (browser,) = shown["browsers"]
        assert browser["user_scripts"] and [tab["state"] for tab in browser["tabs"]] == ["ready"]
        process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_S) == 0
    until(lambda: not left(environment), "that nothing is left", ENDS_S)
    assert program(("status",), environment).returncode == 6


def test_a_page_of_ones_own_is_opened_beside_a_gateway_that_runs(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """B4: its tool is called, reports, and returns; the gateway stays when the browser goes."""
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text(PAGE)
    with serve([], {**environment, "AFOOT_TARGETS": str(TOOLS)}) as gateway, served(tmp_path / "page") as url:
        read(gateway, "Ctrl-C")
        with trial(environment, url) as process:
            (name,) = said(process)["tools"]
            done = program(("call", name, "n=3"), environment)
            assert done.returncode == 0 and json.loads(done.stdout) == {"counted": 3}, done
            log = program(("calls", "--json"), environment).stdout
            assert json.loads(log.splitlines()[0])["progress"] == 3
            process.terminate()
            assert process.wait(ENDS_S) == 0
        until(lambda: not left(environment), "that nothing is left", ENDS_S)
        assert program(("status",), environment).returncode == 0


KILLED = """
import asyncio, os, signal
from afoot.cli.commands.browser.trial import _running_or_new_gateway
async def main():
    async with _running_or_new_gateway() as client:
        print(client.url, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


def test_a_gateway_of_its_own_ends_though_nobody_could_tell_it_to(environment: dict[str, str]) -> None:
    """B3: a trial that was killed leaves no gateway behind."""
    environment = {**environment, "AFOOT_LINGER_S": "1"}
    done = subprocess.run(
        [sys.executable, "-c", KILLED], env=environment, capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stdout[:7]) == (-signal.SIGKILL, "http://")
    until(lambda: program(("status",), environment).returncode == 6, "that it has ended", ENDS_S)


def test_the_example_is_in_the_package() -> None:
    """B3: a wheel has it, too."""
    assert (EXAMPLE_FOLDER / "index.html").is_file()


@pytest.mark.parametrize(
    ("page", "site"),
    [
        ("http://127.0.0.1:8000/", "http://127.0.0.1/*"), ("localhost:8000", "http://localhost/*"),
        ("https://me:secret@shop.example/a?b", "https://shop.example/*"), ("http://[::1]:80/", "http://[::1]/*"),
    ],
)  # fmt: skip
def test_the_site_of_a_page_is_allowed_and_no_other(page: str, site: str) -> None:
    """B7: no more than what was named."""
    assert site_pattern(page_url(page)) == site


@pytest.mark.parametrize("page", ["file:///etc/passwd", "chrome://settings", "http://", "http://a:b/"])
def test_what_is_no_page_is_refused(page: str) -> None:
    """E4: before anything is started."""
    with pytest.raises(CliError, match="is no page"):
        page_url(page)


def test_without_a_display_it_says_so(lone: dict[str, str]) -> None:
    """E4: instead of a browser that ends at once."""
    environment = {key: value for key, value in lone.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = program(("browser", "--try"), environment)
    assert done.returncode == 6 and "no display" in done.stderr
