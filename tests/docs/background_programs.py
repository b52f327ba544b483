"""Programs that a page starts and leaves running: a web server for its files, a browser without a window."""

import re
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

LIMIT_S: Final = 60.0
WEB: Final = "127.0.0.1:8000"  # where a page's own web server is in the pages
EXAMPLE: Final = "127.0.0.1:23669"  # where the example page is, if that is free
_STARTED = re.compile(
    r"(?:^Serving HTTP on .*|Uvicorn running on .*|nothing of it stays behind\.)$", re.MULTILINE
)


class Beside:
    """What runs beside the blocks of one page."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._places = {WEB: WEB, EXAMPLE: EXAMPLE}

    def addressed(self, text: str) -> str:
        """The text with the addresses that the web servers really have, also in the names of tools."""
        for written, there in self._places.items():
            text = text.replace(written, there).replace(_named(written), _named(there))
        return text

    def start(self, text: str, environment: Mapping[str, str]) -> str:
        """Start a program; gives what it said until it was ready."""
        words = self.addressed(text.strip())
        if "http.server" in words or "uvicorn" in words:
            port = _free_port()
            self._places[WEB] = f"127.0.0.1:{port}"
            words = words.replace(WEB.rpartition(":")[2], str(port))
        if "--try" in words:
            words += " --headless"
            self._end("--try")
        process = subprocess.Popen(
            ["bash", "-c", f"exec {words}"], env=dict(environment), cwd=self._folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._processes[words] = process
        said = _said(process)
        if found := re.search(r"shows http://(127\.0\.0\.1:\d+)/", said):
            self._places[WEB if self._places[WEB] in words else EXAMPLE] = found[1]
        return said

    def close(self) -> None:
        """End all of them, the last first."""
        self._end("")

    def _end(self, mark: str) -> None:
        for words, process in reversed(list(self._processes.items())):
            if mark in words:
                process.send_signal(signal.SIGTERM)
                process.wait(LIMIT_S)
                assert process.stdout is not None
                process.stdout.close()
                del self._processes[words]


def _said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    timer = threading.Timer(LIMIT_S, process.kill)  # then its output ends
    timer.start()
    printed = ""
    try:
        while not _STARTED.search(printed):
            line = process.stdout.readline()
            assert line, f"it does not start, but says:\n{printed}"
            printed += line
        return printed
    finally:
        timer.cancel()


def _named(address: str) -> str:
    return re.sub(r"[.:]", "_", address)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
