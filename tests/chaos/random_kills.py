"""Random kills under load, and what must hold after each: `python -m tests.chaos.random_kills KILLS [SEED]`.

Nothing that was acknowledged is lost, and nothing runs twice that may not.
"""

import random
import sys
import tempfile
import threading
import time
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

import pytest

from tests.chaos.killable_gateway import Ground, ground
from tests.e2e import history
from tests.e2e.gateway import until
from tests.e2e.raw_client import Http, Message, call, frames
from tests.serve.api_client import Api

SAFE: Final = ("safe", "boxed_safe", "far_safe")
UNSAFE: Final = ("unsafe", "boxed_unsafe", "far_unsafe", "narrow")
LEGAL: Final = {"ok", "uncertain", "lost", "failed", "cancelled"}
HANDS: Final = 4  # who start calls
KEY: Final = "dev.afoot/idempotency"
SETTLE_S: Final = 60.0


class Storm:
    """Hands that start calls without end, and kills among them."""

    def __init__(self, place: Ground, seed: int) -> None:
        self.place = place
        self.dice = random.Random(seed)
        self.told: dict[str, tuple[str, str]] = {}  # what was acknowledged: tool and tag by call
        self.results: dict[str, str] = {}  # what a caller was told at the end
        self.kills = 0
        self._over = threading.Event()
        self._count = 0
        self._lock = threading.Lock()

    def run(self, kills: int) -> None:
        """So many kills, then a look at everything."""
        hands = [threading.Thread(target=self._hand, args=(number,)) for number in range(HANDS)]
        for hand in hands:
            hand.start()
        try:
            while self.kills < kills:
                time.sleep(self.dice.uniform(0.02, 0.4))
                self._strike()
        finally:
            self._over.set()
            for hand in hands:
                hand.join()
        self.look()

    def _strike(self) -> None:
        """Kill the gateway, or a process that runs a tool."""
        self.kills += 1
        runners = self._runners()
        if runners and self.dice.random() < 0.5:
            self.place.kill(self.dice.choice(runners))
        else:
            self.place.restart()

    def _runners(self) -> list[int]:
        """Processes in which a tool of the newest calls began, but for the gateway's own."""
        with self._lock:
            recent = [tag for _, tag in list(self.told.values())[-8:]]
        own = self.place.front.process.pid
        return [pid for tag in recent for pid in self.place.begun(tag)[-1:] if pid != own]

    def _hand(self, number: int) -> None:
        dice = random.Random(number)
        while not self._over.is_set():
            with self._lock:
                self._count += 1
                tag = f"s{self._count}"
            make = self._call if dice.random() < 0.6 else self._insist
            try:
                make(dice.choice(SAFE + UNSAFE), tag, round(dice.uniform(0.0, 0.3), 3))
            except (OSError, HTTPException, ValueError, KeyError):
                time.sleep(0.02)  # it was killed under our hands

    def _call(self, tool: str, tag: str, stay_s: float) -> None:
        api = Api(self.place.front)
        wanted = {"tool": tool, "arguments": {"tag": tag, "stay_s": stay_s}}
        answer = api.post("/api/calls", wanted, prefer="respond-async")
        if answer.status != 202:
            return  # it has no room, or is going
        made = str(answer.body["id"])
        with self._lock:
            self.told[made] = tool, tag
        end = time.monotonic() + stay_s + 0.5
        while time.monotonic() < end and not self._over.is_set():
            seen = api.get(f"/api/calls/{made}").body
            if seen["outcome"]:
                self.results[made] = seen["outcome"]
                return
            time.sleep(0.02)

    def _insist(self, tool: str, tag: str, stay_s: float) -> None:
        """A client with nothing but a key makes the same request again until it has its answer."""
        wanted = call(tool, {"tag": tag, "stay_s": stay_s}, **{KEY: tag, "progressToken": 1})
        while not self._over.is_set():
            try:
                with Http(self.place.front.url) as http, http.post(wanted) as response:
                    answer = frames(response)[-1]
                break
            except (OSError, HTTPException, ValueError, IndexError):
                time.sleep(0.02)  # it was killed under our hands
        else:
            return
        if "result" in answer:
            result = answer["result"]
            name = str(result["_meta"]["dev.afoot/call"])
            with self._lock:
                self.told[name] = tool, tag
            self.results[name] = _outcome(result)

    def look(self) -> None:
        """What must hold, once everything has ended; fails saying what does not."""
        api = self.place.api
        until(lambda: not api.get("/api/calls?state=live").body["calls"], "every call to end", SETTLE_S)
        wrong = [problem for call in self.told for problem in self._problems(call)]
        if wrong:
            pytest.fail(f"after {self.kills} kills: {len(wrong)} wrong\n" + "\n".join(wrong[:20]))

    def _problems(self, call: str) -> list[str]:
        tool, tag = self.told[call]
        try:
            seen: dict[str, Any] = self.place.api.call(call)
        except AssertionError:
            return [f"{tool} {call}: was acknowledged, and is lost"]
        begun, outcome = len(self.place.begun(tag)), seen["outcome"]
        calls = self.place.api.get(f"/api/calls?q=%22{tag}%22").body["calls"]
        said = f"{tool} {call}: {outcome} after {begun} beginnings"
        problems = []
        if outcome not in LEGAL:
            problems.append(f"{said}, which is no end")
        if tool in UNSAFE and begun > 1:
            problems.append(f"{said}, and may not be run twice")
        if len(calls) != 1:
            problems.append(f"{said}, and its request made {len(calls)} calls")
        if outcome == "ok" and not any(line.startswith("done") for line in self.place.front.marks(tag)):
            problems.append(f"{said}, and was never done")
        if self.results.get(call, outcome) != outcome:
            problems.append(f"{said}, and its caller was told {self.results[call]}")
        return problems

    def summary(self) -> str:
        """How it went, for people."""
        ends: dict[str, int] = {}
        for row in history.rows(self.place.front.store, ""):
            ends[row.outcome or "none"] = ends.get(row.outcome or "none", 0) + 1
        return f"{self.kills} kills, {len(self.told)} calls acknowledged, newest ends: {ends}"


def _outcome(result: Message) -> str:
    """What a caller is told of the end, in one word."""
    return str(result["content"][0]["text"]).partition(":")[0] if result.get("isError") else "ok"


def storm(folder: Path, kills: int, seed: int) -> str:
    """A storm in a folder; raises if anything did not hold."""
    with ground(folder) as place:
        one = Storm(place, seed)
        one.run(kills)
        return one.summary()


if __name__ == "__main__":
    wanted, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory(prefix="storm") as folder:
        print(storm(Path(folder), wanted, seed))
