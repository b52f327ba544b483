"""`afoot browser --try`: a browser of its own with extension and example page, gone without a trace."""

import asyncio
import json as json_module
import os
import signal
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

from afoot.cli.calls import dumped
from afoot.cli.client import Client
from afoot.cli.ending import LOST, USAGE, Stop
from afoot.cli.serve import example, myself
from afoot.observe.terminal import clean
from afoot.providers.browser.cdp.connection import Refusal

if TYPE_CHECKING:
    from afoot.providers.browser.chromium import Chromium

TABS = "afoot_tabs"  # of every browser
EXAMPLE = Path(__file__).parents[1] / "providers" / "browser" / "example"
SETTINGS = "chrome://extensions/"
SWITCH = (
    "chrome.developerPrivate.updateExtensionConfiguration"
    '({extensionId: "%s", userScriptsAccess: true}).then(() => true)'
)
SWITCH_S = 5.0
NOT_CONNECTED = "its extension did not connect"
PORT = 23669  # the example's, if it is free: its tools have the same names each time
READY_S = 30.0
TOOLS_S = 5.0  # so long a page may take to offer tools
LOOK_S = 0.1
ENDS_S = 5.0
SHOWN = 5  # tools of the page
GATEWAY_S = 20.0


def try_out(page: str, *, headless: bool, json: bool) -> int:
    """Start a browser with this page, or the example, and wait for its end; raises Stop."""
    if not headless and sys.platform == "linux" and not _has_display():
        raise Stop(LOST, "there is no display to show a browser on (DISPLAY and WAYLAND_DISPLAY are not set)")
    try:
        with _example() if not page else nullcontext(checked(page)) as opened:
            asyncio.run(_trial(opened, headless, json))
    except (ConnectionError, TimeoutError, Refusal) as error:
        raise Stop(LOST, f"the browser could not be used: {error}") from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("\nthe browser and its profile are gone", file=sys.stderr)
    return 0


async def _trial(page: str, headless: bool, json: bool) -> None:
    from afoot.providers.browser.chromium import Chromium, find

    find()
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    flags = ("--headless=new", "about:blank") if headless else ("about:blank",)
    with _copied(page) as extension:
        async with _gateway() as client, Chromium(*flags) as chromium:
            try:
                _pair(extension, client)
                known = _Known(_profiles(client.get("/api/tabs")), set(_tools_now(client)))
                loaded = await chromium.command("Extensions.loadUnpacked", {"path": str(extension)})
                plugs = await _allow_user_scripts(chromium, loaded["id"])
                await _until(
                    client, lambda found: bool(_profiles(found, plugs) - known.profiles), NOT_CONNECTED
                )
                await _open(chromium, page)
                _say(page, await _tools(client, known), client, json)
                await chromium.ended()
            finally:
                await _close(chromium)


async def _close(chromium: "Chromium") -> None:
    """Have it clear up after itself; if it does not, it is ended by force."""
    with suppress(ConnectionError, TimeoutError, Refusal):
        async with asyncio.timeout(ENDS_S):
            await chromium.command("Browser.close")
            await chromium.ended()


async def _allow_user_scripts(chromium: "Chromium", extension: str) -> bool:
    """Turn the switch for plugins on, as a person does; whether that worked."""
    page = await chromium.command("Target.createTarget", {"url": SETTINGS})
    attached = await chromium.command("Target.attachToTarget", {**page, "flatten": True})
    change = {"expression": SWITCH % extension, "awaitPromise": True}
    for _ in range(round(SWITCH_S / LOOK_S)):
        with suppress(Refusal):  # the page is still loading
            done = await chromium.connection.call("Runtime.evaluate", change, attached["sessionId"])
            if "exceptionDetails" not in done:
                return True
        await asyncio.sleep(LOOK_S)
    return False


async def _open(chromium: "Chromium", page: str) -> None:
    """Show this page, and only this."""
    before = (await chromium.command("Target.getTargets"))["targetInfos"]
    await chromium.command("Target.createTarget", {"url": page})
    for target in before:
        if target["type"] == "page":
            await chromium.command("Target.closeTarget", {"targetId": target["targetId"]})


class _Known(Struct, frozen=True):
    """What there was before this browser."""

    profiles: set[str]
    tools: set[str]


def _profiles(found: dict[str, Any], plugs: bool = False) -> set[str]:
    """The browsers that are connected; only those where plugins can run, if that is wanted."""
    there = [one for one in found["browsers"] if one["state"] == "connected"]
    return {one["profile"] for one in there if one["user_scripts"] or not plugs}


def _tools_now(client: Client) -> dict[str, dict[str, Any]]:
    """What can be called, and with what."""
    found = client.get("/api/tools")["tools"]
    return {tool["name"]: tool["inputSchema"] for tool in found if tool["name"] != TABS}


def checked(page: str) -> str:
    """The page's whole address; raises Stop."""
    address = page if "://" in page else f"http://{page}"
    try:
        parts = urlsplit(address)
        is_page = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_page = False
    if not is_page:
        raise Stop(USAGE, f"{page!r} is no page; it looks like http://127.0.0.1:8000/")
    return address


def site_of(page: str) -> str:
    """The pattern of a page's site; patterns have no ports."""
    parts = urlsplit(page)
    host = parts.netloc.rpartition("@")[2]
    bare = host[: host.index("]") + 1] if host.startswith("[") else host.partition(":")[0]
    return f"{parts.scheme}://{bare}/*"


def _has_display() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextmanager
def _copied(page: str) -> Iterator[Path]:
    """A copy of the extension to which this page's site is allowed without a click."""
    from afoot.providers.browser.folder import MANIFEST, lay

    with tempfile.TemporaryDirectory(prefix="afoot-extension-", ignore_cleanup_errors=True) as folder:
        lay(Path(folder))
        manifest = Path(folder) / MANIFEST
        told = json_module.loads(manifest.read_text())
        manifest.write_text(json_module.dumps({**told, "host_permissions": [site_of(page)]}))
        yield Path(folder)


@contextmanager
def _example() -> Iterator[str]:
    """The example page on a server, and so an origin, of its own."""
    page = partial(Quiet, directory=str(EXAMPLE))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", PORT), page)
    except OSError:  # taken: its tools are called otherwise then
        server = ThreadingHTTPServer(("127.0.0.1", 0), page)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(LOOK_S,), daemon=True, name="afoot-example").start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@asynccontextmanager
async def _gateway() -> AsyncIterator[Client]:
    """The gateway that runs here, or one for as long as this lasts."""
    from afoot.config import find
    from afoot.state import running

    if (address := running()) is not None:
        yield Client(address.mcp, address.token)
        return
    # It ends by itself, if we are killed. -P: nothing in this folder can stand in for a package.
    words = [sys.executable, "-P", "-m", "afoot", "serve", "--bare", "--json", "--linger"]
    words += [] if (file := find()) is None else ["--config", str(file)]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(GATEWAY_S):
            line = await process.stdout.readline()
        if not line:
            raise Stop(LOST, "no gateway runs, and none could be started")
        told = json_module.loads(line)
        yield Client(told["mcp"], told["token"])
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _pair(extension: Path, client: Client) -> None:
    from afoot import state
    from afoot.providers.browser.folder import link_url, pair

    pair(extension, link_url(client.url), state.link_key())


async def _tools(client: Client, known: "_Known") -> dict[str, dict[str, Any]]:
    """The page's tools and their schemas, once they are there; a page may have none."""

    def has_come(found: dict[str, Any]) -> bool:
        tabs = [tab for tab in found["tabs"] if tab["profile"] not in known.profiles]
        return any(tab["url"].startswith("http") for tab in tabs)  # wherever the page leads

    def has_tools(found: dict[str, Any]) -> bool:
        return any(tab["profile"] not in known.profiles and tab["tools"] for tab in found["tabs"])

    await _until(client, has_come, "its page did not show up")
    with suppress(Stop):
        await _until(client, has_tools, "there are no tools", TOOLS_S)
    found = await asyncio.to_thread(_tools_now, client)
    return {name: found[name] for name in sorted(found.keys() - known.tools)}


async def _until(
    client: Client, is_so: Callable[[dict[str, Any]], bool], what: str, limit_s: float = READY_S
) -> None:
    """Wait for something that the gateway knows of browsers; raises Stop."""
    for _ in range(round(limit_s / LOOK_S)):
        if is_so(await asyncio.to_thread(client.get, "/api/tabs")):
            return
        await asyncio.sleep(LOOK_S)
    raise Stop(LOST, f"the browser was started, and {what} in {limit_s:g} s")


def _say(page: str, tools: dict[str, dict[str, Any]], client: Client, json: bool) -> None:
    if json:
        print(dumped({"gateway": client.url, "page": page, "tools": list(tools)}), flush=True)
        return
    count = f"{len(tools) or 'no'} tool{'s' * (len(tools) != 1)}"
    calls = [example(name, schema) for name, schema in list(tools.items())[:SHOWN]]
    lines = [
        f"a browser with a fresh profile shows {clean(page)}, which has {count};",
        "type in another terminal:",
        *(f"  {myself()} {clean(one)}" for one in ("tools", *calls, "browser", "watch")),
        "Close the browser, or press Ctrl-C: nothing of it stays behind.",
    ]
    print("\n".join(lines), flush=True)
