"""`run_handle_tool` runs the tools by which a caller finds a call again that it could not wait for (H5).

`client_timeout` says how long a caller waits for an answer. A caller with such a limit also sees three tools
of ours: one waits for a call that was handed over, one lists the caller's calls, one cancels a call. None of
them is a call of its own: a request that waits follows the call itself, as a retry does.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from math import inf
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct, json

from afoot.core.ports import CallQuery, CallRow
from afoot.engine.catalog import DETACHED_HINT
from afoot.engine.live_call import LiveCall
from afoot.errors import ToolError, UnknownName
from afoot.serve.access.guard import LOCAL_CALLER, STDIO_CALLER
from afoot.serve.gateway_state import GatewayState
from afoot.wire.handle_tools import (
    CALL_KEY,
    CALLS,
    CANCEL,
    NO_FIELDS,
    TOOLS,
    WAIT,
    progress_phrase,
    with_handle_output,
)
from afoot.wire.jsonrpc import validation_message
from afoot.wire.results import CallBudget, Seconds, ToolCall, place_of_answer

TIMEOUT_SHARE = 0.75  # of the caller's limit; the rest is for the way back
# Hosts whose limit stands still while a form of ours is open.
PAUSED_BY_FORMS = ("codex-mcp-client",)
CLIENT_NAME_MAX = 100  # characters of a client's name that are looked at
RECENT_S = 3600.0  # how long a call that has ended is listed
MAX_ENDED = 20  # of those
_DETACHED_NOTE = DETACHED_HINT.encode()

T = TypeVar("T")


class HandleText(Struct, frozen=True):
    """The answer of a handle tool that follows no call."""

    text: str
    fields: Mapping[str, object] = NO_FIELDS  # the same for programs


class HandleWait(Struct, frozen=True):
    """The call that a request is to follow now, and for how many seconds at most."""

    live: LiveCall
    seconds: float | None


class _WaitArguments(Struct, forbid_unknown_fields=True):
    call: str
    seconds: Seconds | None = None


class _CallsArguments(Struct, forbid_unknown_fields=True):
    pass


class _CancelArguments(Struct, forbid_unknown_fields=True):
    call: str
    reason: str = ""


def client_timeout(gateway: GatewayState, budget: CallBudget, client: str) -> float:
    """Seconds that this caller waits for an answer, by its own word or its name; else as long as it takes."""
    if budget.wait_s is not None:
        return budget.wait_s or inf
    return gateway.client_limits.limit_s(gateway.settings, client)


def is_paused_by_forms(client: str) -> bool:
    """Whether the limit of this client stands still while a form is open at it."""
    return any(fnmatchcase(client[:CLIENT_NAME_MAX].lower(), pattern) for pattern in PAUSED_BY_FORMS)


def tools_for_timeout(tools: Iterable[Raw], limit_s: float) -> list[Raw]:
    """The tools as a caller with this limit sees them: each may end in a handle.

    A caller without a limit sees the handle tools only where a call may outlive it: somebody must be able to
    stop such a call (X3).
    """
    tools = list(tools)
    if limit_s == inf:
        is_lasting = any(_DETACHED_NOTE in one for one in map(bytes, tools))
        return [*tools, *TOOLS.values()] if is_lasting else tools
    return [*(with_handle_output(bytes(one)) for one in tools), *TOOLS.values()]


def is_handle_tool(name: str) -> bool:
    """Whether this is one of our three tools; nobody else can offer one of that name (U12)."""
    return name in _HANDLE_TOOLS


async def run_handle_tool(gateway: GatewayState, tool_call: ToolCall, caller: str) -> HandleText | HandleWait:
    """Run one of our three tools for this caller; raises ToolError."""
    return await _HANDLE_TOOLS[tool_call.name](gateway, tool_call, caller)


async def _wait(gateway: GatewayState, tool_call: ToolCall, caller: str) -> HandleWait:
    """Follow a call from here on, for so long at most."""
    asked = read_arguments(tool_call, _WaitArguments)
    return HandleWait(await find_own_call(gateway, asked.call, caller), asked.seconds)


async def _calls(gateway: GatewayState, tool_call: ToolCall, caller: str) -> HandleText:
    """List the caller's calls that live, and those that ended lately and may have been handed over."""
    read_arguments(tool_call, _CallsArguments)
    if caller == LOCAL_CALLER:  # whoever asks may be somebody else (S3)
        return HandleText(
            "Calls are not listed here, as callers cannot be told apart. Use the id that you were given."
        )
    now = gateway.engine.clock.now()
    lines: dict[str, str] = {}
    for live in gateway.engine.calls():
        call = live.call
        if call.opened.caller == caller and not call.is_finished:
            where = place_of_answer(call, tool_call.capabilities, gateway.engine.policy.console)
            phrase = progress_phrase(call, now, live.heard, where)
            lines[call.id] = f"{call.id}: {call.opened.tool}{phrase}"
    for row in await _recently_ended(gateway, tool_call, caller, now):
        lines[row.id] = f"{row.id}: {row.tool}, ended: {row.outcome}"
    text = "\n".join(lines.values()) or "None of your calls still runs, and no long one ended lately."
    return HandleText(text, {"calls": list(lines)})


async def _recently_ended(
    gateway: GatewayState, tool_call: ToolCall, caller: str, now: float
) -> list[CallRow]:
    """The newest of the caller's calls that took long enough to be handed over, and ended lately."""
    rows = await gateway.engine.journal.find(CallQuery(state="finished", caller=caller, limit=200))
    limit_s = client_timeout(gateway, tool_call.budget, tool_call.client)
    least_s = 0.0 if limit_s == inf else TIMEOUT_SHARE * limit_s
    found = [
        row
        for row in rows
        if row.finished is not None
        and now - row.finished <= RECENT_S
        and row.finished - row.opened >= least_s
    ]
    if caller == STDIO_CALLER:  # another process was another caller, and left its calls under the same name
        found = [row for row in found if row.opened >= gateway.started_at]
    return found[:MAX_ENDED]


async def _cancel(gateway: GatewayState, tool_call: ToolCall, caller: str) -> HandleText:
    """Ask a call to stop."""
    asked = read_arguments(tool_call, _CancelArguments)
    live = await find_own_call(gateway, asked.call, caller)
    call = live.call
    if call.end is not None:
        return HandleText(f"Call {call.id} is over already: {call.end.outcome}.")
    gateway.engine.cancel(live, "caller", asked.reason or "the caller cancelled it")
    await gateway.wait_until_recorded()
    return HandleText(
        f"Call {call.id} of tool {call.opened.tool} was told to stop; {WAIT} tells how it ended."
    )


_HANDLE_TOOLS: dict[str, Callable[[GatewayState, ToolCall, str], Awaitable[HandleText | HandleWait]]] = {
    WAIT: _wait,
    CALLS: _calls,
    CANCEL: _cancel,
}


def read_arguments(tool_call: ToolCall, kind: type[T]) -> T:
    """The arguments of a tool of the gateway's own; raises ToolError."""
    try:
        return json.decode(tool_call.arguments, type=kind)
    except msgspec.ValidationError as error:
        raise ToolError.validation(validation_message(error, "arguments")) from None
    except RecursionError:
        raise ToolError.validation("arguments: nested too deep") from None


async def find_own_call(gateway: GatewayState, call_id: str, caller: str) -> LiveCall:
    """A call of this caller's own; raises ToolError, which does not say whether somebody else has it."""
    try:
        return await gateway.own_call(call_id, caller)
    except UnknownName:
        raise ToolError.not_found(
            f"no call {call_id!r} of yours is known; the id is the one in {CALL_KEY}"
        ) from None
