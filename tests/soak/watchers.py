"""`FeedWatcher`: a watcher of everything that leaves and comes back, and misses and repeats no fact (H2)."""

import json
import random
import socket
import threading
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

from afoot.wire.framing import EventParser, ServerSentEvent
from tests.soak.notes import Notes
from tests.soak.place import Place

LEAVE: Final = 0.03  # the chance to leave after an event
WAIT_S: Final = 30.0


class FeedWatcher:
    """A thread that reads `/api/events`, leaves now and then, and resumes with `Last-Event-ID`."""

    def __init__(self, place: Place, dice: random.Random) -> None:
        self._place = place
        self._dice = dice
        self._last_id = ""
        self._seen: dict[str, int] = {}  # by call: its last fact
        self._unrecorded: dict[str, int] = {}  # by call: the last fact that may have come from memory
        # Whether the snapshot was made while the disk was full. Calls that had ended before it are not in it,
        # but their facts may have no position yet; then they come to a watcher that resumes behind it.
        self._is_from_outage = False
        self._connection: HTTPConnection | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.notes = Notes(0)  # of the phase that runs
        self.facts = 0
        self.resumed = 0
        self.resets = 0

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Leave for good."""
        self._is_over.set()
        self._cut()
        self._thread.join(WAIT_S)

    def _cut(self) -> None:
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while not self._is_over.is_set():
            if not self._place.is_up.wait(1.0):
                continue
            try:
                self._watch()
            except (OSError, HTTPException, ValueError):
                self._is_over.wait(0.1)

    def _watch(self) -> None:
        api = self._place.api
        parts = urlsplit(api.url)
        connection = self._connection = HTTPConnection(parts.hostname or "", parts.port, timeout=WAIT_S)
        headers = {"authorization": f"Bearer {api.token}"}
        if self._last_id:
            headers["last-event-id"] = self._last_id
            self.resumed += 1
        try:
            connection.request("GET", "/api/events", headers=headers)
            response = connection.getresponse()
            parser = EventParser()
            while chunk := response.read1(65536):
                for event in parser.feed(chunk):
                    self._take(event)
                if self._dice.random() < LEAVE or self._is_over.is_set():
                    return
        finally:
            connection.close()

    def _take(self, event: ServerSentEvent) -> None:
        body = json.loads(event.data)
        if event.event == "reset":
            self.resets += 1
        elif event.event == "snapshot":
            self._seen = {one["id"]: one["seq"] for one in body["calls"]}
            self._unrecorded = dict(self._seen)  # facts in it may have no position yet
            self._is_from_outage = body["degraded"] is not None
        elif event.event == "changes":
            for fact in body["facts"]:
                self._fact(fact, is_recorded=body["degraded"] is None)
        self._last_id = event.id or self._last_id

    def _fact(self, fact: dict[str, Any], *, is_recorded: bool) -> None:
        call, seq = str(fact["call"]), int(fact["seq"])
        last = self._seen.get(call, 0)
        self.facts += 1
        if seq <= min(last, self._unrecorded.get(call, 0)):
            return  # such facts stand behind no position, so they come again to a watcher that resumes
        if not is_recorded:
            self._unrecorded[call] = seq
        # A call that had ended before the snapshot may still say something late, or that it was released.
        is_late = last == 0 and (fact["fact"]["type"] in ("logged", "released") or fact["fact"].get("late"))
        is_older = last == 0 and self._is_from_outage
        if seq != last + 1 and not (is_late or is_older):
            self.notes.fault(f"watcher: fact {seq} of {call} came after {last}: {str(fact['fact'])[:200]}")
        self._seen[call] = max(seq, last)
