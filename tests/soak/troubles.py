"""`Trouble` is done to the gateway or its servers while clients work, until the phase is over."""

import random
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Final

from tests.soak.clients import answer_as_operator
from tests.soak.notes import Notes
from tests.soak.place import Place

HOUR_S: Final = 3600.0
AWAY: Final = (OSError, HTTPException, ValueError, KeyError)  # the gateway is stopped, killed or busy


class Trouble:
    """What a trouble has at hand: the place, dice, and the end of its phase."""

    def __init__(self, place: Place, notes: Notes, dice: random.Random, is_over: threading.Event) -> None:
        self.place = place
        self.notes = notes
        self.dice = dice
        self.is_over = is_over

    def wait(self, least_s: float, most_s: float) -> bool:
        """Wait for a while; whether the phase goes on after that."""
        return not self.is_over.wait(self.dice.uniform(least_s, most_s))

    def answer(self) -> None:
        """Answer questions, as an operator does in every phase."""
        while self.wait(0.1, 0.5):
            with suppress(*AWAY):
                answer_as_operator(self.place.api, self.dice)

    def none(self) -> None:
        """Leave it alone."""
        self.is_over.wait()

    def kill_servers(self) -> None:
        """Kill servers, on pipes and on HTTP, in the middle of calls."""
        while self.wait(0.3, 1.5):
            with suppress(*AWAY):
                self.notes.count("servers killed")
                if self.dice.random() < 0.3:
                    self.place.restart_remote()
                elif pids := self.place.server_pids():
                    self.place.signal(self.dice.choice(pids[:-1] or pids), signal.SIGKILL)

    def kill_children(self) -> None:
        """Kill processes in which tools run, but not the gateway."""
        while self.wait(0.05, 0.4):
            pids = self.place.tool_pids(self.notes.newest_tags(30))
            if pids:
                self.notes.count("children killed")
                self.place.signal(self.dice.choice(pids), signal.SIGKILL)
            self.place.revive_remote()
        self.place.revive_remote()

    def kill_gateway(self) -> None:
        """Kill the gateway once or more, and start the next on the same store."""
        while self.wait(0.8, 3.0):
            self.notes.count("gateways killed")
            self.place.kill_gateway()

    def stop_servers(self) -> None:
        """Stop servers for a while; all go on before the phase is over."""
        while self.wait(0.2, 1.0):
            with suppress(*AWAY):
                pid = self.dice.choice(self.place.server_pids())
                self.notes.count("servers stopped")
                self.place.signal(pid, signal.SIGSTOP)
                self.wait(0.2, 2.0)
                self.place.signal(pid, signal.SIGCONT)

    def stop_gateway(self) -> None:
        """Stop the gateway for a while, as a machine that sleeps does."""
        while self.wait(0.5, 1.5):
            self.notes.count("gateway stopped")
            self.place.signal(self.place.pid, signal.SIGSTOP)
            self.wait(0.1, 2.5)
            self.place.signal(self.place.pid, signal.SIGCONT)

    def fill_disk(self) -> None:
        """Fill the disk and free it again; it is free at the end of the phase."""
        try:
            while self.wait(0.2, 1.0):
                self.notes.count("disk filled")
                self.place.fill_disk()
                self.wait(0.5, 2.0)
                self.place.free_disk()
        finally:
            self.place.free_disk()

    def set_clock(self) -> None:
        """Set the wall clock forward and back."""
        while self.wait(0.2, 1.0):
            self.notes.count("clock set")
            self.place.set_clock(self.dice.choice((-48, -1, -0.01, 0.01, 1, 48)) * HOUR_S)


TROUBLES: Final[Mapping[str, Callable[[Trouble], None]]] = {
    "none": Trouble.none,
    "kill servers": Trouble.kill_servers,
    "kill children": Trouble.kill_children,
    "stop servers": Trouble.stop_servers,
    "stop gateway": Trouble.stop_gateway,
    "full disk": Trouble.fill_disk,
    "set clock": Trouble.set_clock,
}
KILL_GATEWAY: Final = "kill gateway"
ALL_TROUBLES: Final = {**TROUBLES, KILL_GATEWAY: Trouble.kill_gateway}
