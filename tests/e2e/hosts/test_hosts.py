"""Real agent hosts with a fake model: eight things that a person does with tools, in each host.

Each host has two sessions. In the first its model calls one tool after the other. In the second the gateway
is killed under a call, and then the person interrupts another one.
"""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from afoot.config.client_limits import FILE
from tests.e2e.gateway import until
from tests.e2e.hosts.fake_model import HANDLE, FakeModel, Step, serving_model
from tests.e2e.hosts.host_programs import (
    CODEX,
    END_S,
    GEMINI,
    OPENCODE,
    HostPlace,
    HostProgram,
    running,
)
from tests.e2e.hosts.host_tools import PNG
from tests.e2e.raw_client import request

pytestmark = pytest.mark.timeout(2 * END_S)
LIMIT_S: Final = 6.0  # of the host, in place of the hour that `afoot install` writes
LONG_S: Final = 60.0  # while a gateway comes up
STEP_S: Final = 0.8
STEPS: Final = 9  # longer than the limit in all
LONG: Final = Step("count_up", {"n": STEPS, "step_s": STEP_S})
FIRST: Final = (
    Step("add", {"a": 2, "b": 3}),
    Step("picture", {}),
    Step("megabyte", {}),
    Step("wipe", {"tag": "wiped"}),
    Step("ask_name", {"tag": "asked"}),
    LONG,
)
SECOND: Final = (
    Step("linger", {"tag": "killed"}),
    Step("add", {"a": 4, "b": 5}),
    Step("linger", {"tag": "interrupted"}),
)


class Sessions:
    """Both sessions of a host, after their end."""

    def __init__(self, host: HostProgram, place: HostPlace) -> None:
        self.host = host
        self.place = place
        self.killed = 0  # the process of the gateway
        # `codex exec` declines forms itself, so nobody else answers them: the first answer would count.
        kinds = ("approval",) if host is CODEX else ("approval", "form")
        with place.operator(*kinds) as answered:
            self.first = self._play_first()
            self.answered = [one["kind"] for one in answered]
        file = place.gateway.folder / "home" / FILE
        self.learned = json.loads(file.read_text()) if file.exists() else []
        self.second = self._play_second()

    def told(self, tool: str) -> list[str]:
        """What the model was told by this tool, in both sessions."""
        both = [*self.first.told(tool), *self.second.told(tool)]
        return [one if isinstance(one, str) else json.dumps(one) for one in both]

    def _play_first(self) -> FakeModel:
        script = [*FIRST, LONG] if self.host.teacher == "cancel" else FIRST
        with serving_model(script) as model, running(self.host, self.place, model, LIMIT_S) as run:
            assert run.wait() == 0, run.said
            assert not model.problems
            return model

    def _play_second(self) -> FakeModel:
        place = self.place
        with serving_model(SECOND) as model, running(self.host, place, model, LONG_S) as run:
            until(lambda: place.gateway.marks("killed"), "the first call", END_S)
            self.killed = place.kill()
            until(lambda: place.gateway.marks("interrupted") or not run.is_alive, "the last call", END_S)
            run.interrupt()
            run.wait()
            return model


@pytest.fixture(scope="module", params=[CODEX, GEMINI, OPENCODE], ids=lambda host: host.name)
def sessions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    """The sessions of one host; its gateway runs already, as it does for the second host of a person."""
    place = HostPlace(tmp_path_factory.mktemp(request.param.name))
    try:
        warm(place)
        yield Sessions(request.param, place)
    finally:
        place.close()


def warm(place: HostPlace) -> None:
    """Start the gateway, and wait until its tools are there."""
    place.bridge("handshake").ask(request("tools/list", {}, "warm"))


def test_a_short_call(sessions: Sessions) -> None:
    """N1: its result is what the model reads."""
    assert "sum" in sessions.told("add")[0] and "5" in sessions.told("add")[0]


def test_a_picture(sessions: Sessions) -> None:
    """N1: the model gets the picture itself, and the text beside it."""
    [told] = sessions.told("picture")
    assert "a point:" in told
    assert _base64(PNG) in json.dumps(sessions.first.requests[-1][1])


def test_a_megabyte(sessions: Sessions) -> None:
    """N1: the host shortens it, or keeps it in a file and says so; what follows works."""
    [told] = sessions.told("megabyte")
    assert "begin 0123456789" in told or re.search(
        "1000010 bytes truncated.*output saved to", told, re.DOTALL
    )
    assert len(told) < 1_000_000


def test_an_approval(sessions: Sessions) -> None:
    """N1, A1: an operator approves, and the tool runs once."""
    assert "wiped everything" in sessions.told("wipe")[-1]
    assert sessions.place.gateway.marks("wiped") == ["wiped everything"]
    assert sessions.answered[0] == "approval"


def test_a_question(sessions: Sessions) -> None:
    """N1, Q1: a person answers, and the model reads what the tool made of it.

    `codex exec` declines every form by itself, and the tool is told.
    """
    told = sessions.told("ask_name")[-1]
    if sessions.host is CODEX:
        assert "decline" in told
    else:
        assert "Ada" in told and sessions.answered.count("form") == 1


def test_a_call_beyond_the_limit_of_the_host(sessions: Sessions) -> None:
    """N1, N2, H5: a fixed limit is learned at the latest when it is over once; then nothing is lost.

    A host whose cancel teaches calls twice. A limit that progress moves is none.
    """
    told = sessions.told("count_up")
    counted = [f"counted to {STEPS}" in one for one in told]
    handed_over = [HANDLE.search(one) is not None for one in told]
    learned = [one for one in sessions.learned if one["by"] == sessions.host.teacher]
    if not sessions.host.teacher:
        assert counted == [True] and not learned
        return
    [limit] = learned
    assert limit["client"].startswith(sessions.host.client) and abs(limit["limit_s"] - LIMIT_S) < 1.5
    gave_up = sessions.host.teacher == "cancel"
    assert counted.count(True) == 1 and counted[-1] and len(told) > 1 + gave_up
    assert all(one or other for one, other in zip(counted[gave_up:], handed_over[gave_up:], strict=True))


def test_a_gateway_that_is_killed_under_a_call(sessions: Sessions) -> None:
    """N1, H4: the model is told what happened to the call, and its next call just works."""
    lost = sessions.second.told("linger")[0]
    assert "lost" in _text(lost) and "side effects" in _text(lost)
    assert "9" in _text(sessions.second.told("add")[0])
    assert sessions.place.pid != sessions.killed


def test_a_person_who_interrupts(sessions: Sessions) -> None:
    """N1, X1: the call ends with the host, and the tool learns of it."""
    sessions.place.gateway.until_marked("interrupted", "cancelled")


def _text(told: Any) -> str:
    return told if isinstance(told, str) else json.dumps(told)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
