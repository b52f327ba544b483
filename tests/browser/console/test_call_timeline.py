"""A call's story in a real browser: its curve as it grows, what hinders it, what it called, what was sent."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium
from tests.browser.console.asking_console import answering, click, fill, says
from tests.browser.console.console_client import Console
from tests.browser.console.test_call import HERE, heading, show
from tests.browser.page import Page
from tests.e2e.raw_client import Http, call, last

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SECRET = 'it\'s "$HOME" `id`'


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """A gateway that records what goes over its wires."""
    with answering(tmp_path_factory.mktemp("story"), plain_browser, record_wire="true") as console:
        yield console


@pytest.fixture
def page(asking: Console, plain: Chromium) -> Iterator[Page]:
    """A tab of the console; its policy refused nothing in it."""
    tab = asking.open("/inbox")
    yield tab
    assert tab.evaluate("odd") == []


def taken(page: Page, facts: list[object], readings: list[object]) -> None:
    """Have the page take in a frame of the feed, as the gateway would send it."""
    frame = json.dumps({"facts": facts, "readings": readings, "degraded": None})
    page.evaluate(f"import('/console/lib/store.js').then(({{ store }}) => store.receive('changes', {frame}))")


def test_the_curve_grows_while_the_call_runs(asking: Console, page: Page) -> None:
    """V1, P9: point by point, and in words for those who do not see it."""
    one = asking.api.start("step", n=2000, step_s=0.05)
    show(asking, page, one)
    points = f"{heading('Progress')}?.querySelector('polyline')?.getAttribute('points').split(' ').length"
    first = page.until(f"{points} > 2 && {points}")
    page.until(f"{points} > {first} + 2")
    assert asking.api.call(one)["state"] == "running"
    said = page.evaluate(f"{heading('Progress')}.querySelector('svg').getAttribute('aria-label')")
    assert said.startswith("Progress of step: ") and " of 2,000 after " in said
    asking.api.post(f"/api/calls/{one}/cancel", {})


def test_a_call_that_stalls_or_is_hindered_says_so(asking: Console, page: Page) -> None:
    """V1, C5: the state with its word, and what to do about it."""
    one = asking.api.start("step", n=2, step_s=50)
    show(asking, page, one)
    says(page, "running")
    taken(page, [], [{"call": one, "readings": 1, "stalled": True}])
    page.until("document.querySelector('.summary').dataset.kind === 'stalled'")
    says(page, "stalled")
    seq = asking.api.call(one)["seq"]
    hindered = {"type": "hindered", "at": 1, "by": "its tab is hidden", "hint": "bring it to the front"}
    taken(page, [{"call": one, "seq": seq + 1, "fact": hindered}], [])
    page.until("document.querySelector('.summary').dataset.kind === 'hindered'")
    says(page, "its tab is hidden, bring it to the front")
    asking.api.post(f"/api/calls/{one}/cancel", {})


def test_the_calls_below_a_call_are_counted_and_listed(asking: Console, page: Page) -> None:
    """V1: also long after they ended; each leads back to the one above."""
    one = asking.api.start("gather", n=3)
    asking.api.ended(one)
    show(asking, page, one)
    page.until(f"{heading('Calls below it')}?.innerText.includes('4 calls, 1 failed')")
    rows = f"[...{heading('Calls below it')}.querySelectorAll('tbody tr')]"
    page.until(f"{rows}.length === 4")
    page.evaluate(f"{rows}[0].querySelector('a').click()")
    click(page, "part of another call")
    page.until(f"{HERE}.endsWith({one!r})")


def test_what_went_over_the_wire_is_shown_and_its_trace_copied(asking: Console, page: Page) -> None:
    """V1: the messages of a caller, word for word; the id of its trace, to look it up elsewhere."""
    with Http(asking.gateway.url) as client:
        meta = {"progressToken": 7, "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        last(client.post(call("step", {"n": 2, "step_s": 0.01}, id=31, **meta)))
    one = asking.api.get("/api/calls?tool=step&limit=1").body["calls"][0]["id"]
    show(asking, page, one)
    says(page, f"trace {TRACE}")
    click(page, "Copy", ".summary")
    says(page, "Copied")
    page.evaluate(f"{heading('Wire')}.querySelector('summary').click()")
    lines = f"[...{heading('Wire')}.querySelectorAll('.wire > li')].map((one) => one.innerText)"
    told = page.until(f"{lines}.length >= 2 && {lines}")
    assert "caller → gateway tools/call" in told[0] and "gateway → caller answer to 31" in told[-1]
    page.evaluate(f"{heading('Wire')}.querySelector('.wire summary').click()")
    says(page, "progressToken")


def test_without_a_recording_the_wire_says_how_to_have_one(tmp_path: Path, plain: Chromium) -> None:
    """V1: off by default, and the setting has its name there."""
    with answering(tmp_path, plain) as console:
        one = console.api.start("step", n=1, step_s=0)
        console.api.ended(one)
        tab = console.open(f"/calls/{one}")
        tab.until(f"Boolean({heading('Wire')})")
        tab.evaluate(f"{heading('Wire')}.querySelector('summary').click()")
        says(tab, "record_wire")


def test_a_secret_is_given_anew_when_a_call_is_run_again(asking: Console, page: Page) -> None:
    """V1, S4: its field is empty and required; what is typed into it is kept nowhere."""
    one = asking.api.start("log_in", user="ann", password="old secret", note="hi")
    asking.api.ended(one)
    show(asking, page, one)
    page.until(f"{heading('Arguments')}.innerText.includes('not shown: it is secret')")
    click(page, "Run again…")
    labels = "[...document.querySelectorAll('label')]"
    field = f"{labels}.find((one) => one.innerText.startsWith('password')).control"
    page.until("document.querySelectorAll('form.sheet label').length > 2")
    assert page.evaluate(f"[{field}.value, {field}.type, {field}.ariaRequired]") == ["", "password", "true"]
    click(page, "Run it again")
    page.until(f"{field}.getAttribute('aria-invalid') === 'true'")
    assert page.evaluate(HERE).endswith(one)
    fill(page, "password", SECRET)
    assert "$HOME" not in page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})")
    click(page, "Run it again")
    page.until(f"{HERE}.startsWith('/calls/') && !{HERE}.endsWith({one!r})")
    again = asking.api.ended(page.evaluate(HERE).rpartition("/")[2])
    assert again["result"]["content"][0]["text"] == f"ann, {len(SECRET)}, hi"


def test_a_secret_is_a_variable_of_the_command(asking: Console, page: Page) -> None:
    """V1, S4: a real shell and the real command; while it is not set nothing runs."""
    one = asking.api.start("log_in", user="it's me", password="old secret")
    asking.api.ended(one)
    show(asking, page, one)
    click(page, "Copy as command…")
    says(page, "Set it first, in MY_PASSWORD.")
    line = page.until("document.querySelector('.command')?.textContent")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    common = {**asking.gateway.environment, "PATH": path}
    for secret in ("", SECRET):
        done = subprocess.run(
            ["bash", "-s"], input=line.encode(), env=common | {"MY_PASSWORD": secret},
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode == 0) == bool(secret), done.stderr
    newest = asking.api.get("/api/calls?tool=log_in&limit=1").body["calls"][0]
    assert asking.api.call(newest["id"])["result"]["content"][0]["text"] == f"it's me, {len(SECRET)}, "
