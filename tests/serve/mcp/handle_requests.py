"""Calls that are handed over, and requests about them."""

import asyncio
from typing import Any

from msgspec import Raw, json

from afoot.core.facts import Limits, Result
from afoot.core.ports import Run
from afoot.serve.gateway_state import GatewayState
from afoot.wire.results import CallBudget, Capabilities, ToolCall
from tests.engine.fake_engine import Body, text
from tests.serve.fake_gateway import Message, Tape, call_request, wanted

BRIEF = CallBudget(wait_s=4)  # so that each request is answered within three seconds
MUTE = Capabilities()
LASTING = Limits(idle_s=None)  # of a tool that says nothing for long


def sleeping(seconds: float) -> Body:
    """A tool that takes so long and says nothing."""

    async def tool(run: Run) -> Result:
        await asyncio.sleep(seconds)
        return text("slept")

    return tool


async def handed(gateway: GatewayState, **parts: Any) -> str:
    """A call that runs on after its caller got a handle; its id."""
    tape = await call_request(gateway, wanted(budget=BRIEF, capabilities=MUTE, **parts))
    return str(tape.result["structuredContent"]["afoot_call"])


def tool_request(name: str, arguments: Message | None = None, **parts: Any) -> ToolCall:
    """A request to one of the three tools, by a caller that gets no rounds."""
    usual: dict[str, Any] = {"budget": BRIEF, "capabilities": MUTE}
    return wanted(name=name, arguments=Raw(json.encode(arguments or {})), **{**usual, **parts})


def wait(call_id: str, **parts: Any) -> ToolCall:
    """A request to wait."""
    seconds = {"seconds": parts.pop("seconds")} if "seconds" in parts else {}
    return tool_request("afoot_wait", {"call": call_id, **seconds}, **parts)


def words(tape: Tape) -> str:
    """The text of its result."""
    return str(tape.result["content"][0]["text"])
