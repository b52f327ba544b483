"""A call's story in a real browser: its timeline and clocks, what hinders it, another run, what was sent."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium
from tests.browser.console.asking_console import answering, click, fill, says
from tests.browser.console.console_client import Console, press
from tests.browser.console.test_call import HERE, follow, heading, open_panel, show, values
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


def press_key(page: Page, key: str) -> None:
    """Press a key that writes nothing."""
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key)


def show_wire(page: Page) -> str:
    """Choose the messages of both sides in the story; returns the words of the chip."""
    chip = (
        "[...document.querySelectorAll('.call-story .chip')].find((one) => one.innerText.startsWith('Wire'))"
    )
    page.until(f"Boolean({chip})")
    page.evaluate(f"{chip}.click()")
    return str(page.evaluate(f"{chip}.innerText"))


def taken(page: Page, facts: list[object], readings: list[object]) -> None:
    """Have the page take in a frame of the feed, as the gateway would send it."""
    frame = json.dumps({"facts": facts, "readings": readings, "degraded": None})
    page.evaluate(f"import('/console/lib/store.js').then(({{ store }}) => store.receive('changes', {frame}))")


def test_a_live_call_is_drawn_up_to_now(asking: Console, page: Page) -> None:
    """V1, V5, P9: its bar grows, reports come, and the silence has a drawing that is told in words."""
    one = asking.api.start("step", n=2000, step_s=0.05)
    show(asking, page, one)
    width = "Number(document.querySelector('.wf-running')?.getAttribute('width'))"
    ticks = "document.querySelector('.wf-ticks')?.getAttribute('d').length"
    first, told = page.until(f"{ticks} > 0 && [{width}, {ticks}]")
    page.until(f"{width} !== {first} && {ticks} > {told}")
    assert page.evaluate("Number(document.querySelector('.wf-now').getAttribute('x1'))") > 0
    words = page.until("document.querySelector('.sawtooth svg')?.getAttribute('aria-label')")
    assert words.startswith("Silence over ") and words.endswith("limit 0:30")
    page.until("document.querySelectorAll('.wf-zoom button').length === 3")  # it has run for two seconds
    page.evaluate("document.querySelectorAll('.wf-zoom button')[1].click()")
    page.until("document.querySelector('.wf-lanes').scrollLeft > 0")  # now is in sight, and stays there
    now = "Number(document.querySelector('.wf-now').getAttribute('x1'))"
    page.until(f"{now} > 0 && {now} < document.querySelector('.wf-lanes').clientWidth")
    asking.api.post(f"/api/calls/{one}/cancel", {})


def test_a_call_that_stalls_or_is_hindered_says_so(asking: Console, page: Page) -> None:
    """V1, C5: the state with its word, and what to do about it."""
    one = asking.api.start("step", n=2, step_s=50)
    show(asking, page, one)
    state = "document.querySelector('.call-state b')?.dataset.state"
    page.until(f"{state} === 'running'")
    taken(page, [], [{"call": one, "readings": 1, "stalled": True}])
    page.until(f"{state} === 'stalled'")
    seq = asking.api.call(one)["seq"]
    hindered = {"type": "hindered", "at": 1, "by": "its tab is hidden", "hint": "bring it to the front"}
    taken(page, [{"call": one, "seq": seq + 1, "fact": hindered}], [])
    page.until(f"{state} === 'held_up'")
    says(page, "its tab is hidden, bring it to the front")
    asking.api.post(f"/api/calls/{one}/cancel", {})


def test_a_tree_is_a_waterfall_that_keys_read(asking: Console, page: Page) -> None:
    """V1, V5: each call below has its row and a way to its page; the arrow keys tell what happened when."""
    one = asking.api.start("gather", n=3)
    asking.api.ended(one)
    show(asking, page, one)
    page.until(f"{heading('Timeline')}?.innerText.includes('4 sub-calls, 1 at once at most')")
    rows = "[...document.querySelectorAll('.wf-name')].map((one) => one.innerText.replaceAll('\\n', ''))"
    names = page.evaluate(rows)
    assert names[0].startswith("gather, done, ")
    assert [", failed, " in name for name in names].count(True) == 1 and len(names) == 5
    assert page.evaluate("document.querySelectorAll('.wf-end[data-state=failed]').length") == 1
    lanes = "document.querySelector('.wf-lanes')"
    page.evaluate(f"{lanes}.focus()")
    told = f"{lanes}.getAttribute('aria-valuetext')"
    assert page.evaluate(told).startswith("5 calls over ")
    for key in ("ArrowDown", "End"):
        press_key(page, key)
    page.until(f"{told}.startsWith('step at ')")
    assert "before: step 1" in page.evaluate(told)
    assert page.evaluate("document.querySelector('.wf-card').checkVisibility()")
    page.evaluate("document.querySelectorAll('.wf-name a')[0].click()")
    page.until(f"!{HERE}.endsWith({one!r})")
    follow(page, "another call")
    page.until(f"{HERE}.endsWith({one!r})")


def test_while_a_person_is_asked_both_clocks_stand_still(asking: Console, page: Page) -> None:
    """V5, C2: it says so with the time left; afterwards the wait is a mark, and who answered is a fact."""
    one = asking.api.start("erase", path="a.txt")
    question = asking.api.asked(one)
    show(asking, page, one)
    says(page, "Both stand still while a person is asked, ")
    page.until("document.querySelector('.call-column .ring')?.dataset.frozen === 'asked'")
    answer = {"action": "accept", "content": {"decision": "run"}}
    assert asking.api.post(f"/api/questions/{question['id']}/answer", answer).status == 200
    page.until("document.querySelector('.call-state b')?.dataset.state === 'done'")
    page.until("Boolean(document.querySelector('.wf-asked'))")
    says(page, "Run, answered through the API after ")
    says(page, "asked, which does not count")


def test_two_runs_are_compared(asking: Console, page: Page) -> None:
    """V1: by keys from the later one to the earlier one and back; what differs has a sign."""
    first = asking.api.start("step", n=1, step_s=0.05)
    asking.api.ended(first)
    second = asking.api.start("step", n=2, step_s=0.05)
    asking.api.ended(second)
    show(asking, page, second)
    page.until("document.querySelector('[data-run=earlier]')?.checkVisibility()")
    page.evaluate("document.querySelector('.call-buttons button').click()")
    page.until(f"location.search === '?with={first}'")
    rows = "[...document.querySelectorAll('.call-compare tr[data-differs]')].map((one) => one.innerText)"
    page.until(f"{rows}.some((one) => /n\\t2\\t1/.test(one))")
    page.until("document.querySelectorAll('.call-compare .wf-running').length === 2")
    press(page, "[")
    page.until(f"{HERE}.endsWith({first!r})")
    page.until(f"document.querySelector('[data-run=later]')?.getAttribute('href') === '/calls/{second}'")
    press(page, "]")
    page.until(f"{HERE}.endsWith({second!r})")
    page.until(f"document.querySelector('[data-run=earlier]')?.getAttribute('href') === '/calls/{first}'")
    press(page, "r")
    says(page, "Run it again")


def test_what_went_over_the_wire_is_shown_and_its_trace_copied(asking: Console, page: Page) -> None:
    """V1: the messages of a caller, word for word; the id of its trace, to look it up elsewhere."""
    with Http(asking.gateway.url) as client:
        meta = {"progressToken": 7, "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        last(client.post(call("step", {"n": 2, "step_s": 0.01}, id=31, **meta)))
    one = asking.api.get("/api/calls?tool=step&limit=1").body["calls"][0]["id"]
    show(asking, page, one)
    assert values(page, "Trace").startswith(TRACE)
    click(page, "Copy the trace")
    says(page, "Copied")
    words = show_wire(page)
    lines = "[...document.querySelectorAll('.wire li')].map((one) => one.innerText.replaceAll('\\n', ' '))"
    told = page.until(f"{lines}.length >= 2 && {lines}")
    assert "caller → gateway tools/call" in told[0] and "gateway → caller answer to 31" in told[-1]
    assert words.split() == ["Wire", str(len(told))]
    page.evaluate("document.querySelector('.wire summary').click()")
    says(page, "progressToken")


def test_a_trace_is_a_link_where_its_page_is_configured(tmp_path: Path, plain: Chromium) -> None:
    """V1, V3: to the page of this trace, in another tab; the name of the site is told before."""
    config = tmp_path / "traces.toml"
    config.write_text('[otel]\nenabled = false\ntrace_url = "https://traces.example/{trace_id}?tab=1"\n')
    with answering(tmp_path, plain, config=str(config)) as console:
        with Http(console.gateway.url) as client:
            meta = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
            last(client.post(call("step", {"n": 1, "step_s": 0}, id=1, **meta)))
        one = console.api.get("/api/calls?limit=1").body["calls"][0]["id"]
        tab = console.open(f"/calls/{one}")
        assert values(tab, "Trace").startswith(TRACE)
        link = "document.querySelector('.trace-link')"
        told = tab.evaluate(f"[{link}.href, {link}.target, {link}.rel, {link}.title]")
        assert told == [
            f"https://traces.example/{TRACE}?tab=1",
            "_blank",
            "noopener noreferrer",
            f"{TRACE}, at traces.example",
        ]
        assert tab.evaluate("odd") == []


def test_without_a_recording_the_wire_says_how_to_have_one(tmp_path: Path, plain: Chromium) -> None:
    """V1: off by default, and the setting has its name there."""
    with answering(tmp_path, plain) as console:
        one = console.api.start("step", n=1, step_s=0)
        console.api.ended(one)
        tab = console.open(f"/calls/{one}")
        assert show_wire(tab) == "Wire"
        says(tab, "record_wire")


def test_a_secret_is_given_anew_when_a_call_is_run_again(asking: Console, page: Page) -> None:
    """V1, S4: its field is empty and required; what is typed into it is kept nowhere."""
    one = asking.api.start("log_in", user="ann", password="old secret", note="hi")
    asking.api.ended(one)
    show(asking, page, one)
    page.until(f"{heading('Arguments')}.innerText.includes('not shown: it is secret')")
    open_panel(page, "again")
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
    open_panel(page, "command")
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
