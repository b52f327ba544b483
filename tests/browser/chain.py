"""The whole chain for tests: site, a browser with the extension or attached to, gateway, official client."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import mcp_types as types
import msgspec

from afoot.providers.browser.cdp.connection import CommandError
from tests.browser.chromium import Chromium, until
from tests.browser.extension import extension_copy
from tests.browser.mcp_calls import Call, Caller, calling
from tests.browser.page import Page, in_world
from tests.browser.site import Site
from tests.e2e.gateway_with_servers import Front
from tests.serve.api_client import Api

LINK_S: Final = 40.0
SWITCH_S: Final = 80.0  # the extension looks every half minute whether the switch for plugins is on
_hosts = count(1)


class Chain:
    """A gateway with one browser, and a client that calls what it offers."""

    def __init__(self, gateway: Front, browser: Chromium, site: Site, caller: Caller) -> None:
        self.gateway, self.browser, self.site, self.caller = gateway, browser, site, caller
        self.extension = ""  # its id, if it is by that

    @property
    def api(self) -> Api:
        """The operator's API."""
        return Api(self.gateway)

    def browsers(self) -> list[dict[str, Any]]:
        """The browsers that the gateway has now."""
        return [one for one in self.api.get("/api/tabs").body["browsers"] if one["state"] == "connected"]

    def until_linked(self, is_linked: bool = True) -> None:
        """Wait for the browser, or for its absence to be noticed."""
        until(lambda: bool(self.browsers()) is is_linked, f"linked: {is_linked}", LINK_S)

    def restart(self) -> None:
        """Start the gateway again after its end; the extension finds it."""
        self.gateway.start()
        self.caller.move(self.gateway.url)
        self.until_linked()

    def clear(self) -> None:
        """Close the tabs, and wait until the gateway knows: a tab that it still has can be called."""
        self.browser.clear()
        until(lambda: not self._sites(), "the gateway to know of no tab")

    def _sites(self) -> list[str]:
        tabs = self.api.get("/api/tabs").body["tabs"]
        return [tab["origin"] for tab in tabs if tab["origin"].startswith("http")]

    def open(self, path: str = "bench.html", *headers: str, host: str = "") -> "Bench":
        """A new tab on a host of its own, so that no other test's tools have its names."""
        host = host or f"b{next(_hosts)}.localhost"
        return Bench(self, self.browser.open(self.site.url(path, *headers, host=host)), host)

    def running(self, tool: str) -> list[str]:
        """The ids of the calls of a tool that are under way."""
        listed = self.api.get("/api/calls").body["calls"]
        return [str(one["id"]) for one in listed if one["tool"] == tool and not one.get("outcome")]


class Bench:
    """A tab with tools, and how they are called from far away."""

    def __init__(self, chain: Chain, page: Page, host: str) -> None:
        self.chain, self.page, self.host = chain, page, host
        self.origin = chain.site.origin(host)

    def offered(self) -> dict[str, types.Tool]:
        """What this host offers now, by the names that the page gave."""
        prefix = f"{self.host.replace('.', '_')}_{self.chain.site.port}_"
        tools = self.chain.caller.tools()
        return {name.removeprefix(prefix): tool for name, tool in tools.items() if name.startswith(prefix)}

    def tool(self, tool: str) -> types.Tool:
        """As it is offered, as soon as it is."""
        found: types.Tool = until(lambda: self.offered().get(tool), f"{tool} of {self.host} to be offered")
        return found

    def call(self, tool: str, budget: Mapping[str, float] | None = None, /, **arguments: Any) -> Call:
        """Begin a call; the budget lowers its limits."""
        return self.chain.caller.call(self.tool(tool).name, arguments, **(budget or {}))

    def in_relay(self, script: str) -> Any:
        """The value of an expression in the extension's own world of this tab."""
        browser, before = self.page.browser, len(self.page.browser.events)
        with suppress(CommandError):
            self.page.call("Runtime.disable")
        self.page.call("Runtime.enable")  # tells of every world again
        for event in browser.events[before:]:
            if event.method == "Runtime.executionContextCreated" and event.session == self.page.session:
                context = msgspec.json.decode(event.params)["context"]
                if self.chain.extension in context["origin"]:
                    return in_world(self.page, context["uniqueId"], script, LINK_S)
        raise AssertionError("the extension is not in this tab")


@contextmanager
def linking(
    folder: Path, browser: Chromium, site: Site, settings: Mapping[str, object] | None = None
) -> Iterator[Chain]:
    """A chain over the extension, which is gone again at the end."""
    gateway = Front(folder, {}, {"approval": "auto", "progress_hz": 0, **(settings or {})}, own=())
    extension_copy.unpack(folder / "extension", gateway.environment)
    with _chained(gateway, browser, site) as chain:
        chain.extension = browser.load_extension(folder / "extension")
        try:
            chain.until_linked()
            yield chain
        finally:
            with suppress(ConnectionError, CommandError):  # it is gone, with its browser or before
                browser.call("Extensions.uninstall", {"id": chain.extension})


@contextmanager
def attaching(folder: Path, browser: Chromium, site: Site, plugins: Sequence[Path] = ()) -> Iterator[Chain]:
    """A chain over CDP."""
    own = {"cdp": browser.endpoint, "plugins": [str(plugin) for plugin in plugins]}
    settings = {"approval": "auto", "progress_hz": 0, "browser": own}
    with _chained(Front(folder, {}, settings, own=()), browser, site) as chain:
        chain.until_linked()
        yield chain


@contextmanager
def _chained(gateway: Front, browser: Chromium, site: Site) -> Iterator[Chain]:
    browser.clear()
    gateway.start()
    try:
        with calling(gateway.url) as caller:
            yield Chain(gateway, browser, site, caller)
    finally:
        gateway.stop()


def counted(chain: Chain) -> int:
    """How many frames were not believed."""
    found: dict[str, int] = chain.api.get("/api/tabs").body["counted"]
    return sum(found.values())
