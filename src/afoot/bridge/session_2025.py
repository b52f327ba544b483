"""`BridgeSession2025` is a session of the handshake era that the bridge can reopen at another gateway."""

from msgspec import Raw, Struct, json

from afoot.bridge.connection import GatewayConnection
from afoot.bridge.http import BrokenConnection, GatewayResponse
from afoot.wire import mcp_2025
from afoot.wire.jsonrpc import Envelope

# A client sends these once; a new session must get them again.
_REMEMBERED_METHODS = ("logging/setLevel", "resources/subscribe")


class _InitializeResult(Struct):
    protocolVersion: str = mcp_2025.LATEST
    capabilities: dict[str, Raw] = {}


class BridgeSession2025:
    """The client's `initialize`, the requests to repeat, and the id and version that the gateway gave."""

    def __init__(self) -> None:
        self.id = ""
        self.version = mcp_2025.LATEST
        self.is_open = False
        self.initialize_result = Raw()  # the last gateway's answer to `initialize`
        self._is_first = False  # no gateway has answered this client yet
        self._initialize_params = Raw()
        self._remembered: dict[tuple[str, bytes], bytes] = {}
        self._number = 0

    def remember(self, line: bytes, message: Envelope) -> None:
        """Remember this request if another gateway must get it again."""
        method, params = str(message.method), bytes(message.params)
        if method == "initialize":
            self._initialize_params = Raw(params)
        elif method in _REMEMBERED_METHODS:
            self._remembered[method, params if method == "resources/subscribe" else b""] = line
        elif method == "resources/unsubscribe":
            self._remembered.pop(("resources/subscribe", params), None)

    def open_without_gateway(self, version: str) -> None:
        """Count as open: the next gateway gets the client's `initialize`, and the client has its answer."""
        self.version = version
        self.is_open = True
        self._is_first = True

    def accept(self, answer: GatewayResponse, result: Raw) -> list[bytes]:
        """Take the gateway's answer to `initialize`.

        Returns a notification for each list that may have changed.
        """
        self.id = answer.headers.get("mcp-session-id", self.id)
        self.is_open = bool(self.id)
        self.initialize_result = Raw(bytes(result))
        initialized = json.decode(result, type=_InitializeResult)
        self.version = initialized.protocolVersion
        kinds = [
            kind for kind, raw in initialized.capabilities.items() if b'"listChanged":true' in bytes(raw)
        ]
        return [
            json.encode({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"}) for kind in kinds
        ]

    async def post(self, connection: GatewayConnection, line: bytes) -> GatewayResponse:
        """Send a message of this session; raises Unreachable, BrokenConnection."""
        return await connection.send_in_session("POST", line, self.id, self.version)

    async def listen(self, connection: GatewayConnection) -> GatewayResponse:
        """Open the stream for messages that belong to no request; raises Unreachable, BrokenConnection."""
        return await connection.send_in_session("GET", b"", self.id, self.version)

    async def end(self, connection: GatewayConnection) -> None:
        """Delete the session: the client has gone, and its calls end with it.

        Raises Unreachable, BrokenConnection.
        """
        (await connection.send_in_session("DELETE", b"", self.id, self.version)).close()

    async def renew(self, connection: GatewayConnection) -> list[bytes]:
        """Open the session again, unseen by the client.

        Returns a notification for each list that may have changed since another gateway answered.
        """
        self.id = ""
        changes = list[bytes]()
        self._number += 1
        hello = {"jsonrpc": "2.0", "id": f"afoot-connect-{self._number}", "method": "initialize"}
        answer = await connection.send_in_session(
            "POST", json.encode({**hello, "params": self._initialize_params}), "", ""
        )
        try:
            async for frames in answer.messages():
                for frame in frames:
                    changes = self.accept(answer, json.decode(frame, type=Envelope).result)
        except ValueError as error:
            raise BrokenConnection(f"it does not answer initialize: {error}") from None
        finally:
            answer.close()
        if not self.id:
            raise BrokenConnection("it opens no session")
        for line in (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', *self._remembered.values()):
            (await self.post(connection, line)).close()
        was_first = self._is_first
        self._is_first = False
        return [] if was_first else changes
