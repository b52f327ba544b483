"""Writes `old_history.sqlite`: calls of two killed gateways, as a version without `Interrupted` kept them.

It must run with the code of such a version, which took a call of a dead gateway back into the queue without
a fact. OLD is a commit before the one that added `Interrupted` to `core/facts.py`:

    git worktree add ../old OLD
    PYTHONPATH=$(realpath ../old/src):. python -m tests.store.old_history FOLDER

The tag of each call tells its story. "Again" means that the second gateway had it too. The second was killed
like the first, so nobody has found the calls that are "left" until somebody opens the file.
"""

import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Final

from tests.chaos.killable_gateway import TOOLS, Ground, python
from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import Front

FILE: Final = Path(__file__).with_name("old_history.sqlite")
LONG_S: Final = 3_000_000_000  # so that a question is still open on the day on which the file is read


class Old(Ground):
    """Two gateways on one store; people may answer for decades."""

    def __init__(self, folder: Path) -> None:
        far = {**python("tests.chaos.marking_server", "far", E2E_MARKS=str(folder)), "answer_s": LONG_S}
        tools = {"far_safe": {"idempotent": True}}
        settings = {"tools": tools, "retain": {"bytes": 0}, "idle_s": 290, "answer_s": LONG_S}
        self.front = Front(folder, {"far": far}, settings, own=(TOOLS,))

    def run(self, tool: str, tag: str) -> str:
        """A call that has begun."""
        call = self.api.start(tool, tag=tag)
        self.until_begun(tag)
        return call

    def wait(self, tool: str, tag: str) -> str:
        """A call that has asked."""
        call = self.api.start(tool, tag=tag)
        self.asked(call)
        return call

    def stop(self, tool: str, tag: str) -> str:
        """A call that was told to stop, and does not."""
        call = self.run(tool, tag)
        self.api.post(f"/api/calls/{call}/cancel", {})
        until(lambda: self.api.call(call)["state"] == "cancelling", f"{tag} to be told")
        return call

    def state(self, call: str, state: str) -> None:
        """Wait until it is in this state."""
        until(lambda: self.api.call(call)["state"] == state, f"{call} to be {state}")


def first(place: Old) -> dict[str, str]:
    """The calls of the first gateway, by tag."""
    place.let_go("finished")
    calls = {
        "finished": place.run("safe", "finished"),
        "running, again": place.run("safe", "running, again"),
        "running, ends again": place.run("safe", "running, ends again"),
        "running, saved, again": place.run("steps", "running, saved, again"),
        "running, unsafe": place.run("unsafe", "running, unsafe"),
        "on a server, again": place.run("far_safe", "on a server, again"),
        "on a server, ends again": place.run("far_safe", "on a server, ends again"),
        "asks, again": place.wait("ask_safe", "asks, again"),
        "asks, answered again": place.wait("ask_safe", "asks, answered again"),
        "asks, unsafe": place.wait("ask_unsafe", "asks, unsafe"),
        "approval, again": place.wait("risky", "approval, again"),
        "approval, run again": place.wait("risky", "approval, run again"),
        "cancelling": place.stop("stubborn", "cancelling"),
        "slot": place.run("narrow", "slot"),
        "queued, again": place.api.start("narrow", tag="queued, again"),
    }
    place.state(calls["queued, again"], "queued")
    place.state(calls["finished"], "finished")
    return calls


def second(place: Old, calls: dict[str, str]) -> None:
    """What the second gateway does with them, and calls of its own."""
    place.until_begun("running, again", 2)
    place.until_begun("running, saved, again", 2)
    for tag in ("running, ends again", "on a server, ends again"):
        place.until_begun(tag, 2)
        place.let_go(tag)
        place.ended(calls[tag])
    place.until_begun("on a server, again", 2)
    place.tell(calls["asks, answered again"], "Ada")
    place.ended(calls["asks, answered again"])
    place.decide(calls["approval, run again"])
    place.until_begun("approval, run again")
    place.let_go("approval, run again")
    place.ended(calls["approval, run again"])
    place.until_begun("queued, again")
    place.let_go("done")
    calls |= {
        "done": place.run("safe", "done"),
        "running, left": place.run("safe", "running, left"),
        "on a server, left": place.run("far_safe", "on a server, left"),
        "asks, left": place.wait("ask_safe", "asks, left"),
        "approval, left": place.wait("risky", "approval, left"),
        "cancelling, left": place.stop("stubborn", "cancelling, left"),
        "queued, left": place.api.start("narrow", tag="queued, left"),
    }
    place.ended(calls["done"])
    place.state(calls["queued, left"], "queued")


def main(folder: Path) -> None:
    """Live through it, and leave the file as small as it can be."""
    place = Old(folder)
    place.front.start()
    until(lambda: {"far_safe", "narrow"} <= place.offered(), "its tools")
    calls = first(place)
    place.restart()
    second(place, calls)
    place.front.kill()
    shutil.copy(place.front.store, folder / FILE.name)
    for side in ("-wal", "-shm"):
        if (more := place.front.store.with_name(place.front.store.name + side)).exists():
            shutil.copy(more, folder / f"{FILE.name}{side}")
    db = sqlite3.connect(folder / FILE.name, isolation_level=None)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    print(folder / FILE.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
