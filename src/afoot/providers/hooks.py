"""Hooks: what somebody else wants to know of calls, or has a say in before they start (K1)."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Raw

from afoot.config import Hook
from afoot.core.call import Call
from afoot.core.facts import Finished, Question, Reading
from afoot.core.ports import Tool
from afoot.errors import ToolError
from afoot.providers.hooks_run import BEFORE, MOST_BYTES, Attached, HookFailed, Said

Event = dict[str, Any]
log = logging.getLogger("afoot.hooks")


class Hooks:
    """The hooks in force. `counted` tells what became of them: run, failed, refused, amended, dropped."""

    def __init__(self, hooks: Sequence[Hook]) -> None:
        self._by_event: dict[str, list[Attached]] = {}
        for hook in hooks:
            self._by_event.setdefault(hook.on, []).append(Attached(hook))
        self.counted: Counter[str] = Counter()
        self.tell: Callable[[str, str], object] = lambda call, text: None  # a line for the log of a call

    def load(self) -> None:
        """Find the functions. One that cannot be found fails each time; a required one then refuses."""
        for one in (one for some in self._by_event.values() for one in some):
            try:
                one.load()
            except HookFailed as error:
                log.error("%s %s", one.name, error, exc_info=error.__cause__)

    def has(self, on: str) -> bool:
        """Whether anybody wants to know of this."""
        return on in self._by_event

    def of(self, on: str, tool: Tool) -> list[Attached]:
        """Who wants to know this of this tool, in the order of the settings."""
        return [one for one in self._by_event.get(on, ()) if one.wants(tool)]

    async def before(self, call: Call, tool: Tool) -> Raw | None:
        """Ask those who have a say, each with what the one before made of the arguments (`core.ports.Hooks`).

        None: nobody changed them. Raises ToolError.refused.
        """
        arguments = call.arguments
        for one in self.of(BEFORE, tool):
            said = await self._asked(one, call, told(BEFORE, call, arguments))
            if said.refusal is not None:
                self.counted["refused"] += 1
                text = f"{tool.name} was not run: a hook refused it: {said.refusal}"
                raise ToolError.refused(text, code="hook_refused")
            if said.changed:
                self.counted["amended"] += 1
                arguments = said.changed
        return None if arguments is call.arguments else arguments

    async def _asked(self, one: Attached, call: Call, event: Event) -> Said:
        """What it says; one that fails says nothing, unless it must be heard."""
        try:
            said = await one.run(event)
        except HookFailed as error:
            self.failed(one, call.id, error)
            if not one.hook.required:
                return Said()
            text = f"{call.opened.tool} was not run: the required {one.name} {error}"
            raise ToolError.refused(text, code="hook_failed") from None
        self.counted["run"] += 1
        return said

    async def show(self, one: Attached, call: str, event: Event) -> None:
        """Run a hook that only looks on; its failure is told, and hurts nobody."""
        try:
            await one.run(event)
        except HookFailed as error:
            self.failed(one, call, error)
        else:
            self.counted["run"] += 1

    def failed(self, one: Attached, call: str, error: HookFailed) -> None:
        """Say that a hook failed: in the log, in the count, and in the log of its call."""
        self.counted["failed"] += 1
        log.warning("call %s: %s %s", call, one.name, error)
        self.tell(call, f"{one.name} {error}")


def told(on: str, call: Call, arguments: Raw | None = None) -> Event:
    """What every hook is told of a call."""
    opened = call.opened
    about = {"id": call.id, "tool": opened.tool, "server": opened.server, "caller": opened.caller}
    if opened.parent is not None:
        about["parent"] = opened.parent
    return {"hook": on, "call": about, "arguments": (arguments or call.arguments) or Raw(b"{}")}


def told_progress(call: Call, reading: Reading) -> Event:
    """What a hook is told of a report, as the tool said it."""
    numbers = {"progress": reading.progress, "total": reading.total, "message": reading.message}
    return told("on_progress", call) | numbers


def told_question(call: Call, question: Question) -> Event:
    """What a hook is told of a question."""
    return told("on_question", call) | {"question": question}


def told_end(on: str, call: Call, end: Finished) -> Event:
    """What a hook is told of an end; `duration_s` counts from the tool's start."""
    began = end.at if call.started is None else call.started
    event = told(on, call) | {"outcome": end.outcome, "duration_s": round(end.at - began, 6)}
    if end.failure is not None:
        event["failure"] = end.failure
    if end.result is not None:
        size = len(bytes(end.result.content)) + len(bytes(end.result.structured))
        # What waits to be told must not fill the memory.
        event |= {"result": end.result} if size <= MOST_BYTES else {"result_bytes": size}
    return event
