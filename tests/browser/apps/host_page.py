"""A host of MCP Apps as a web page: the official client and the official AppBridge, in one file."""

import subprocess
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.e2e import npm

HERE = Path(__file__).parent
BUNDLE_S = 60.0


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the host page."""
    folder = tmp_path_factory.mktemp("host")
    for name in ("@modelcontextprotocol/client", "@modelcontextprotocol/ext-apps"):
        npm.package(name)
    bundle = npm.program("rolldown", str(HERE / "host.js"), "--platform", "browser", "--format", "esm")
    subprocess.run([*bundle, "--file", str(folder / "bundle.js")], check=True, timeout=BUNDLE_S)
    (folder / "index.html").write_text((HERE / "index.html").read_text())
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as site:
        thread = Thread(target=site.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{site.server_port}"
        site.shutdown()
        thread.join()
