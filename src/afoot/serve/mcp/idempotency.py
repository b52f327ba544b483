"""`call_of_key` finds the call of an idempotency key, so that no second one is opened (X3, D2).

`abandoned_twin` finds a call that a new request without a key may join.
"""

from hmac import compare_digest

from afoot.core.facts import Opened
from afoot.core.ports import Tool
from afoot.core.redaction import redacted_pointers
from afoot.engine.catalog import is_call_of
from afoot.engine.live_call import LiveCall
from afoot.engine.recovery import load_call_by_key
from afoot.errors import StoreError
from afoot.serve.access.guard import LOCAL_CALLER
from afoot.serve.caller_presence import is_detached, known_requests
from afoot.serve.gateway_state import GatewayState
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Fault
from afoot.wire.results import ErrorMeta, ToolCall
from afoot.wire.sealed_state import arguments_mac, request_digest

RETRY_S = 5.0  # after which a caller may come again when the history cannot be read


async def call_of_key(gateway: GatewayState, tool_call: ToolCall, caller: str) -> LiveCall | None:
    """Return the call that this caller opened with this key; None if there is none.

    Raises Fault if the key was used for something else, and where the history cannot be read and a second
    call might do harm (U4).
    """
    live = await _find(gateway, tool_call, caller)
    if live is None:
        return None
    tool = gateway.tool(tool_call.name)
    if tool is None and _had_name(live.call.opened, tool_call.name):
        tool = live.tool
    if tool is None or not _is_same(gateway, live, tool_call, tool):
        raise Fault(
            INVALID_PARAMS,
            "params._meta.dev.afoot/idempotency: this key was used for another tool or other arguments",
            status=200,
        )
    return live


def abandoned_twin(gateway: GatewayState, tool_call: ToolCall, tool: Tool, caller: str) -> LiveCall | None:
    """Return a call of the same caller, tool and arguments that runs for nobody any more.

    Only a call that outlives its caller is joined: leaving any other would end it for whoever has it as a
    task or by its handle.
    """
    now = gateway.engine.clock.now()
    for live in gateway.engine.own_calls():  # only the owner of a call knows who follows it
        call = live.call
        is_joinable = (
            live.tool.on_disconnect == "detach"
            and call.opened.parent is None
            and call.opened.caller == caller
            and call.end is None
            and call.cancel is None
        )
        if is_joinable and not _asks_its_caller(live) and is_detached(live, now):
            if _may_be_one_client(live, tool_call, caller) and _is_same(gateway, live, tool_call, tool):
                return live
    return None


def _may_be_one_client(live: LiveCall, tool_call: ToolCall, caller: str) -> bool:
    """Whether a request may come from the client that opened a call, as far as that is known (S3).

    All clients on loopback without a token and a session are one caller. Programs that name themselves
    differently are not one client. After a restart of the gateway nobody knows the name of the first.
    """
    if caller != LOCAL_CALLER or live.is_recovered:
        return True
    return (live.origin.client, live.origin.version) == (tool_call.client, tool_call.client_version)


async def _find(gateway: GatewayState, tool_call: ToolCall, caller: str) -> LiveCall | None:
    try:
        live = await load_call_by_key(gateway.engine, caller, tool_call.key)
    except StoreError:
        tool = gateway.tool(tool_call.name)
        if tool is None or (tool.trusted and (tool.idempotent or tool.read_only)):
            return None  # to run it twice does no harm
        text = "the history cannot be read, so nobody knows whether this key has a call; nothing was opened"
        meta = ErrorMeta("unavailable", "history_unreadable", True, RETRY_S)
        raise Fault(INTERNAL_ERROR, text, data={"dev.afoot/error": meta}, status=503) from None
    end = None if live is None else live.call.end
    is_past = end is not None and gateway.engine.clock.now() > end.at + gateway.settings.task_ttl_s
    return None if is_past else live


def _had_name(opened: Opened, name: str) -> bool:
    """Whether a tool that may be gone since had this name: its own, or one with its server."""
    own = opened.inner or opened.tool
    return name in (opened.tool, own, f"{opened.server}/{own}") or opened.tool == f"{opened.server}__{name}"


def _is_same(gateway: GatewayState, live: LiveCall, tool_call: ToolCall, tool: Tool) -> bool:
    """Whether a call was opened for this tool and these arguments, secrets included."""
    call = live.call
    opened = call.opened
    if not is_call_of(opened, tool):
        return False
    arguments = bytes(tool_call.arguments)
    if opened.arguments_mac:
        mac = arguments_mac(gateway.key, opened.caller, opened.key, arguments)
        return compare_digest(opened.arguments_mac, mac)
    if call.amended is None and not redacted_pointers(live.arguments):
        return request_digest("", bytes(live.arguments)) == request_digest("", arguments)
    if redacted_pointers(opened.arguments) and not opened.key:
        return False  # nobody can tell any more whether the secrets are the same
    # A call with a key and without `arguments_mac` is from an older history: its secrets all look the same.
    redacted = gateway.engine.redact_arguments(tool, tool_call.arguments)
    return request_digest("", bytes(opened.arguments)) == request_digest("", bytes(redacted))


def _asks_its_caller(live: LiveCall) -> bool:
    """Whether the caller may be asking its user now; after a restart nobody has come back to do so."""
    requests = known_requests(live)
    if requests is None and live.is_recovered:
        return False
    return bool(live.call.open) and live.can_ask
