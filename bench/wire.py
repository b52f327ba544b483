"""`Wire` makes the bytes that the load client sends: one template per tool, filled with an id."""

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
ERAS = (MODERN, HANDSHAKE)
NOTE = b"notifications/progress"
FIRST = 100_000_000
"""Ids start here, so that all have nine digits and a template's Content-Length never changes."""
CLIENT = {"name": "bench", "version": "1"}
NONE: dict[str, object] = {}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": NONE,
    "io.modelcontextprotocol/clientInfo": CLIENT,
}
INITIALIZE = {"protocolVersion": HANDSHAKE, "capabilities": NONE, "clientInfo": CLIENT}
FAILED = re.compile(rb'"isError": ?true|"error": ?\{')


class BenchError(Exception):
    """A server did not start, or answered what the bench did not ask for."""


@dataclass(frozen=True, slots=True)
class Template:
    """A request in pieces; its id, which is also its progress token, goes between them."""

    pieces: tuple[bytes, ...]

    def fill(self, number: int) -> bytes:
        """Return the request with this id."""
        return (b"%d" % number).join(self.pieces)


@dataclass(slots=True)
class Wire:
    """Builds requests for one transport and era; `session` is set by the handshake on HTTP."""

    era: str
    port: int | None = None
    session: str | None = None
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(FIRST))

    def call(self, tool: str, arguments: Mapping[str, float], token: bool) -> Template:
        """Return the template of a `tools/call`."""
        meta: dict[str, object] = dict(META) if self.era == MODERN else {}
        if token:
            meta["progressToken"] = FIRST
        params: dict[str, object] = {"name": tool, "arguments": dict(arguments)}
        if meta:
            params["_meta"] = meta
        return self.request("tools/call", params)

    def request(self, method: str, params: Mapping[str, object], notice: bool = False) -> Template:
        """Return the template of a request, or of a notification, which has no id."""
        message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": params}
        if not notice:
            message["id"] = FIRST
        body = json.dumps(message, separators=(",", ":")).encode()
        whole = body + b"\n" if self.port is None else self._head(method, params, len(body)) + body
        return Template(tuple(whole.split(b"%d" % FIRST)))

    def _head(self, method: str, params: Mapping[str, object], length: int) -> bytes:
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {length}",
        ]
        if method != "initialize":
            lines.append(f"MCP-Protocol-Version: {self.era}")
        if self.era == MODERN:
            lines.append(f"Mcp-Method: {method}")
            lines.append(f"Mcp-Name: {params['name']}")
        elif self.session is not None:
            lines.append(f"Mcp-Session-Id: {self.session}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


def text_of(answer: bytes) -> str:
    """Return the text of a tool's result; raises BenchError if it has none."""
    try:
        return str(json.loads(answer)["result"]["content"][0]["text"])
    except (ValueError, KeyError, IndexError) as error:
        raise BenchError(f"no result of a tool: {answer[:300]!r}") from error
