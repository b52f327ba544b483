"""`afoot watch`: everything live, or one call to its end; leaving it changes nothing."""

import json as json_module
import os
import sys
import time
from collections.abc import Iterator

from afoot.cli.calls import At, Json
from afoot.cli.client import Client, connect, events, part
from afoot.cli.ending import LOST, Stop
from afoot.cli.pump import Pump
from afoot.cli.wall import Bars, Lines, Wall
from afoot.wire.sse import Event

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
            for event in _feed(client):
                print(json_module.dumps({"event": event.event, **json_module.loads(event.data)}), flush=True)
        else:
            _everything(client)
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


def _everything(client: Client) -> None:
    is_live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    wall = Wall(Bars() if is_live else Lines())
    try:
        if is_live and sys.stdin.isatty():
            from afoot.cli.attending import attend

            with Pump(lambda: _feed(client)) as pump:
                attend(client, wall, pump)
        else:
            for event in _feed(client):
                wall.show(event)
    finally:
        wall.view.close()


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
