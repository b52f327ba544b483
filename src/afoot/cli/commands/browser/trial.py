"""`run_trial` is `afoot browser --try`: a new browser with the extension and an example page.

The browser, its profile and the extension are temporary. Without a running gateway, so is the gateway.
Nothing stays behind.
"""

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

from afoot.cli.client import LOST, USAGE, CliError, GatewayClient
from afoot.cli.shell_commands import example_call, own_command
from afoot.cli.terminal.listing import to_json_line
from afoot.cli.terminal.text import clean
from afoot.providers.browser.cdp.connection import CommandError

if TYPE_CHECKING:
    from afoot.providers.browser.chromium import Chromium


TABS_TOOL = "afoot_tabs"  # a tool that every browser has
EXAMPLE_FOLDER = Path(__file__).parents[3] / "providers" / "browser" / "example"
EXTENSIONS_PAGE = "chrome://extensions/"
ALLOW_USER_SCRIPTS_JS = (
    "chrome.developerPrivate.updateExtensionConfiguration"
    '({extensionId: "%s", userScriptsAccess: true}).then(() => true)'
)
SWITCH_S = 5.0
NOT_CONNECTED = "its extension did not connect"
EXAMPLE_PORT = 23669  # of the example page, if it is free: its tools then have the same names each time
READY_S = 30.0
TOOLS_S = 5.0  # how long a page may take to offer tools
POLL_S = 0.1
CLOSE_S = 5.0
SHOWN_TOOLS = 5  # the most tools of the page that are printed
GATEWAY_START_S = 20.0


class _KnownBefore(Struct, frozen=True):
    """Browsers and tools that the gateway had before this browser."""

    profiles: set[str]
    tools: set[str]


class QuietRequestHandler(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def run_trial(page: str, *, headless: bool, json: bool) -> int:
    """Start a browser with this page or the example, and wait until it ends; raises CliError."""
    if not headless and sys.platform == "linux" and not _has_display():
        raise CliError(
            LOST, "there is no display to show a browser on (DISPLAY and WAYLAND_DISPLAY are not set)"
        )
    try:
        with _example_server() if not page else nullcontext(page_url(page)) as opened:
            asyncio.run(_run_browser(opened, headless, json))
    except (ConnectionError, TimeoutError, CommandError) as error:
        raise CliError(LOST, f"the browser could not be used: {error}") from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("\nthe browser and its profile are gone", file=sys.stderr)
    return 0


def page_url(page: str) -> str:
    """The full URL of a page; raises CliError."""
    address = page if "://" in page else f"http://{page}"
    try:
        parts = urlsplit(address)
        is_page = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_page = False
    if not is_page:
        raise CliError(USAGE, f"{page!r} is no page; it looks like http://127.0.0.1:8000/")
    return address


def site_pattern(page: str) -> str:
    """The match pattern of a page's site; match patterns have no port."""
    parts = urlsplit(page)
    host = parts.netloc.rpartition("@")[2]
    bare = host[: host.index("]") + 1] if host.startswith("[") else host.partition(":")[0]
    return f"{parts.scheme}://{bare}/*"


def _has_display() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextmanager
def _example_server() -> Iterator[str]:
    """A server with the example page, and so an origin of its own; yields its URL."""
    page = partial(QuietRequestHandler, directory=str(EXAMPLE_FOLDER))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", EXAMPLE_PORT), page)
    except OSError:  # the port is taken: the tools get other names
        server = ThreadingHTTPServer(("127.0.0.1", 0), page)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(POLL_S,), daemon=True, name="afoot-example").start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


async def _run_browser(page: str, headless: bool, json: bool) -> None:
    from afoot.providers.browser.chromium import Chromium, find_chromium

    find_chromium()
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    flags = ("--headless=new", "about:blank") if headless else ("about:blank",)
    with _extension_copy(page) as extension:
        async with _running_or_new_gateway() as client, Chromium(*flags) as chromium:
            try:
                _pair(extension, client)
                known = _KnownBefore(_connected_profiles(client.get("/api/tabs")), set(_list_tools(client)))
                loaded = await chromium.command("Extensions.loadUnpacked", {"path": str(extension)})
                plugs = await _allow_user_scripts(chromium, loaded["id"])
                await _wait_until(
                    client,
                    lambda found: bool(_connected_profiles(found, plugs) - known.profiles),
                    NOT_CONNECTED,
                )
                await _show_only(chromium, page)
                _print_result(page, await _wait_for_tools(client, known), client, json)
                await chromium.wait_closed()
            finally:
                await _close(chromium)


@contextmanager
def _extension_copy(page: str) -> Iterator[Path]:
    """A copy of the extension that may use this page's site without a click."""
    from afoot.providers.browser.extension_files import MANIFEST, copy_extension

    with tempfile.TemporaryDirectory(prefix="afoot-extension-", ignore_cleanup_errors=True) as folder:
        copy_extension(Path(folder))
        manifest = Path(folder) / MANIFEST
        content = json_module.loads(manifest.read_text())
        manifest.write_text(json_module.dumps({**content, "host_permissions": [site_pattern(page)]}))
        yield Path(folder)


@asynccontextmanager
async def _running_or_new_gateway() -> AsyncIterator[GatewayClient]:
    """The gateway on this machine, or a new one that ends with this block."""
    from afoot.config.settings import find_config
    from afoot.config.state_folder import running_gateway

    if (address := running_gateway()) is not None:
        yield GatewayClient(address.mcp, address.token)
        return
    # --linger: it ends by itself if this process is killed.
    # -P: no file in this folder can replace a package.
    words = [sys.executable, "-P", "-m", "afoot", "serve", "--bare", "--json", "--linger"]
    words += [] if (file := find_config()) is None else ["--config", str(file)]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(GATEWAY_START_S):
            line = await process.stdout.readline()
        if not line:
            raise CliError(LOST, "no gateway runs, and none could be started")
        address = json_module.loads(line)
        yield GatewayClient(address["mcp"], address["token"])
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _pair(extension: Path, client: GatewayClient) -> None:
    from afoot.config import state_folder
    from afoot.providers.browser.extension_files import link_url, write_pairing

    write_pairing(extension, link_url(client.url), state_folder.link_key())


async def _allow_user_scripts(chromium: "Chromium", extension: str) -> bool:
    """Turn on the extension's switch for user scripts, as a person does; whether that worked."""
    page = await chromium.command("Target.createTarget", {"url": EXTENSIONS_PAGE})
    attached = await chromium.command("Target.attachToTarget", {**page, "flatten": True})
    change = {"expression": ALLOW_USER_SCRIPTS_JS % extension, "awaitPromise": True}
    for _ in range(round(SWITCH_S / POLL_S)):
        with suppress(CommandError):  # the page is still loading
            done = await chromium.connection.call("Runtime.evaluate", change, attached["sessionId"])
            if "exceptionDetails" not in done:
                return True
        await asyncio.sleep(POLL_S)
    return False


async def _wait_until(
    client: GatewayClient, is_so: Callable[[dict[str, Any]], bool], what: str, limit_s: float = READY_S
) -> None:
    """Wait until `/api/tabs` fulfils a condition; raises CliError after `limit_s`."""
    for _ in range(round(limit_s / POLL_S)):
        if is_so(await asyncio.to_thread(client.get, "/api/tabs")):
            return
        await asyncio.sleep(POLL_S)
    raise CliError(LOST, f"the browser was started, and {what} in {limit_s:g} s")


async def _show_only(chromium: "Chromium", page: str) -> None:
    """Open this page and close all others."""
    before = (await chromium.command("Target.getTargets"))["targetInfos"]
    await chromium.command("Target.createTarget", {"url": page})
    for target in before:
        if target["type"] == "page":
            await chromium.command("Target.closeTarget", {"targetId": target["targetId"]})


async def _wait_for_tools(client: GatewayClient, known: "_KnownBefore") -> dict[str, dict[str, Any]]:
    """The schemas of the page's tools, as soon as it has some; a page may have none."""

    def has_come(found: dict[str, Any]) -> bool:
        tabs = [tab for tab in found["tabs"] if tab["profile"] not in known.profiles]
        return any(tab["url"].startswith("http") for tab in tabs)  # the page may redirect

    def has_tools(found: dict[str, Any]) -> bool:
        return any(tab["profile"] not in known.profiles and tab["tools"] for tab in found["tabs"])

    await _wait_until(client, has_come, "its page did not show up")
    with suppress(CliError):
        await _wait_until(client, has_tools, "there are no tools", TOOLS_S)
    found = await asyncio.to_thread(_list_tools, client)
    return {name: found[name] for name in sorted(found.keys() - known.tools)}


def _connected_profiles(found: dict[str, Any], plugs: bool = False) -> set[str]:
    """The profiles of the connected browsers; with `plugs`, only where plugins can run."""
    there = [one for one in found["browsers"] if one["state"] == "connected"]
    return {one["profile"] for one in there if one["user_scripts"] or not plugs}


def _list_tools(client: GatewayClient) -> dict[str, dict[str, Any]]:
    """The input schemas of all tools, by name."""
    found = client.get("/api/tools")["tools"]
    return {tool["name"]: tool["inputSchema"] for tool in found if tool["name"] != TABS_TOOL}


def _print_result(page: str, tools: dict[str, dict[str, Any]], client: GatewayClient, json: bool) -> None:
    if json:
        print(to_json_line({"gateway": client.url, "page": page, "tools": list(tools)}), flush=True)
        return
    count = f"{len(tools) or 'no'} tool{'s' * (len(tools) != 1)}"
    calls = [example_call(name, schema) for name, schema in list(tools.items())[:SHOWN_TOOLS]]
    lines = [
        f"a browser with a fresh profile shows {clean(page)}, which has {count};",
        "type in another terminal:",
        *(f"  {own_command()} {clean(one)}" for one in ("tools", *calls, "browser", "watch")),
        "Close the browser, or press Ctrl-C: nothing of it stays behind.",
    ]
    print("\n".join(lines), flush=True)


async def _close(chromium: "Chromium") -> None:
    """Close the browser so that it cleans up after itself; after CLOSE_S it is killed."""
    with suppress(ConnectionError, TimeoutError, CommandError):
        async with asyncio.timeout(CLOSE_S):
            await chromium.command("Browser.close")
            await chromium.wait_closed()
