"""`afoot watch` shows all live calls, or one call until it ends; leaving it changes nothing."""

import json as json_module
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from afoot.cli.client import LOST, CliError, GatewayClient, connect, path_segment, read_events
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal.ansi import FullScreen, is_terminal
from afoot.cli.terminal.listing import to_json_line
from afoot.cli.terminal.live.event_lines import EventLines
from afoot.cli.terminal.live.event_thread import EventThread
from afoot.wire.framing import ServerSentEvent

if TYPE_CHECKING:
    from afoot.cli.terminal.live.dashboard import FeedItem

RETRY_S = 5.0  # how long a broken stream is opened again
ENDED_PATH = "/api/calls?state=finished&limit=200"


def watch(call: str = "", /, *, at: AtOption = "", json: JsonOption = False) -> int:
    """Watch all live calls, or one call until it ends. Ctrl-C leaves and cancels nothing.

    Args:
        call: the call's id, or its last characters; without it, all calls are shown
    """
    client = connect(at)
    if call:
        return _watch_one(client, call, json)
    try:
        if json:
            for event in _events_in_thread(client):
                print(to_json_line({"event": event.event, **json_module.loads(event.data)}), flush=True)
        else:
            _watch_all(client, at)
    except KeyboardInterrupt:
        return 0
    return 0


def _watch_one(client: GatewayClient, call: str, as_json: bool) -> int:
    from afoot.cli.commands.calls.call import TerminalFollower
    from afoot.cli.terminal.call_backend import GatewayBackend
    from afoot.cli.terminal.call_output import choose_output, closing_output

    found = client.get(f"/api/calls/{path_segment(call)}")
    backend = GatewayBackend(client)
    with closing_output(choose_output(as_json)) as output:
        can_ask = sys.stdin.isatty() and not as_json
        return TerminalFollower(backend, output, can_ask, cancels=False).run(backend.follow(found["id"]))


def _watch_all(client: GatewayClient, at: str) -> None:
    if not is_terminal(sys.stdout):
        lines = EventLines()
        for event in _events_in_thread(client):
            lines.show(event)
        return
    from afoot.cli.terminal.keyboard import Keyboard
    from afoot.cli.terminal.live.dashboard import Dashboard, open_dashboard

    def make(stack: ExitStack) -> Dashboard:
        events = stack.enter_context(EventThread(lambda: _events_forever(at)))
        keys = stack.enter_context(Keyboard()) if sys.stdin.isatty() else None
        return Dashboard(stack.enter_context(FullScreen(sys.stdout)), keys, events, client.url, at)

    with open_dashboard(make) as dashboard:
        dashboard.run()


def _events_forever(at: str) -> "Iterator[FeedItem]":
    """All events, without end: if the gateway goes away, wait until one answers again, at any address."""
    from afoot.cli.terminal.live.dashboard import GatewayReachability

    last = ""
    while True:
        try:
            client = connect(at)
            response = client.open_stream("GET", "/api/events", last=last)
            yield GatewayReachability(is_reachable=True)
            for event in read_events(response, with_alive=True):
                last = event.id or last
                yield event
                if event.event == "snapshot":
                    yield from _just_ended(client)
                if event.event == "snapshot" or '"asked"' in event.data:
                    yield from _open_questions(client)
        except CliError as error:
            if not last or error.details.get("status", 503) not in (500, 503):
                raise
        yield GatewayReachability(is_reachable=False)
        time.sleep(0.3)


def _just_ended(client: GatewayClient) -> "Iterator[FeedItem]":
    """The calls that ended last: the stream begins with those that are live."""
    from msgspec.json import decode

    from afoot.cli.terminal.live.live_state import EndedCalls

    with suppress(CliError):  # the history may be away, and the stream goes on without it
        yield decode(client.fetch(ENDED_PATH), type=EndedCalls)


def _open_questions(client: GatewayClient) -> "Iterator[FeedItem]":
    """The open questions in full: their facts do not say whether a run may destroy something."""
    from msgspec.json import decode

    from afoot.cli.terminal.live.live_state import OpenQuestions

    with suppress(CliError):  # they are answered all the same, and say it then
        yield decode(client.fetch("/api/questions"), type=OpenQuestions)


def _events_in_thread(client: GatewayClient) -> Iterator[ServerSentEvent]:
    """All events, read in a thread: Ctrl-C just before a blocking read would wait for the next event."""
    with EventThread(lambda: _read_feed(client)) as events:
        while True:
            for event in events.take():
                if event is None:
                    return
                yield event


def _read_feed(client: GatewayClient) -> Iterator[ServerSentEvent]:
    """All events of one gateway; a broken stream is opened again where it broke off."""
    last = ""
    last_event_at = time.monotonic()
    while True:
        try:
            response = client.open_stream("GET", "/api/events", last=last)
            for event in read_events(response):
                last_event_at = time.monotonic()
                last = event.id or last
                yield event
        except CliError as error:
            if error.code != LOST or not last:
                raise
        if time.monotonic() - last_event_at > RETRY_S:
            raise CliError(LOST, f"the gateway at {client.url} is gone")
        time.sleep(0.2)
