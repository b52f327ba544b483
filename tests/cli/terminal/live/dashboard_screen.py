"""A gateway to watch, and a hand and an eye for the table of `afoot watch`."""

import re
import time
from pathlib import Path
from uuid import uuid4

from tests.cli.pseudo_terminal import Terminal
from tests.e2e.gateway import Gateway
from tests.serve.api_client import Api

FORM = '''
import asyncio
import afoot

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "size": {"type": "string", "enum": ["small", "large"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
    },
    "required": ["name", "size"],
}


@afoot.tool
async def order(ctx: afoot.Context) -> dict[str, object]:
    """Order."""
    answer = await ctx.ask("What shall it be?", SCHEMA)
    return {"action": answer.action, "content": answer.content}


@afoot.tool
async def child(ctx: afoot.Context) -> str:
    """Runs until it is cancelled."""
    ctx.report(1, 2, "below")
    await asyncio.sleep(60)
    return "done"


@afoot.tool
async def parent(n: int, ctx: afoot.Context) -> str:
    """Calls many."""
    await asyncio.gather(*(ctx.call("child", {}) for _ in range(n)))
    return "done"


@afoot.tool(idle=2)
async def hush() -> str:
    """Says nothing."""
    await asyncio.sleep(60)
    return "done"


@afoot.tool
async def broad(ctx: afoot.Context) -> str:
    """Says what takes two columns a character."""
    ctx.report(1, 3, "漢字" * 100)
    await asyncio.sleep(60)
    return "done"


@afoot.tool
async def nasty(ctx: afoot.Context) -> str:
    """Says what could steer a terminal."""
    nasty = "a\\x1b[2Jb\\x1b]0;owned\\x07c\\u202ed\\u200be\\rf\\ng"
    await ctx.ask(nasty, {"type": "object", "properties": {"n": {"type": "string", "description": nasty}}})
    raise afoot.ToolError.internal(nasty)
'''


class Here(Gateway):
    """A gateway with tools of this file, too."""

    def command(self, *surface: str) -> list[str]:
        words = super().command(*surface)
        return [*words[:4], str(self.folder / "more.py"), *words[4:]]


class fresh:
    """A gateway of one's own, ended with the block."""

    def __init__(self, folder: Path, settings: dict[str, object] | None = None) -> None:
        (folder / "more.py").write_text(FORM)
        self.gateway = Here(folder, {"drain_s": 0.2, "cancel_grace_s": 1, **(settings or {})})

    def __enter__(self) -> Gateway:
        self.gateway.start()
        return self.gateway

    def __exit__(self, *_: object) -> None:
        self.gateway.stop()


def tag() -> str:
    """A tag that no other test uses."""
    return f"mark-{uuid4().hex}"


def row(shown: str, call: str) -> str:
    """The line of a call in the table; nothing if it has none."""
    found = [line for line in shown.split("\n") if call[-8:] in line and not line[0].isdecimal()]
    return found[0] if found else ""


def key_of(shown: str, call: str) -> str:
    """The key that answers the question of a call; nothing if it does not wait."""
    found = re.search(r" key (\d) ", row(shown, call))
    return found[1] if found else ""


def choose(screen: Terminal, call: str) -> None:
    """Press the key of a call's question."""
    screen.see(lambda shown: key_of(shown, call) != "")
    screen.type(key_of(screen.shown, call))
    screen.see(f"{call[-8:]} ")
    screen.see("Esc leaves it to others")


def decide(screen: Terminal, answer: str) -> None:
    """Type an answer to an approval, once keys count."""
    until_taken(screen, answer)
    screen.type("\n")


def until_taken(screen: Terminal, text: str) -> None:
    """Type until it stands behind the prompt: for a moment keys that came too early are dropped."""
    end = time.monotonic() + 10
    while not re.search(rf"a\)lways: {text}$", screen.shown, re.MULTILINE):
        assert time.monotonic() < end, screen.shown
        screen.type("\x15" + text)
        screen.wait(0.2)


def cancel(api: Api, *calls: str) -> None:
    """End what a test began."""
    for call in calls:
        api.post(f"/api/calls/{call}/cancel", {})
        api.ended(call)
