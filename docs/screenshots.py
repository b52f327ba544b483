"""Takes the pictures of the console: every view, light, dark and on a phone, and the picture of the README.

python -m docs.screenshots [VIEW ...]
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from afoot.cli.commands.browser_try import EXAMPLE_FOLDER, QuietRequestHandler
from docs.pictures import WAYS, look, taken
from tests.browser.chromium import Chromium, running, until
from tests.browser.page import Page

HERE = Path(__file__).parent
SCREENS, FRONT = HERE / "screens", HERE / "console.png"
VIEWS = ("live", "call", "history", "inbox", "tool", "servers", "tabs")
SHOWN = ("light", "dark", "phone")
LIMIT_S = 60.0
CONFIG = """
unanswerable = "wait"
drain_s = 0
[browser]
cdp = "{cdp}"
plugins = ["{root}/examples/plugin"]
[servers.library]
command = "afoot"
args = ["serve", "--stdio", "{root}/examples/tools.py"]
env = {{ AFOOT_HOME = "{folder}/library" }}
[servers.archive]
command = "archive-server"
[quota.operator]
calls = 200
per_s = 3600
concurrent = 40
"""


class Gateway:
    """The gateway whose console is shown, with the operator's token."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.url = str(told["mcp"]).removesuffix("/mcp")
        self._token = str(told["token"])

    def ask(self, path: str, body: object = None) -> Any:
        """Send one request; with a body it is a POST."""
        headers = {"Authorization": f"Bearer {self._token}", "Prefer": "respond-async"}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        with urlopen(Request(f"{self.url}{path}", data, headers), timeout=LIMIT_S) as response:
            return json.load(response)

    def start(self, tool: str, **arguments: object) -> str:
        """Start a call and return its id."""
        return str(self.ask("/api/calls", {"tool": tool, "arguments": arguments})["id"])

    def until(self, call: str, is_so: Callable[[dict[str, Any]], object]) -> None:
        """Wait until a call fulfils a condition."""
        until(lambda: is_so(self.ask(f"/api/calls/{call}")), call, LIMIT_S)

    def answer(self, call: str, action: str, content: object = None) -> None:
        """Answer the question of a call."""
        self.until(call, lambda found: found["questions"])
        asked = self.ask("/api/questions")["questions"]
        body = {"action": action} if content is None else {"action": action, "content": content}
        [question] = [one for one in asked if one["call"] == call]
        if question.get("digest"):
            body["digest"] = question["digest"]
        self.ask(f"/api/questions/{question['id']}/answer", body)


def main(wanted: list[str]) -> None:
    """Take the pictures of the named views, or of all."""
    SCREENS.mkdir(exist_ok=True)
    tabs = running("--headless=new")
    with tempfile.TemporaryDirectory(prefix="afoot-screens-") as folder, tabs as browser, shop() as page:
        with serving(Path(folder), browser.endpoint) as gateway, running("--headless=new") as eyes:
            past(gateway)
            offer(gateway, browser, page)
            desk, console = eyes.open(), eyes.open()
            console.navigate(gateway.ask("/api/session/code", {})["url"])
            console.until("!location.hash && document.title.endsWith(' · afoot')")
            addresses = present(gateway)
            for view in wanted:
                show(console, desk, view, addresses[view])


def show(console: Page, desk: Page, view: str, address: str) -> None:
    """Take the pictures of one view."""
    console.evaluate(f"import('/console/lib/router.js').then(({{ navigate }}) => navigate({address!r}))")
    for way in WAYS if view == "live" else SHOWN:
        console.until(READY[view], LIMIT_S)
        look(console, way)
        file = FRONT if way == "front" else SCREENS / f"{view}-{way}.png"
        file.write_bytes(taken(console, desk))


def offer(gateway: Gateway, browser: Chromium, page: str) -> None:
    """Open only the example page in the browser that the gateway is attached to."""
    until(lambda: gateway.ask("/api/tabs")["browsers"], "the browser", LIMIT_S)
    others = [one["targetId"] for one in browser.targets()]
    browser.call("Target.createTarget", {"url": page})
    for one in others:
        browser.call("Target.closeTarget", {"targetId": one})
    until(lambda: any(one["tools"] for one in gateway.ask("/api/tabs")["tabs"]), "its tools", LIMIT_S)


# The text that must be on a view before its picture is taken.
READY = {
    "live": "document.querySelectorAll('.live-row').length >= 7 && /~\\d/.test(document.body.innerText)",
    "call": "document.querySelectorAll('main h2').length > 3",
    "history": "document.querySelectorAll('table.calls tbody tr').length > 20",
    "inbox": "document.querySelectorAll('main form').length > 0",
    "tool": "!!document.querySelector('main form')",
    "servers": "/library/.test(document.body.innerText) && /archive/.test(document.body.innerText)",
    "tabs": "/ready/.test(document.body.innerText)",
}


def past(gateway: Gateway) -> None:
    """Fill the history: calls of all kinds, and enough of one tool for an estimate of its duration."""
    start = gateway.start
    made = [start("export_pages", pages=4 + n % 5, every_s=0.05 + 0.02 * (n * 7 % 11)) for n in range(24)]
    made += [start("resize_photos", photos=30, every_s=0.01) for _ in range(3)]
    made += [start("sync_mail", folders=6, every_s=0.05), start("nightly_report", shops=2, every_s=0.01)]
    booked, deleted = start("book_trip", city="Porto"), start("delete_backups", older_than_days=90)
    kept = start("delete_backups", older_than_days=1)
    gateway.answer(booked, "accept", {"seat": "aisle", "people": 2, "insured": True})
    gateway.answer(deleted, "accept", {"decision": "run"})
    gateway.answer(kept, "accept", {"decision": "reject", "instead": "keep those of this week"})
    stopped = start("export_pages", pages=50)
    gateway.until(stopped, lambda found: (found["progress"] or 0) > 2)
    gateway.ask(f"/api/calls/{stopped}/cancel", {"reason": "not this one"})
    for call in (*made, booked, deleted, kept, stopped):
        gateway.until(call, lambda found: found["outcome"])


def present(gateway: Gateway) -> dict[str, str]:
    """Start the calls that run while pictures are taken; returns the address of each view."""
    gateway.start("book_trip", city="Lisbon")
    gateway.start("delete_backups", older_than_days=30)
    gateway.start("export_pages", pages=240)
    gateway.start("resize_photos", photos=600)
    report = gateway.start("nightly_report", shops=2, every_s=1.2)
    failed = gateway.start("sync_mail", folders=12, every_s=0.4)
    gateway.until(failed, lambda found: found["outcome"])
    gateway.until(report, lambda found: (found["progress"] or 0) > 20)
    return {
        "live": f"/live?open={report}",
        "call": f"/calls/{failed}",
        "history": "/history",
        "inbox": "/inbox",
        "tool": "/tools/export_pages",
        "servers": "/servers",
        "tabs": "/tabs",
    }


@contextmanager
def serving(folder: Path, cdp: str) -> Iterator[Gateway]:
    """A gateway with the demo's tools, a browser and two servers, one of which does not exist."""
    config = folder / "afoot.toml"
    config.write_text(CONFIG.format(cdp=cdp, root=HERE.parent, folder=folder))
    # The view shows a server's command, so it must not contain a path of this machine.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    words = [
        "serve",
        "afoot.cli.demo_tools",
        "--config",
        str(config),
        "--http",
        "127.0.0.1:0",
        "--json",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "afoot", *words],
        env={**os.environ, "AFOOT_HOME": f"{folder}/home", "PATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield Gateway(json.loads(process.stdout.readline()))
    finally:
        process.terminate()
        process.wait(LIMIT_S)
        process.stdout.close()


@contextmanager
def shop() -> Iterator[str]:
    """A server with the example page."""
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(QuietRequestHandler, directory=str(EXAMPLE_FOLDER))
    )
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main(sys.argv[1:] or list(VIEWS))
