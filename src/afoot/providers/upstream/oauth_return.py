"""Where a browser comes back to after a login: an address on this machine, for one visit (U7, S1)."""

import asyncio
import secrets
from contextlib import suppress
from html import escape
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from afoot.errors import CallerError, ToolError

WAIT_S: Final = 300.0
HEAD_S: Final = 10.0  # to send a request
HEAD_BYTES: Final = 16 * 1024
PATH: Final = "/callback"
PAGE: Final = (
    "<!doctype html><meta charset=utf-8><title>afoot</title>"
    "<body style='font:1.1em system-ui;margin:4em auto;max-width:32em'><p>{}</p>"
)
HEADERS: Final = (
    "content-type: text/html; charset=utf-8\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\n"
    "content-security-policy: default-src 'none'; style-src 'unsafe-inline'\r\nconnection: close\r\n"
)


class Visit(Struct, frozen=True):
    """What a browser brought."""

    code: str
    state: str
    issuer: str | None = None

    def __repr__(self) -> str:
        return "Visit()"


class Return:
    """Listens on 127.0.0.1. Only a visit with the right state counts, and only the first.

    Without a port it is the one of an earlier `redirect`, if that is free: servers may know it by that.
    """

    def __init__(self, port: int = 0, redirect: str = "") -> None:
        self.redirect = ""
        self._ports = [port] if port else [urlsplit(redirect).port or 0, 0]
        self._state = ""
        self._visit: asyncio.Future[Visit] | None = None
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._visit = asyncio.get_running_loop().create_future()
        why = ""
        for port in self._ports:
            try:
                self._server = await asyncio.start_server(self._answer, "127.0.0.1", port, limit=HEAD_BYTES)
                break
            except (OSError, OverflowError) as error:
                why = f"port {port} cannot be used to come back to: {error}"
        else:
            raise CallerError(why)
        self.redirect = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{PATH}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None and self._visit is not None
        self._server.close()
        if not self._visit.cancel() and not self._visit.cancelled():
            self._visit.exception()  # looked at, if the wait was over before it came

    def expect(self, state: str) -> None:
        """Take a visit with this state; before that there is none that counts."""
        self._state = state

    async def wait(self) -> Visit:
        """What the browser brings; raises ToolError if the person refused, or never came."""
        assert self._visit is not None
        try:
            async with asyncio.timeout(WAIT_S):
                return await self._visit
        except TimeoutError:
            raise ToolError.timeout(f"nobody logged in within {WAIT_S:g} s") from None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.LimitOverrunError, asyncio.IncompleteReadError):
            async with asyncio.timeout(HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._judge(head.split(b"\r\n", 1)[0].decode("latin-1"))
                body = PAGE.format(escape(text)).encode()
                lines = f"HTTP/1.1 {status} -\r\n{HEADERS}content-length: {len(body)}\r\n\r\n"
                writer.write(lines.encode() + body)
                await writer.drain()
        writer.close()

    def _judge(self, line: str) -> tuple[int, str]:
        """Take a visit or refuse it: a status, and what the person reads."""
        words = line.split(" ")
        if len(words) != 3 or words[0] != "GET" or urlsplit(words[1]).path != PATH:
            return 404, "There is nothing here."
        given = {key: values[0] for key, values in parse_qs(urlsplit(words[1]).query).items()}
        assert self._visit is not None
        if self._visit.done():
            return 410, "This login was used before. Nothing has changed."
        state = given.get("state", "")
        if not self._state or not secrets.compare_digest(state.encode(), self._state.encode()):
            return 400, "This does not belong to the login that is waited for. Nothing has changed."
        if "code" not in given:
            why = ": ".join(given[key] for key in ("error", "error_description") if key in given)
            self._visit.set_exception(ToolError.refused(f"the login was refused: {why[:300] or 'no code'}"))
            return 200, "The login was refused. You can close this window."
        self._visit.set_result(Visit(given["code"], state, given.get("iss")))
        return 200, "afoot goes on from here. You can close this window and go back."
