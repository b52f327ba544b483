"""The gateway's end of the link as a test plays it: for what concerns the extension alone."""

import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_bytes
from typing import Any, Final

import pytest
from msgspec import Struct
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve
from websockets.typing import Subprotocol

from afoot.providers.browser.cdp.connection import CommandError
from afoot.providers.browser.extension_files import copy_extension
from afoot.wire.extension import SUBPROTOCOL
from tests.browser.chromium import Chromium

STEP_S: Final = 30.0
GRANTED: Final = ["http://127.0.0.1/*", "http://*.localhost/*"]  # 127.0.0.2 is not
LOST = "(lost)"  # how the end of a socket is heard


class Heard(Struct, frozen=True):
    """A frame that came, and when."""

    at: float
    method: str
    params: dict[str, Any]
    number: int


class Counterpart:
    """Listens for one browser, proves itself, and remembers all that is said."""

    def __init__(self) -> None:
        self.key = token_bytes(32)
        self.heard: list[Heard] = []
        self.origin = ""
        self.plugins: list[dict[str, Any]] = []
        self.abort: list[str] = []
        self.greets: Callable[[ServerConnection], bool] = self.proves
        self.port = 0
        self._news = threading.Condition()
        self._server: Server | None = None
        self._open: list[ServerConnection] = []
        self._joined: ServerConnection | None = None

    def start(self) -> None:
        """Listen, where it listened before."""
        spoken = [Subprotocol(SUBPROTOCOL)]
        self._server = serve(self._serve, "127.0.0.1", self.port, subprotocols=spoken, max_size=None)
        self.port = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Listen no more, and close what is open."""
        if self._server:
            self._server.shutdown()
        self.close(1001)

    def close(self, code: int = 1000) -> None:
        """Close every socket."""
        for one in list(self._open):
            one.close(code)

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Say something to the browser."""
        assert self._joined is not None
        tell(self._joined, method, params or {})

    def mark(self) -> int:
        """How much has been heard so far."""
        return len(self.heard)

    def wait(
        self, method: str, after: int = 0, fits: Callable[[Any], object] = bool, limit_s: float = STEP_S
    ) -> Heard:
        """The first such frame behind that many."""
        end = time.monotonic() + limit_s
        with self._news:
            while True:
                for one in self.heard[after:]:
                    if one.method == method and (fits is bool or fits(one.params)):
                        return one
                if not self._news.wait(end - time.monotonic()):
                    said = [(one.method, one.params) for one in self.heard[after:]]
                    pytest.fail(f"no {method} within {limit_s:g} s, but {str(said)[:2000]}")

    def proves(self, socket: ServerConnection) -> bool:
        """Both sides prove themselves, as they should."""
        nonce = token_bytes(32)
        tell(socket, "link.challenge", {"nonce": nonce.hex()})
        said = json.loads(socket.recv(STEP_S))["params"]
        both = nonce + bytes.fromhex(said["nonce"])
        self.note("link.proof", {**said, "asked": nonce.hex()})
        if not hmac.compare_digest(hmac.digest(self.key, b"ext" + both, "sha256").hex(), said["mac"]):
            socket.close(4401)
            return False
        tell(socket, "link.proof", {"mac": hmac.digest(self.key, b"gw" + both, "sha256").hex()})
        return True

    def note(self, method: str, params: dict[str, Any]) -> None:
        """Remember something."""
        with self._news:
            self.heard.append(Heard(time.monotonic(), method, params, len(self.heard)))
            self._news.notify_all()

    def _serve(self, socket: ServerConnection) -> None:
        self._open.append(socket)
        request = socket.request
        self.origin = request.headers.get("Origin", "") if request else ""
        try:
            if self.greets(socket):
                self._converse(socket)
        except (ConnectionClosed, TimeoutError):
            pass
        finally:
            self._open.remove(socket)
            self._joined = None if self._joined is socket else self._joined
            self.note(LOST, {})

    def _converse(self, socket: ServerConnection) -> None:
        for text in socket:
            frame = json.loads(text)
            method, params = frame["method"], frame["params"]
            if method == "link.hello":
                self._joined = socket
                tell(socket, "link.welcome", {"epoch": "1", "abort": self.abort, "plugins": self.plugins})
            if method == "ping":
                tell(socket, "ping", {})
            self.note(method, params)


class Joined(Struct, frozen=True):
    """A browser with a copy of the extension, and its counterpart."""

    browser: Chromium
    gateway: Counterpart
    folder: Path
    id: str

    def pair(self, key: bytes | None = None) -> None:
        """Write the pairing file, with the right key or another."""
        _pair(self.folder, self.gateway, key or self.gateway.key)

    def opened(self, url: str, after: int, source: str = "page") -> dict[str, Any]:
        """The room of a document."""

        def fits(said: dict[str, Any]) -> bool:
            return bool(said["room"]["url"] == url and said["room"]["source"] == source)

        room: dict[str, Any] = self.gateway.wait("tab.opened", after, fits).params["room"]
        return room

    def manage(self, script: str) -> Any:
        """What a person does at chrome://extensions."""
        return _manage(self.browser, script)


@contextmanager
def joined(browser: Chromium, folder: Path, hosts: list[str] = GRANTED) -> Iterator[Joined]:
    """Load a copy of the extension whose manifest alone differs; it is gone again at the end."""
    copy_extension(folder)
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "host_permissions": hosts}))
    gateway = Counterpart()
    gateway.start()
    _pair(folder, gateway, gateway.key)
    browser.clear()
    # Without it an unpacked extension is not loaded again.
    _manage(browser, "updateProfileConfiguration({inDeveloperMode: true})")
    extension = browser.load_extension(folder)
    try:
        gateway.wait("link.hello")
        yield Joined(browser, gateway, folder, extension)
    finally:
        with suppress(CommandError):
            browser.call("Extensions.uninstall", {"id": extension})
        gateway.stop()


def _pair(folder: Path, gateway: Counterpart, key: bytes) -> None:
    pairing = {"url": f"ws://127.0.0.1:{gateway.port}/link", "key": key.hex()}
    (folder / "pairing.json").write_text(json.dumps(pairing))


def _manage(browser: Chromium, script: str) -> Any:
    page = browser.open("chrome://extensions/")
    try:
        return page.evaluate(f"chrome.developerPrivate.{script}")
    finally:
        page.close()


def tell(socket: ServerConnection, method: str, params: Mapping[str, Any]) -> None:
    """Say something over one socket."""
    socket.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))
