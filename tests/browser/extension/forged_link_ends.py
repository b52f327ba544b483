"""The link's other ends, made by hand: a browser that can lie, and a server that is no gateway."""

import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import Server, ServerConnection, serve
from websockets.typing import Origin, Subprotocol

if TYPE_CHECKING:
    from tests.browser.chain import Chain

SUBPROTOCOL: Final = Subprotocol("afoot.link.1")
WAIT_S: Final = 30.0
Message = dict[str, Any]


def mac(key: str, side: str, gateway: str, browser: str) -> str:
    """The proof of one side, written down a second time from the issue's words."""
    told = side.encode() + bytes.fromhex(gateway) + bytes.fromhex(browser)
    return hmac.new(bytes.fromhex(key), told, hashlib.sha256).hexdigest()


class Guest:
    """A connection to `/link` that says whatever a test wants."""

    def __init__(self, socket: ClientConnection, key: str) -> None:
        self._socket, self.key = socket, key
        self.nonce = ""

    @classmethod
    @contextmanager
    def of(cls, chain: "Chain", *, key: str = "", origin: str = "") -> Iterator[Self]:
        """A connection with the right origin and the right key, or others."""
        pairing = json.loads((chain.gateway.folder / "extension" / "pairing.json").read_text())
        named = Origin(origin or f"chrome-extension://{chain.extension}")
        with connect(
            pairing["url"], origin=named, subprotocols=[SUBPROTOCOL], proxy=None, compression=None
        ) as socket:
            yield cls(socket, key or pairing["key"])

    def take(self) -> Message:
        """The next frame."""
        found: Message = json.loads(self._socket.recv(WAIT_S))
        return found

    def until(self, method: str) -> Any:
        """The params of the next frame of this method."""
        while (frame := self.take())["method"] != method:
            pass
        return frame["params"]

    def say(self, method: str, **params: Any) -> None:
        """Send a frame."""
        self._socket.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def prove(self) -> str:
        """Answer the challenge; gives what was said."""
        challenge = self.until("link.challenge")["nonce"]
        self.nonce = secrets.token_hex(32)
        proof = mac(self.key, "ext", challenge, self.nonce)
        self.say("link.proof", nonce=self.nonce, mac=proof)
        return proof

    def enter(self, profile: str, rooms: list[Message], running: list[Message] | None = None) -> Any:
        """Prove and greet; gives the welcome."""
        self.prove()
        self.until("link.proof")
        self.say("link.hello", version="99.0.0", profile=profile, rooms=rooms, running=running or [])
        return self.until("link.welcome")

    def closed(self) -> int:
        """With which code the other side closes."""
        try:
            while True:
                self._socket.recv(WAIT_S)
        except ConnectionClosed as end:
            assert end.rcvd is not None, "it was cut"
            return int(end.rcvd.code)


class Squatter:
    """A server that has the gateway's port and none of its secrets."""

    def __init__(self, manner: str) -> None:
        self.manner = manner
        self.heard: list[str] = []
        self.left = threading.Event()

    def __call__(self, socket: ServerConnection) -> None:
        """Challenge, and answer the proof in some wrong manner."""
        challenge = secrets.token_hex(32)
        try:
            socket.send(json.dumps({"method": "link.challenge", "params": {"nonce": challenge}}))
            proof = self._hear(socket)["params"]
            for answer in self._answers(challenge, proof):
                socket.send(json.dumps(answer))
            while True:
                self._hear(socket)
        except ConnectionClosed:
            self.left.set()

    def _hear(self, socket: ServerConnection) -> Message:
        text = str(socket.recv(WAIT_S))
        self.heard.append(text)
        found: Message = json.loads(text)
        return found

    def _answers(self, challenge: str, proof: Message) -> list[Message]:
        welcome = {"method": "link.welcome", "params": {"epoch": "e"}}
        guessed = mac("00" * 32, "gw", challenge, proof["nonce"])
        return {
            "guessing": [{"method": "link.proof", "params": {"mac": guessed}}, welcome],
            "mirroring": [{"method": "link.proof", "params": {"mac": proof["mac"]}}, welcome],
            "skipping": [welcome],
        }[self.manner]


@contextmanager
def squatting(port: int, manner: str) -> Iterator[Squatter]:
    """A squatter on this port, while the block lasts."""
    squatter = Squatter(manner)
    server: Server = serve(squatter, "127.0.0.1", port, subprotocols=[SUBPROTOCOL])
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield squatter
    finally:
        server.shutdown()
        thread.join(WAIT_S)
