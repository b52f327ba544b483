"""`PendingRequests` are the requests of one client that have no answer yet, so that each can be cancelled."""

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import UNSET, Struct

from afoot.engine.followers import Wakeup
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.call_request import CallRequest
from afoot.serve.mcp.streams import ResponseStream
from afoot.wire.jsonrpc import INVALID_REQUEST, Fault, Id
from afoot.wire.results import ToolCall

CANCELLED = "the caller cancelled it"


class PendingRequests(Struct, eq=False):
    """Requests by their id: those that follow a call, and those without a call, or without one yet."""

    gateway: GatewayState
    calls: dict[Id, CallRequest] = {}
    wakeups: dict[Id, Wakeup] = {}  # closed when their request is cancelled

    def check_is_free(self, request_id: Id) -> None:
        """Check that no other request has this id; raises Fault."""
        if request_id in self.calls or request_id in self.wakeups:
            raise id_in_use(request_id)

    @contextmanager
    def without_call(self, request_id: Id) -> Iterator[Wakeup]:
        """Give a request that follows no call a wakeup, which is closed if the request is cancelled."""
        wakeup = self.wakeups[request_id] = Wakeup()
        try:
            yield wakeup
        finally:
            self.wakeups.pop(request_id, None)

    async def are_servers_ready(self, request_id: Id, stream: ResponseStream, *, stays: bool) -> bool:
        """Wait for servers that are being opened; False if the request was cancelled meanwhile (X1).

        Its caller's leaving counts as a cancel, unless the caller `stays` without a stream.
        """
        with self.without_call(request_id) as wakeup:
            stream.watch(wakeup.wake)
            await self.gateway.wait_until_servers_ready()
        return not (wakeup.closed or (stream.gone and not stays))

    def drop_token_in_use(self, tool_call: ToolCall, others: set[Id] | frozenset[Id] = frozenset()) -> None:
        """Serve a call without progress if its token is in use, or one of `others`: it would be ambiguous."""
        token = tool_call.token
        if token is UNSET:
            return
        if token in others or any(request.tool_call.token == token for request in self.calls.values()):
            self.gateway.count("tokens used twice")
            tool_call.token = UNSET

    def cancel(self, request_id: Id, reason: str | None) -> bool:
        """Cancel a request as its caller wants; False if there is none of this id."""
        if request_id in self.wakeups:
            self.wakeups[request_id].close()
            return True
        request = self.calls.get(request_id)
        if request is not None:
            self.gateway.client_limits.learn_from_cancel(
                request.tool_call.client, reason or "", request.age_s
            )
            request.cancel("caller", reason or CANCELLED)
        return request is not None

    def end_without_call(self) -> None:
        """End every request that follows no call, because its client has left."""
        for wakeup in self.wakeups.values():
            wakeup.close()


def id_in_use(request_id: Id) -> Fault:
    """The answer to a request whose id another one has."""
    return Fault(INVALID_REQUEST, f"id: {request_id!r} is the id of a request that still runs")
