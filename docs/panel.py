"""Takes panel.png, the side panel with a running call and one to approve; run it after changing the panel.

python docs/panel.py
"""

import asyncio
import base64
import json
import os
import sys
import tempfile
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

from afoot.cli.client import GatewayClient
from afoot.config import state_folder
from afoot.providers.browser.cdp.connection import CdpConnection
from afoot.providers.browser.chromium import Chromium
from afoot.providers.browser.extension_files import (
    MANIFEST,
    copy_extension,
    link_url,
    shipped_manifest,
    write_pairing,
)

PICTURE = Path(__file__).with_name("panel.png")
EXAMPLE = Path(__file__).parents[1] / "src/afoot/providers/browser/example"
SIZE = {"width": 360, "height": 720, "deviceScaleFactor": 2, "mobile": False}
LIMIT_S = 60.0
T = TypeVar("T")
TOOL = "export_orders"
# The text that must be on the screen: the progress of one call, and the question of the other.
SHOWN = """new Promise((shown) => {
  const look = () => document.querySelector(".narrow-question") && /2\\d %/.test(document.body.innerText)
    ? shown(true) : setTimeout(look, 20);
  look();
})"""


async def take() -> bytes:
    """Start gateway, browser and example page, make two calls, and take the picture."""
    with tempfile.TemporaryDirectory() as folder, _example() as page:
        os.environ |= {"AFOOT_HOME": f"{folder}/home", "AFOOT_HTTP": "127.0.0.1:0"}
        extension = Path(folder) / "extension"
        async with _gateway() as client, Chromium("--headless=new", "about:blank") as chromium:
            _lay(extension, client.url)
            await chromium.command("Extensions.loadUnpacked", {"path": str(extension)})
            await _until(lambda: client.get("/api/tabs")["browsers"])
            await chromium.command("Target.createTarget", {"url": page})
            tool = await _until(lambda: _named(client.get("/api/tools")))
            panel = await _opened(chromium.connection, f"{shipped_manifest().origin}/panel/panel.html")
            calls = [await _afoot("call", tool, *words) for words in (("pages=120", "--yes"), ("pages=5",))]
            try:
                await panel("Runtime.evaluate", {"expression": SHOWN, "awaitPromise": True}, LIMIT_S)
                shot = await panel("Page.captureScreenshot", {"format": "png"}, LIMIT_S)
            finally:
                for call in calls:
                    call.kill()
                    await call.wait()
    return base64.b64decode(shot["data"])


@contextmanager
def _example() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(EXAMPLE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@asynccontextmanager
async def _gateway() -> AsyncIterator[GatewayClient]:
    process = await _afoot("serve", "--bare", "--json")
    assert process.stdout is not None
    try:
        told = json.loads(await process.stdout.readline())
        yield GatewayClient(told["mcp"], told["token"])
    finally:
        process.terminate()
        await process.wait()


def _lay(extension: Path, url: str) -> None:
    """Copy the extension with permission for the example page, paired with this gateway."""
    copy_extension(extension)
    manifest = extension / MANIFEST
    told = json.loads(manifest.read_text()) | {"host_permissions": ["http://127.0.0.1/*"]}
    manifest.write_text(json.dumps(told))
    write_pairing(extension, link_url(url), state_folder.link_key())


async def _until(found: Callable[[], T]) -> T:
    """Wait until a function returns something, and return it."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            if one := await asyncio.to_thread(found):
                return one
            await asyncio.sleep(0.05)


def _named(offered: dict[str, Any]) -> str:
    """The full name of the example's tool, if it is offered."""
    return next((tool["name"] for tool in offered["tools"] if tool["name"].endswith(TOOL)), "")


async def _opened(browser: CdpConnection, url: str) -> Any:
    """Open a page of this size in its own window, so that it hides no other; returns its command function."""
    target = (await browser.call("Target.createTarget", {"url": url, "newWindow": True}))["targetId"]
    attached = await browser.call("Target.attachToTarget", {"targetId": target, "flatten": True})

    async def command(method: str, params: dict[str, Any], limit_s: float = LIMIT_S) -> Any:
        return await browser.call(method, params, attached["sessionId"], limit_s)

    await command("Emulation.setDeviceMetricsOverride", SIZE)
    await command("Emulation.setScrollbarsHidden", {"hidden": True})
    return command


async def _afoot(*words: str) -> Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "afoot", *words, stdout=PIPE)


if __name__ == "__main__":
    PICTURE.write_bytes(asyncio.run(take()))
