"""A real Chromium for tests: driven over its pipe by a thread of its own, so any test may wait for it."""

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from afoot.providers.browser import chromium
from afoot.providers.browser.cdp.connection import CdpMessage
from tests.browser.page import Page

T = TypeVar("T")
# Only a machine on which much else runs comes near these.
STEP_S = 30.0
START_S = 60.0
NATIVE = "--enable-features=WebMCP"
# Every *.test is this machine, and no secure context, as the loopback names are.
NAMES = "--host-resolver-rules=MAP *.test 127.0.0.1"


class Chromium:
    """A browser process, and what tests do with it; every step has a deadline."""

    def __init__(self, *flags: str) -> None:
        self.flags = flags
        self.events: list[CdpMessage] = []  # of all sessions, in order
        self._heard = threading.Condition()
        self._spare = ""  # an empty tab
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chromium", daemon=True)
        self._process = chromium.Chromium(*flags, NAMES, "--remote-debugging-port=0", on_event=self._hear)

    def start(self) -> None:
        """Start it; it answers when this returns."""
        self._thread.start()
        self.wait(self._process.__aenter__(), START_S)
        self.call("Browser.getVersion", limit_s=START_S)

    def _last_words(self) -> str:
        errors = self._process.errors
        return errors.read_text(errors="replace")[-3000:] if errors.exists() else "none"

    def stop(self) -> None:
        """End it with all its children, and the thread."""
        self.kill()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STEP_S)
        self._loop.close()

    def kill(self) -> None:
        """Kill it, as a crash would."""
        self.wait(self._process.close(), START_S)

    @property
    def pid(self) -> int:
        """Of the browser's own process."""
        return self._process.pid

    @property
    def profile(self) -> Path:
        """The folder of its profile."""
        return self._process.profile

    @property
    def endpoint(self) -> str:
        """What `--cdp` wants to know."""
        return f"http://127.0.0.1:{self.wait(self._process.port())}"

    def wait(self, work: Coroutine[Any, Any, T], limit_s: float = STEP_S) -> T:
        """Do something on the browser's loop, and give what came of it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(limit_s + 1)

    def call(
        self, method: str, params: Mapping[str, Any] | None = None, session: str = "", limit_s: float = STEP_S
    ) -> Any:
        """One command of the DevTools protocol; raises Refusal, TimeoutError, ConnectionError."""
        try:
            return self.wait(self._process.connection.call(method, params, session, limit_s), limit_s)
        except ConnectionError as gone:
            raise ConnectionError(f"{gone}; its last words: {self._last_words()}") from None

    def open(self, url: str = "about:blank") -> Page:
        """A new tab in front; it has loaded when this returns.

        It was made before, so that whoever else attaches to new tabs had the time to.
        """
        page = self.attach(self._spare or self._empty())
        self._spare = self._empty()
        page.activate()
        if url != "about:blank":
            page.navigate(url)
        return page

    def _empty(self) -> str:
        made: str = self.call("Target.createTarget", {"url": "about:blank", "background": True})["targetId"]
        return made

    def attach(self, target: str) -> Page:
        """A tab, frame or worker that is there."""
        found = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        return Page(self, target, found["sessionId"])

    def targets(self, kind: str = "page") -> list[dict[str, Any]]:
        """What is open, of one kind: page, iframe, service_worker."""
        wanted = {"filter": [{"type": kind}]}
        found: list[dict[str, Any]] = self.call("Target.getTargets", wanted)["targetInfos"]
        return found

    def clear(self) -> None:
        """Close every tab but an empty one, as the browser ends with its last."""
        self._spare = self._empty()
        for target in self.targets():
            if target["targetId"] != self._spare:
                with suppress(Exception):
                    self.call("Target.closeTarget", {"targetId": target["targetId"]})
        until(lambda: len(self.targets()) <= 1, "the tabs to close")
        self.events.clear()

    # Extensions

    def load_extension(self, folder: Path) -> str:
        """Load an unpacked extension, and give its id."""
        loaded: str = self.call("Extensions.loadUnpacked", {"path": str(folder)})["id"]
        return loaded

    def allow_user_scripts(self, extension: str, *, on: bool = True) -> None:
        """What a person does with the switch "Allow User Scripts" on the extension's page.

        A browser in which this extension was loaded before shows its switch as it was, but has forgotten its
        value, and ignores a change to "off". It obeys once the switch was turned the other way.
        """
        page = self.open("chrome://extensions/")
        info = f"chrome.developerPrivate.getExtensionInfo({extension!r})"
        for turn in (on, not on, on):
            change = f"{{extensionId: {extension!r}, userScriptsAccess: {str(turn).lower()}}}"
            page.evaluate(f"chrome.developerPrivate.updateExtensionConfiguration({change})")
            if page.evaluate(f"{info}.then((it) => it.userScriptsAccess.isActive)") is on:
                break
        else:
            pytest.fail(f"the browser does not turn its switch {'on' if on else 'off'}")
        page.close()

    def worker(self, extension: str) -> Page:
        """The extension's service worker, when it is up; as long as it is attached, it does not rest."""

        def found() -> str:
            mine = [t for t in self.targets("service_worker") if extension in t["url"]]
            return mine[0]["targetId"] if mine else ""

        worker = self.attach(until(found, "the extension's worker to start"))
        worker.until("typeof chrome === 'object'")  # it is listed before it is ready
        return worker

    def kill_worker(self, extension: str) -> None:
        """End the extension's service worker, as the browser does with an idle one."""
        before = [t["targetId"] for t in self.targets("service_worker") if extension in t["url"]]
        for target in before:
            self.call("Target.closeTarget", {"targetId": target})
        until(lambda: not {t["targetId"] for t in self.targets("service_worker")} & set(before), "its end")

    # Events

    def _hear(self, message: CdpMessage) -> None:
        with self._heard:
            self.events.append(message)
            self._heard.notify_all()

    def event(self, method: str, session: str, after: int = 0, limit_s: float = STEP_S) -> dict[str, Any]:
        """The params of the first such event behind that many."""
        end = time.monotonic() + limit_s
        with self._heard:
            while True:
                for message in self.events[after:]:
                    if message.method == method and message.session == session:
                        params: dict[str, Any] = msgspec.json.decode(message.params)
                        return params
                if not self._heard.wait(end - time.monotonic()):
                    pytest.fail(f"no {method} within {limit_s:g} s")


def until(happened: Any, what: str, limit_s: float = STEP_S) -> Any:
    """Wait until something is true, and give it."""
    end = time.monotonic() + limit_s
    while not (found := happened()):
        if time.monotonic() > end:
            pytest.fail(f"waited {limit_s:g} s for {what}")
        time.sleep(0.02)
    return found


@contextmanager
def running(*flags: str) -> Iterator[Chromium]:
    """A browser that is ended with the block."""
    browser = Chromium(*flags)
    try:
        browser.start()
        yield browser
    finally:
        browser.stop()
