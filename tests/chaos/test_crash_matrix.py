"""Every state of a call, and the death of what it runs on: what is promised, and what is seen (U4, H4)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.killable_gateway import Ground, ground
from tests.chaos.states import CASES, GATEWAY, RUNNER, Case, Scene

pytestmark = pytest.mark.timeout(180)
TABLE = Path(__file__).parents[2] / "docs" / "reasons" / "crashes.md"
SERVERS = ("asking", "slow")
GATEWAYS = [(case, tool) for case in CASES for tool in case.gateway]
Survivors = dict[str, tuple[Scene, str, bool]]
RUNNERS = [(case, tool) for case in CASES for tool in case.runner]


def promised() -> dict[tuple[str, str], str]:
    """What the table says in bold, by state and by what dies; a cell without has nothing that could die."""
    rows = [line.strip("|\n ").split(" | ") for line in TABLE.read_text().splitlines() if line[:1] == "|"]
    heads = rows[0][1:]
    cells = {(row[0], head): cell for row in rows[2:] for head, cell in zip(heads, row[1:], strict=True)}
    bold = {where: re.match(r"\*\*(.+?)\*\*", cell) for where, cell in cells.items()}
    return {where: found[1] for where, found in bold.items() if found}


def named(cases: list[tuple[Case, str]]) -> list[str]:
    """What a test of each is called."""
    return [f"{case.state.replace(',', '')}: {tool}" for case, tool in cases]


def tagged(case: Case, tool: str, death: str) -> str:
    """What a case's marks are called."""
    return f"{'g' if death == GATEWAY else 'r'}{CASES.index(case):02}-{tool}"


def seen(scene: Scene, call: str, *, was_over: bool = False) -> str:
    """What became of a call, in the words of the table."""
    ended = scene.place.ended(call)
    outcome, attempt, begun = ended["outcome"], ended["attempt"], len(scene.place.begun(scene.tag))
    if scene.place.api.question(call) is not None:
        return f"{outcome}, and asks still"
    if outcome == "ok" and attempt == begun:
        return (
            "has its result"
            if was_over
            else {1: "runs once", 2: "runs again"}.get(begun, f"begun {begun} times")
        )
    if outcome != "ok" and (attempt, begun, ended["failure"]["side_effects"]) == (1, 1, "possible"):
        return str(outcome)
    return f"{outcome} at attempt {attempt}, begun {begun} times: {ended['failure']}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A gateway whose children and servers are killed, one after the other."""
    with ground(tmp_path_factory.mktemp("runners"), *SERVERS) as one:
        yield one


@pytest.fixture(scope="module")
def survived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Survivors]:
    """A gateway that was killed while there was a call in every state: each by its tag."""
    with ground(tmp_path_factory.mktemp("gateways"), *SERVERS) as one:
        scenes = [Scene(one, tool, tagged(case, tool, GATEWAY), GATEWAY) for case, tool in GATEWAYS]
        calls = [case.begin(scene) for (case, _), scene in zip(GATEWAYS, scenes, strict=True)]
        over = [one.api.call(call)["outcome"] == "ok" for call in calls]
        each = zip(scenes, calls, over, strict=True)
        found = {scene.tag: (scene, call, was_over) for scene, call, was_over in each}
        one.restart()
        yield found


@pytest.mark.parametrize(("case", "tool"), GATEWAYS, ids=named(GATEWAYS))
def test_what_is_promised_for_the_death_of_the_gateway_is_seen(
    survived: Survivors, case: Case, tool: str
) -> None:
    """U4, H4, H7, H1: all of them lived at once, and it was killed with `kill -9`."""
    scene, call, was_over = survived[tagged(case, tool, GATEWAY)]
    case.after(scene, call)
    assert seen(scene, call, was_over=was_over) == promised()[case.state, GATEWAY]


@pytest.mark.parametrize(("case", "tool"), RUNNERS, ids=named(RUNNERS))
def test_what_is_promised_for_the_death_of_a_child_or_server_is_seen(
    place: Ground, case: Case, tool: str
) -> None:
    """U4, G1: whichever of them it runs on, or would."""
    scene = Scene(place, tool, tagged(case, tool, RUNNER), RUNNER)
    call = case.begin(scene)
    place.kill(place.begun(case.runs_on.format(tag=scene.tag))[-1])
    case.after(scene, call)
    assert seen(scene, call) == promised()[case.state, RUNNER]


def test_everything_that_is_promised_is_tried() -> None:
    """U4: no row of the table is only words, and none is missing."""
    tried = {(case.state, GATEWAY) for case in CASES} | {
        (case.state, RUNNER) for case in CASES if case.runner
    }
    assert promised().keys() == tried
