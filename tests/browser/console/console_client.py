"""The console in a real browser, on a real gateway with tools to watch."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.browser.chromium import Chromium
from tests.browser.page import Page
from tests.e2e.gateway import TOOLS, Gateway
from tests.serve.api_client import Api

HERE = Path(__file__).parent
OWN = HERE / "console_tools.py"


# Whether the page is connected, and whether it has noticed that it is not.
CONNECTED = (
    "document.querySelector('.address')?.checkVisibility()"
    " && document.querySelector('.address .sr').innerText === 'connected'"
)
OFFLINE = "document.documentElement.hasAttribute('data-offline')"


class Console:
    """A gateway, its API, and a browser that is logged in."""

    def __init__(self, gateway: Gateway, browser: Chromium) -> None:
        self.gateway, self.browser = gateway, browser
        self.api = Api(gateway)

    def open(self, path: str = "/live", first: str = "") -> Page:
        """A tab at this address, by a fresh login link; what goes wrong in it is noted. `first`: a script."""
        link: str = self.api.post("/api/session/code", {}).body["url"]
        page = self.browser.open()
        page.call("Page.enable")
        page.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH + first)
        page.navigate(link.replace("/#", f"{path}#"))
        page.until("!location.hash && document.title.endsWith(' · afoot')")
        page.until("import('/console/lib/store.js').then(({ store }) => store.about().ready)")
        return page


WATCH = """
globalThis.odd = [];
addEventListener("securitypolicyviolation", (event) => odd.push(event.violatedDirective + event.blockedURI));
addEventListener("error", (event) => odd.push(`error ${event.message}`));
addEventListener("unhandledrejection", (event) => odd.push(`rejection ${event.reason}`));
"""


class Tended(Gateway):
    """A gateway with the tools to watch."""

    def command(self, *surface: str) -> list[str]:
        """The command that serves them."""
        return [str(OWN) if part == str(TOOLS) else part for part in super().command(*surface)]


class Rooted(Tended):
    """A gateway that comes back at the address it had."""

    def command(self, *surface: str) -> list[str]:
        """The command, with the port of the last time."""
        port = urlsplit(self.url).port if self.url else 0
        return super().command(*(part.replace(":0", f":{port}") for part in surface))


@contextmanager
def attended(folder: Path, browser: Chromium, **settings: Any) -> Iterator[Console]:
    """A console whose gateway is ended with the block."""
    gateway = Tended(folder, {"drain_s": 0.2, **settings})
    gateway.start()
    try:
        yield Console(gateway, browser)
    finally:
        gateway.stop()


def at(call: str) -> str:
    """The row of a live call, as an expression."""
    return f"document.querySelector('[data-call=\"{call}\"]')"


def size(page: Page, width: int, height: int) -> None:
    """A window of this size."""
    page.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
    )


def stop_clock(page: Page) -> None:
    """Half a second is over when a test says so, not when the machine has other things to do."""
    page.evaluate("{ const at = performance.now(); performance.now = () => at; }")


def start_clock(page: Page) -> None:
    """The page's clock goes on, and has never stood still."""
    page.evaluate("delete performance.now")


def press(page: Page, key: str, code: int = 0) -> None:
    """Press and leave a key."""
    for kind in ("keyDown", "keyUp"):
        typed = "\r" if key == "Enter" else key if len(key) == 1 else ""
        text = {"text": typed} if kind == "keyDown" and typed else {}
        page.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)
