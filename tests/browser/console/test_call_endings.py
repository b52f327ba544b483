"""How calls end, and who they run for, as a person reads it in the console (V1, E2, G1, G2, H3, U4, X3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Chromium, until
from tests.browser.console.console_client import CONNECTED, Console, at
from tests.browser.page import Page
from tests.e2e.gateway import TOOLS, Gateway
from tests.e2e.raw_client import Http, call, modern

OWN = Path(__file__).parent / "ending_tools.py"
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
SUMMARY = "document.querySelector('.call-columns')?.parentElement.innerText.toLowerCase()"
ROW = "document.querySelector('[data-call=\"ID\"]')"
LINE = f"{ROW} && {ROW}.querySelector('.state-icon').ariaLabel + ' ' + {ROW}.innerText.replaceAll('\\n', ' ')"
# What the history says of an end, and what the call itself says beside it.
ENDS = {
    "turn_for_ever": (
        "failed",
        "used more than 0.5 s of processor time (raise cpu_s)",
        "internal, cpu limit",
    ),
    "hoard": ("failed", "is out of memory: it may use", "internal, out of memory"),
    "vanish": ("uncertain", "its effects may have happened, so it was not run again", "child killed"),
    "look_and_vanish": ("lost", "was ended by SIGKILL", "May be tried again\nyes"),
    "demolish": ("refused", "was not run: the user rejected it", "refused, rejected"),
}


class Ending(Gateway):
    """A gateway with tools that end in every way."""

    def command(self, *surface: str) -> list[str]:
        """The command that serves them."""
        return [str(OWN) if part == str(TOOLS) else part for part in super().command(*surface)]


@contextmanager
def ending(folder: Path, browser: Chromium, config: str = "") -> Iterator[Console]:
    """A console whose gateway is ended with the block."""
    (folder / "afoot.toml").write_text(config)
    gateway = Ending(folder, {"drain_s": 0.2, "config": folder / "afoot.toml"})
    gateway.start()
    try:
        yield Console(gateway, browser)
    finally:
        gateway.stop()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """One gateway for these tests."""
    with ending(tmp_path_factory.mktemp("ends"), plain_browser) as one:
        yield one


@pytest.fixture
def console(served: Console) -> Console:
    """The gateway with no tab of another test."""
    served.browser.clear()
    return served


def over(console: Console, tool: str) -> str:
    """A call of this tool that is over and lives nowhere but in the history."""
    call = console.api.start(tool, **({"house": "mine"} if tool == "demolish" else {}))
    if tool == "demolish":
        path = f"/api/questions/{console.api.asked(call)['id']}/answer"
        answer = {"action": "accept", "content": {"decision": "reject"}}
        assert console.api.post(path, answer).status == 200
    # Half a second of processor time takes long where others want it too.
    until(lambda: console.api.call(call)["outcome"], f"the end of {tool}", 40)
    found = f"/api/calls?tool={tool}&limit=1"
    until(lambda: "seq" not in console.api.get(found).body["calls"][0], "it to be history")
    return call


def show(console: Console, page: Page, path: str) -> None:
    """Go there in this tab."""
    page.navigate(console.api.url + path)
    page.until(CONNECTED)


@pytest.mark.parametrize("tool", ENDS)
def test_the_history_says_in_words_why_a_call_did_not_end_well(console: Console, tool: str) -> None:
    """V1, E2, G1: by its line, by what is searched, and by the call itself; also long after its end."""
    outcome, reason, kind = ENDS[tool]
    call = over(console, tool)
    page = console.open("/history")
    told = page.until(LINE.replace("ID", call))
    assert told.startswith(outcome) and reason in told
    words = reason.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    show(console, page, f"/history?q={words}")
    assert reason in page.until(LINE.replace("ID", call))
    show(console, page, f"/calls/{call}")
    page.until(f"{SUMMARY}?.includes({outcome!r}) && {SUMMARY}.includes({reason.lower()!r})")
    wrong = "document.querySelector('.call-failure')"
    whole = page.until(f"{wrong}?.innerText")
    assert reason in whole and kind in whole
    assert page.evaluate("odd") == []


def test_attempts_and_processor_time_are_told(console: Console, tmp_path: Path) -> None:
    """V1, U4, G1: that a tool runs once more after a crash, in its bubble; what it cost, in the call."""
    mark = tmp_path / "fallen"
    call = console.api.start("stumble_once", mark=str(mark))
    page = console.open()
    page.until(f"{at(call)}?.innerText.includes('attempt 2')")
    (tmp_path / "fallen-enough").touch()
    assert console.api.ended(call)["outcome"] == "ok"
    show(console, page, f"/calls/{call}")
    page.until(f"{SUMMARY}?.includes('2 attempts') && /processor\\s+\\d/.test({SUMMARY})")
    page.until("/attempt 1 lost:.*SIGKILL/s.test(document.querySelector('.call-story').innerText)")
    assert page.evaluate("odd") == []


def test_a_call_whose_caller_has_gone_is_detached_and_a_task_shows_its_id(console: Console) -> None:
    """V1, X3, H3: as soon as nobody waits for it, in its bubble and in the call."""
    page = console.open()
    with Http(console.gateway.url) as http:
        http.put(call("wander", {"steps": 3000}, progressToken="t", capabilities={}))
        http.take()
        live = until(lambda: console.api.get("/api/calls?tool=wander&state=running").body["calls"], "a call")
        alone = live[0]["id"]
        page.until(f"{at(alone)}?.innerText.includes('step ')")
        assert "detached" not in page.evaluate(f"{at(alone)}.innerText")
    page.until(f"{at(alone)}.innerText.includes('detached')")
    show(console, page, f"/calls/{alone}")
    page.until(f"{SUMMARY}?.includes('detached') && {SUMMARY}.includes('{alone}')")
    with Http(console.gateway.url) as http:
        task = http.ask(
            modern("tools/call", {"name": "wander", "arguments": {"steps": 9}}, capabilities=TASKS)
        )
    id = task["result"]["taskId"]
    show(console, page, f"/calls/{id}")
    page.until(f"{SUMMARY}?.includes('{id}') && {SUMMARY}.includes('its id is also that of a task')")
    console.api.post(f"/api/calls/{alone}/cancel", {})
    assert page.evaluate("odd") == []


def test_a_callers_quota_says_how_many_of_how_many_and_when_it_is_free_again(
    tmp_path: Path, plain: Chromium
) -> None:
    """V1, G2: below the servers, also when nothing of the caller runs."""
    config = "[quota.local]\ncalls = 2\nper_s = 600\ncpu_s = 30\nconcurrent = 5\n"
    with ending(tmp_path, plain, config) as console:
        page = console.open("/servers")
        line = "document.querySelector('[data-place=local]')"
        for used in (1, 2, 3):
            with Http(console.gateway.url) as http:
                http.ask(call("wander", {"steps": 0}, capabilities={}))
            told = page.until(f"{line}?.innerText.includes('{min(used, 2)} of 2 calls') && {line}.innerText")
            assert ("at its quota" in told) is (used > 1)
        told = page.until(f"{line}.innerText.includes('refused') && {line}.innerText")
        for words in (
            "in 10:00",
            "0.0 s of 0:30 of processor time",
            "0 of 5 at once",
            "free again",
            "1 call refused",
        ):
            assert words in told
        assert page.evaluate("odd") == []
