"""Takes the pictures of the console: every view, light, dark, wide and on a phone, and that of the README.

python -m docs.screenshots [VIEW ...]
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from afoot.cli.commands.browser.trial import EXAMPLE_FOLDER, QuietRequestHandler
from docs.pictures import look, taken
from docs.sample_history import write_history
from tests.browser.chromium import Chromium, running, until
from tests.browser.page import Page
from tests.cluster.redis_server import redis_server

HERE = Path(__file__).parent
SCREENS, FRONT = HERE / "screens", HERE / "console.png"
EMPTY, MANY, MOST = "empty", "many", "most"  # without a call, with 200 at once, with 10,000
CLUSTER = "cluster"  # of several gateways and workers
VIEWS = (
    EMPTY, CLUSTER, "live", "call", "history", "inbox", "tools", "tool", "servers", "tabs", "resources",
    "prompts", MANY, MOST,
)  # fmt: skip
SHOWN = ("light", "dark", "phone", "wide")
MANY_CALLS = 200
WIDTH = 100  # calls below each call of a tree of three levels: 10,101 in all
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
calls = 1000
per_s = 3600
concurrent = 400
"""


# Resources and a prompt beside the demo's tools.
OFFERS = '''"""Notes of a shop."""

import asyncio

import afoot


@afoot.resource("note://{number}")
def note(number: int) -> str:
    """A note of the shop, by its number."""
    return f"note {number}"


@afoot.resource("config://shop")
def config() -> dict:
    """How the shop is configured: its currency, its taxes, and when it is open."""
    return {"currency": "EUR", "tax": 0.19, "open": ["Mon", "Tue", "Wed", "Thu", "Fri"]}


@afoot.tool(ceiling=3600, idle=3600)
async def survey(width: int, depth: int, ctx: afoot.Context) -> str:
    """Survey shops and their shelves: a tree of calls, so many below each and so deep."""
    if depth < 1:
        ctx.report(1, 2, "a shelf")
        await asyncio.sleep(3600)
    below = {"width": width, "depth": depth - 1}
    await asyncio.gather(*(ctx.call("survey", below) for _ in range(width)))
    return "all of it"


@afoot.prompt
def greet(name: str, tone: str = "kind") -> str:
    """Write a greeting for a customer."""
    return f"Write a {tone} greeting for {name}."
'''


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
    with tabs as browser, shop() as page, running("--headless=new") as eyes:
        desk = eyes.open()
        if EMPTY in wanted:
            with temporary_folder() as folder, serving(folder, "") as gateway:
                show(console_of(gateway, eyes), desk, EMPTY, "/live")
        if CLUSTER in wanted:
            with temporary_folder() as folder, clustered(folder) as gateway:
                show(console_of(gateway, eyes), desk, CLUSTER, "/cluster")
        if not {*wanted} - {EMPTY, CLUSTER}:
            return
        with temporary_folder() as folder:
            asyncio.run(write_history(folder / "home" / "calls.db", time.time()))
            with serving(folder, browser.endpoint) as gateway:
                offer(gateway, browser, page)
                console, addresses = console_of(gateway, eyes), present(gateway)
                for view in wanted:
                    if view == MANY:
                        crowd(gateway)
                    if view == MOST:
                        gateway.start("survey", width=WIDTH, depth=2)
                    if view not in (EMPTY, CLUSTER):
                        show(console, desk, view, addresses[view])


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for one gateway, with its state folder in it."""
    with tempfile.TemporaryDirectory(prefix="afoot-screens-") as name:
        (Path(name) / "home").mkdir(mode=0o700)
        yield Path(name)


def console_of(gateway: Gateway, eyes: Chromium) -> Page:
    """A tab that is logged in."""
    console = eyes.open()
    console.navigate(gateway.ask("/api/session/code", {})["url"])
    console.until("!location.hash && document.title.endsWith(' · afoot')")
    return console


def show(console: Page, desk: Page, view: str, address: str) -> None:
    """Take the pictures of one view."""
    console.evaluate(f"import('/console/lib/router.js').then(({{ navigate }}) => navigate({address!r}))")
    for way in (*SHOWN, "front") if view == "live" else SHOWN:
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
SAYS = "%s.test(document.querySelector('main').textContent)"
READY = {
    EMPTY: SAYS % "/Nothing has run yet/",
    "live": "document.querySelectorAll('.live-row').length >= 7 && /~\\d/.test(document.body.innerText)",
    "call": "document.querySelectorAll('main canvas, main svg').length > 3",
    "history": "document.querySelectorAll('.call-row-ended').length > 20",
    "inbox": "/90/.test(document.querySelector('main .arguments')?.textContent)",
    "tools": SAYS % "/export_pages[^]*min ago/",
    "tool": "!!document.querySelector('main form')",
    "servers": SAYS % "/archive[^]*library[^]*ready/",
    "tabs": SAYS % "/ready/",
    "resources": SAYS % "/note:[^]*How the shop/",
    "prompts": SAYS % "/greet[^]*tone/",
    MANY: "document.querySelectorAll('.live-row').length > 12",
    MOST: SAYS % "/All 10,\\d\\d\\d/",
    CLUSTER: SAYS % "/Gateways\\s*2[^]*127[^]*127[^]*Workers\\s*2/",
}


def present(gateway: Gateway) -> dict[str, str]:
    """Start the calls that run while pictures are taken; returns the address of each view."""
    stopped = gateway.start("export_pages", pages=50)
    gateway.until(stopped, lambda found: (found["progress"] or 0) > 2)
    gateway.ask(f"/api/calls/{stopped}/cancel", {"reason": "not this one"})
    kept = gateway.start("delete_backups", older_than_days=1)
    gateway.answer(kept, "accept", {"decision": "reject", "instead": "keep those of this week"})
    gateway.answer(gateway.start("delete_backups", older_than_days=90), "accept", {"decision": "run"})
    gateway.start("delete_backups", older_than_days=30)
    gateway.start("book_trip", city="Lisbon")
    gateway.start("export_pages", pages=240)
    gateway.start("resize_photos", photos=600)
    report = gateway.start("nightly_report", shops=2, every_s=1.2)
    failed = gateway.start("sync_mail", folders=12, every_s=0.4)
    gateway.until(failed, lambda found: found["outcome"])
    gateway.until(report, lambda found: (found["progress"] or 0) > 20)
    return {
        "live": f"/live?call={report}",
        "call": f"/calls/{failed}",
        "history": "/history",
        "inbox": "/inbox",
        "tools": "/tools",
        "tool": "/tools/export_pages",
        "servers": "/servers",
        "tabs": "/tabs",
        "resources": "/resources?open=config%3A%2F%2Fshop",
        "prompts": "/prompts?open=greet",
        MANY: "/live",
        MOST: "/live?group=none",
    }


def crowd(gateway: Gateway) -> None:
    """Start many calls at once, which report often enough to move."""
    calls = [
        gateway.start("export_pages", pages=400 + 7 * number, every_s=0.4) for number in range(MANY_CALLS)
    ]
    gateway.until(calls[-1], lambda found: found["progress"])


@contextmanager
def clustered(folder: Path) -> Iterator[Gateway]:
    """A gateway of a cluster of two, with two workers and some calls; it has no history of before."""
    with redis_server(folder / "redis") as redis, ExitStack() as stack:
        cluster = f'[cluster]\nredis = "{redis.url}"\n'
        for name in ("one", "other"):
            (folder / name / "home").mkdir(parents=True, mode=0o700)
        for number in range(2):
            stack.enter_context(working(folder / f"worker{number}", cluster))
        stack.enter_context(serving(folder / "other", "", cluster))
        gateway = stack.enter_context(serving(folder / "one", "", cluster))
        gateway.start("export_pages", pages=240)
        gateway.start("nightly_report", shops=2, every_s=1.2)
        yield gateway


@contextmanager
def working(folder: Path, cluster: str) -> Iterator[None]:
    """A worker of a cluster with the demo's tools."""
    folder.mkdir()
    (folder / "worker.toml").write_text(cluster)
    words = [
        "worker",
        "afoot.cli.demo_tools",
        "--config",
        str(folder / "worker.toml"),
        "--slots",
        "8",
        "--json",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "afoot", *words],
        env={**os.environ, "AFOOT_HOME": f"{folder}/home"}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        process.stdout.readline()  # it takes calls
        yield
    finally:
        process.terminate()
        process.wait(LIMIT_S)
        process.stdout.close()


@contextmanager
def serving(folder: Path, cdp: str, more: str = "") -> Iterator[Gateway]:
    """A gateway with the demo's tools, a browser and two servers, one of which does not exist.

    `more`: tables of its settings.
    """
    config = folder / "afoot.toml"
    config.write_text(CONFIG.format(cdp=cdp, root=HERE.parent, folder=folder) + more)
    (folder / "shop.py").write_text(OFFERS)
    # The view shows a server's command, so it must not contain a path of this machine.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    words = [
        "serve",
        "afoot.cli.demo_tools",
        str(folder / "shop.py"),
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
