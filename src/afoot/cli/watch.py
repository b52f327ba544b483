"""`afoot watch`: everything live, or one call to its end; leaving it changes nothing."""

import json as json_module
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from afoot.cli.calls import At, Json, dumped
from afoot.cli.canvas import Canvas, is_terminal
from afoot.cli.client import Client, connect, events, part
from afoot.cli.ending import LOST, Stop
from afoot.cli.pump import Pump
from afoot.cli.wall import Lines
from afoot.wire.sse import Event

if TYPE_CHECKING:
    from afoot.cli.board import Away

RETRY_S = 5.0


def watch(call: str = "", /, *, at: At = "", json: Json = False) -> int:
    """Watch all calls live, or one call to its end; Ctrl-C leaves, and cancels nothing.

    Args:
        call: the call's id, or its end; without it everything is shown
    """
    client = connect(at)
    if call:
        return _one(client, call, json)
    try:
        if json:
            for event in _heard(client):
                print(dumped({"event": event.event, **json_module.loads(event.data)}), flush=True)
        else:
            _everything(client, at)
    except KeyboardInterrupt:
        return 0
    return 0


def _one(client: Client, call: str, as_json: bool) -> int:
    from afoot.cli.call import Following
    from afoot.cli.desk import Remote
    from afoot.cli.screen import closing, screen

    found = client.get(f"/api/calls/{part(call)}")
    desk = Remote(client)
    with closing(screen(as_json)) as shown:
        following = Following(desk, shown, can_ask=sys.stdin.isatty() and not as_json)
        following.cancels = False
        return following.run(desk.follow(found["id"]))


def _everything(client: Client, at: str) -> None:
    if not is_terminal(sys.stdout):
        lines = Lines()
        for event in _heard(client):
            lines.show(event)
        return
    from afoot.cli.attending import attend
    from afoot.cli.board import Board, board
    from afoot.cli.keyboard import Keyboard

    def make(stack: ExitStack) -> Board:
        pump = stack.enter_context(Pump(lambda: _always(at)))
        keys = stack.enter_context(Keyboard()) if sys.stdin.isatty() else None
        return Board(stack.enter_context(Canvas(sys.stdout)), keys, pump, client.url)

    with board(make) as made:
        attend(made, at)


def _always(at: str) -> "Iterator[Event | Away]":
    """Everything that happens, for ever: a gateway that goes is waited for, wherever it comes back."""
    from afoot.cli.board import Away

    last = ""
    while True:
        try:
            response = connect(at).open("GET", "/api/events", last=last)
            yield Away("")
            for event in events(response):
                last = event.id or last
                yield event
        except Stop as stop:
            if not last or stop.more.get("status", 503) not in (500, 503):
                raise
        yield Away("the gateway does not answer; trying again")
        time.sleep(0.3)


def _heard(client: Client) -> Iterator[Event]:
    """Everything that happens, read beside: Ctrl-C just before a read would wait for what comes next."""
    with Pump(lambda: _feed(client)) as pump:
        while True:
            for event in pump.take():
                if event is None:
                    return
                yield event


def _feed(client: Client) -> Iterator[Event]:
    """Everything that happens; a stream that is cut off is taken up again where it was."""
    last, heard = "", time.monotonic()
    while True:
        try:
            response = client.open("GET", "/api/events", last=last)
            for event in events(response):
                heard = time.monotonic()
                last = event.id or last
                yield event
        except Stop as stop:
            if stop.code != LOST or not last:
                raise
        if time.monotonic() - heard > RETRY_S:
            raise Stop(LOST, f"the gateway at {client.url} is gone")
        time.sleep(0.2)
