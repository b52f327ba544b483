"""Where a browser's debugging port is: only on this machine, as whoever reaches it controls the browser."""

import asyncio
import json
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from msgspec import Struct

from afoot.config import ConfigError
from afoot.providers.browser.cdp.wires import Socket

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PATIENCE_S = 5.0
HOW = (
    "start one with --remote-debugging-port=PORT and a --user-data-dir of its own"
    " (Chrome 136 and later ignore the port on the default profile)"
)


class Address(Struct, frozen=True):
    """A debugging port; `path` if it is known which WebSocket is meant."""

    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        """As a person wrote it."""
        return f"{'ws' if self.path else 'http'}://{self._place}{self.path}"

    @property
    def _place(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def dial(self) -> Socket:
        """A socket to the browser there; raises ConnectionError, saying what to do."""
        try:
            path = self.path or await asyncio.to_thread(self._ask)
            return await Socket.to(f"ws://{self._place}{path}")
        except (OSError, HTTPException, ValueError) as error:
            raise ConnectionError(f"no browser at {self}: {error or type(error).__name__}; {HOW}") from None

    def _ask(self) -> str:
        """The path of the browser's socket; it changes with each start."""
        connection = HTTPConnection(self.host, self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", "/json/version")
            told = json.loads(connection.getresponse().read(1 << 20))
            return urlsplit(str(told["webSocketDebuggerUrl"])).path
        except (KeyError, TypeError):
            raise ValueError("what answers there is no browser") from None
        finally:
            connection.close()


def parse(text: str) -> Address:
    """An address as it stands on a command line; raises ConfigError."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"cdp {text}: {error}") from None
    if parts.scheme not in ("http", "ws") or host is None or port is None:
        raise ConfigError(f"cdp {text}: write http://127.0.0.1:PORT, or the ws:// address of the browser")
    if host not in LOOPBACK:
        raise ConfigError(
            f"cdp {text}: only a browser on this machine may be reached (127.0.0.1, localhost or ::1);"
            " whoever reaches that port controls the browser"
        )
    if parts.scheme == "ws" and len(parts.path) < 2:
        raise ConfigError(f"cdp {text}: has no path; write http://{host}:{port} instead")
    return Address(host, port, parts.path if parts.scheme == "ws" else "")
