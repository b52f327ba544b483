"""`McpHttp` serves MCP over HTTP: it finds the caller and the era of a request, which gets one answer."""

from collections.abc import Callable

from afoot.core.ports import CallOrigin
from afoot.errors import AfootError
from afoot.serve.access.guard import (
    ANONYMOUS,
    IDENTITY_HEADERS,
    LOCAL_CALLER,
    Denied,
    Guard,
    challenge_headers,
    is_bridge,
)
from afoot.serve.access.principal import CALL, Principal
from afoot.serve.access.tokens import OpenRequest
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import (
    HttpResponse,
    Receive,
    Scope,
    Send,
    check_duplicate_headers,
    header,
    read_json,
)
from afoot.serve.mcp.era_2026 import Era2026
from afoot.serve.mcp.pending import PendingRequests
from afoot.serve.mcp.sessions_2025 import Sessions2025
from afoot.wire import framing, mcp_2025, mcp_2026, results
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, Fault
from afoot.wire.results import ToolCall

METHODS = b"GET, POST, DELETE"


class McpHttp:
    """The ASGI application of `/mcp`."""

    def __init__(self, gateway: GatewayState, guard: Guard, sessions: Sessions2025) -> None:
        self._gateway = gateway
        self._guard = guard
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in ("HEAD", "OPTIONS"):
            return await self._answer_without_caller(scope, send)
        guard, reply = self._guard, HttpResponse(send, self._gateway.settings.stuck_s, (), receive)
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        try:
            is_open = headers.get("host") in guard.hosts and not guard.is_closed and not guard.mcp_token
            if is_open and IDENTITY_HEADERS.isdisjoint(headers) and guard.is_open_to(scope):
                who = ANONYMOUS
            else:
                if headers.get("origin") in guard.origins:
                    reply.headers = _cors_headers(headers["origin"])
                who = await guard.identify_caller(scope, reply)
            caller = who.caller
            if who is not ANONYMOUS or self._gateway.settings.tool_headers:
                reply.origin = self._origin(who, headers)
            if headers.get("mcp-protocol-version", mcp_2025.LATEST) in mcp_2025.VERSIONS:
                serving = self._sessions.serve(scope["method"], headers, receive, reply, caller)
                del headers  # a call may wait long, and they are 1.1 KB; the frames below drop theirs, too
                await serving
            elif scope["method"] != "POST":
                await reply.json(405, b"", (b"allow", b"POST"))
            else:
                serving = self._post(scope, headers, receive, reply, caller)
                del headers
                await serving
        except Fault as fault:
            lacking = Denied(fault.status, fault.message, " ".join((CALL, *fault.missing_scopes)))
            challenge = challenge_headers(guard, lacking) if fault.missing_scopes else ()
            await reply.json(fault.status, results.error_response(fault), *challenge)
        except Denied as error:
            told = results.error_response(Fault(INVALID_REQUEST, str(error)))
            await reply.json(error.status, told, *challenge_headers(guard, error))
        except AfootError as error:
            await reply.json(503, results.error_response(Fault(INTERNAL_ERROR, str(error)), reply.request_id))
        except ConnectionResetError:
            pass  # the caller left before it had said everything
        finally:
            reply.unwatch()
            if reply.leave is not None:
                await self._end_response(reply, reply.leave)

    def _origin(self, who: Principal, headers: dict[str, str]) -> CallOrigin:
        surface = "mcp-connect" if is_bridge(who.caller) else "mcp-http"
        return who.origin(surface, self._gateway.headers_for_tools(headers), self._gateway.engine.redactor)

    async def _end_response(self, reply: HttpResponse, leave: Callable[[OpenRequest], None]) -> None:
        """Take note that the request is answered; if its token has ended, say why it ends early."""
        leave(reply)
        if reply.is_complete or not reply.denied:
            return
        fault = Fault(INVALID_REQUEST, reply.denied)
        fault.id = reply.request_id
        if not reply.streaming:
            await reply.json(
                401, results.error_response(fault), *challenge_headers(self._guard, Denied(401, reply.denied))
            )
        elif fault.id is not None:
            await reply.send([results.error_response(fault)], more=False)
        else:  # the handshake era goes on with a stream that just ends
            await reply.send((), raw=framing.comment_frame(reply.denied), more=False)

    async def _answer_without_caller(self, scope: Scope, send: Send) -> None:
        """Answer a browser that asks whether a page may use this, and refuse everything else.

        After a HEAD the connection ends, as its client would wait for the body of such an answer.
        """
        reply = HttpResponse(send, self._gateway.settings.stuck_s)
        origin = (header(scope, b"origin") or b"").decode("latin-1")
        if scope["method"] == "HEAD":
            await reply.json(405, b"", (b"allow", METHODS), (b"connection", b"close"))
        elif origin in self._guard.origins:
            wanted = header(scope, b"access-control-request-headers") or b""
            allowed = (b"access-control-allow-methods", METHODS), (b"access-control-allow-headers", wanted)
            await reply.json(204, b"", *_cors_headers(origin), *allowed, (b"access-control-max-age", b"600"))
        else:
            await reply.json(405, b"", (b"allow", METHODS))

    async def _post(
        self, scope: Scope, headers: dict[str, str], receive: Receive, reply: HttpResponse, caller: str
    ) -> None:
        """Serve one request of 2026-07-28."""
        body = await read_json(headers, receive, self._gateway.settings.max_body_bytes)
        if reply.denied:  # it may have waited long with the rest of it
            raise ConnectionResetError
        asked = mcp_2026.read(body, headers)
        del body
        if len(headers) != len(scope["headers"]):
            check_duplicate_headers(scope, asked.id)
        is_call = isinstance(asked, ToolCall)
        if not is_call and asked.is_notification:
            return await self._take_notification(headers, reply)
        if not is_call and asked.is_response:
            raise Fault(INVALID_REQUEST, "a response is no request; send answers as inputResponses")
        is_bridged = caller != LOCAL_CALLER and is_bridge(caller)
        # Behind a bridge is a pipe, which takes a line of any length.
        era = Era2026(PendingRequests(self._gateway), caller, capped=not is_bridged)
        assert isinstance(asked.id, int | str)
        reply.request_id = asked.id
        try:
            if is_call:
                # A bridge knows no schema to mirror arguments by, so no headers are compared for it. At
                # `until` the request ends: the next one comes with a newer token.
                serving = era.call(asked, reply, None if is_bridged else headers, reply.until)
                del headers
                await serving
            else:
                await era.request(asked, reply, headers)
        except Fault as fault:
            fault.id = asked.id
            raise

    async def _take_notification(self, headers: dict[str, str], reply: HttpResponse) -> None:
        """Drop a notification: this era has none that a client sends over HTTP."""
        version = headers.get("mcp-protocol-version", "")
        if version != mcp_2026.VERSION:
            raise mcp_2026.unsupported_version(version)
        await reply.json(202, b"")


def _cors_headers(origin: str) -> tuple[tuple[bytes, bytes], ...]:
    """The headers by which a browser lets a page of this origin read a response."""
    return (
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", b"mcp-session-id, www-authenticate"),
        (b"vary", b"origin"),
    )
