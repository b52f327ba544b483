"""A real WebSocket to a gateway's `/link`, and an extension by hand behind it."""

import hmac
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from websockets import Origin, Subprotocol
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection as Connection
from websockets.sync.client import connect

from afoot.providers.browser.extension_files import shipped_manifest
from afoot.wire.extension import SUBPROTOCOL

WAIT_S = 30.0
ORIGIN = shipped_manifest().origin


class Extension:
    """One connection, at its far end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def say(self, method: str, params: object = None) -> None:
        """Send a frame."""
        self.raw(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}))

    def raw(self, text: str) -> None:
        """Send anything."""
        self._connection.send(text)

    def got(self, method: str) -> dict[str, Any]:
        """The params of the next frame of this method."""
        while True:
            frame: dict[str, Any] = json.loads(self._connection.recv(WAIT_S))
            if frame["method"] == method:
                params: dict[str, Any] = frame["params"]
                return params

    def prove(self, key: bytes) -> Self:
        """Answer the challenge."""
        theirs, ours = bytes.fromhex(self.got("link.challenge")["nonce"]), os.urandom(32)
        mac = hmac.new(key, b"ext" + theirs + ours, "sha256").hexdigest()
        self.say("link.proof", {"nonce": ours.hex(), "mac": mac})
        return self

    def join(self, key: bytes, profile: str = "p1", **more: object) -> Self:
        """Prove, and say hello."""
        self.prove(key)
        self.got("link.proof")
        self.say("link.hello", {"version": shipped_manifest().version, "profile": profile, **more})
        self.got("link.welcome")
        return self

    def closed(self) -> tuple[int, str]:
        """How the other side closed it."""
        try:
            while True:
                self._connection.recv(WAIT_S)
        except ConnectionClosed as error:
            found = error.rcvd
            return (found.code, found.reason) if found is not None else (1006, "")


@contextmanager
def dialled(
    url: str, *, origin: str | None = ORIGIN, subprotocol: str | None = SUBPROTOCOL
) -> Iterator[Extension]:
    """A connection to this gateway, as the extension opens it; raises InvalidStatus."""
    wanted = None if subprotocol is None else [Subprotocol(subprotocol)]
    with connect(
        f"ws{url.removeprefix('http').removesuffix('/mcp')}/link",
        max_size=None,
        origin=None if origin is None else Origin(origin),
        subprotocols=wanted,
    ) as connection:
        yield Extension(connection)


def pairing(folder: Path) -> tuple[str, bytes]:
    """What an extension in this folder reads: where to, and the key."""
    told = json.loads((folder / "pairing.json").read_text())
    return str(told["url"]), bytes.fromhex(told["key"])
