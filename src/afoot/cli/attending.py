"""Approvals decided in place while everything is watched: the oldest first, one at a time."""

import sys
from collections.abc import Callable
from typing import Any

from afoot.cli.client import Client, part
from afoot.cli.ending import Stop
from afoot.cli.form import Ask, Declined
from afoot.cli.pump import Pump, StopAsking
from afoot.cli.review import case_of, decide
from afoot.cli.wall import Wall
from afoot.observe import terminal
from afoot.wire.sse import Event


def attend(client: Client, wall: Wall, pump: "Pump[Event]") -> None:
    """Show what happens, and have the person decide what waits for it, until the stream ends."""
    passed: set[str] = set()  # left for others
    while True:
        for event in pump.take():
            if event is None:
                return
            wall.track(event)
            wall.show(event)
        while asked := next((one for one in wall.waiting if one not in passed), None):
            passed.add(asked)
            _review(client, wall, pump, asked)


def _review(client: Client, wall: Wall, pump: "Pump[Event]", name: str) -> None:
    found: list[dict[str, Any]] = client.get("/api/questions")["questions"]
    asked = next((one for one in found if one["id"] == name), None)
    if asked is None:  # somebody was faster
        wall.waiting.pop(name, None)
        return
    held: list[Event] = []

    def hold(event: Event | None) -> None:
        if event is not None:
            held.append(event)
            wall.track(event)

    wall.pause()
    _say(f"{terminal.short(asked['call'])} asks: {terminal.clean(asked['message'])}")
    pump.forget()
    _decide(client, asked, _asker(pump, lambda: name in wall.waiting, hold))
    wall.waiting.pop(name, None)
    wall.resume()
    for event in held:
        wall.show(event)


def _decide(client: Client, asked: dict[str, Any], ask: Ask) -> None:
    name, call = asked["id"], terminal.short(asked["call"])
    _say("(Ctrl-D leaves it to others)")
    try:
        content = decide(case_of(asked), ask, _say)
        client.post(f"/api/questions/{part(name)}/answer", {"content": content})
        _say(f"{call}: {content['decision']}")
    except Declined:
        _say(f"left; answer it with: afoot answer {terminal.short_question(name)}")
    except StopAsking:
        _say("\n(somebody else has settled it)")
    except Stop as stop:
        if not stop.more.get("status"):
            raise
        _say(terminal.clean(stop.message))


def _asker(pump: "Pump[Event]", is_open: Callable[[], bool], hold: Callable[[Event | None], None]) -> Ask:
    def ask(prompt: str) -> str | None:
        print(prompt, end="", file=sys.stderr, flush=True)
        line = pump.line(is_open, hold)
        if line is None:
            _say("")
        return line

    return ask


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
