"""The clocks that the console shows are those of the engine, whatever happens to the page (V5)."""

from collections.abc import Iterator

import pytest

from tests.browser.chromium import Chromium
from tests.browser.console.console_client import Console, at, attended
from tests.browser.page import Page

WRONG_DATE = "{ const now = Date.now; Date.now = () => now() - 3_600_000; }"
TOLERANCE_S = 0.2
# The figures of a row before and after the engine was asked for the clocks of its call, in seconds.
ASK = """
(async (id) => {
  const { get } = await import("/console/lib/api.js");
  const row = document.querySelector(`[data-call="${id}"]`);
  const read = (part) => {
    const text = row.querySelector(`${part} .figure`).innerText;
    return text.endsWith(" s") ? Number(text.slice(0, -2)) :
      text.split(":").reduce((sum, digits) => sum * 60 + Number(digits), 0);
  };
  const before = { silent: read(".silent"), used: read(".elapsed") };
  const { clocks, opened, elapsed_s, questions } = await get(`/api/calls/${id}`);
  const at = opened + elapsed_s;
  const after = { silent: read(".silent"), used: read(".elapsed") };
  const used = clocks.spent_s + (clocks.since === null ? 0 : at - clocks.since);
  const silent = questions.length ? questions[0].expires - at : at - clocks.heard;
  return { before, after, engine: { silent, used } };
})
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """One gateway for these tests."""
    with attended(tmp_path_factory.mktemp("clocks"), plain_browser) as one:
        yield one


@pytest.fixture
def console(served: Console) -> Console:
    """The gateway with no tab of another test."""
    served.browser.clear()
    return served


def assert_true(page: Page, call: str, slack_s: float = TOLERANCE_S) -> None:
    """Check that the row's figures are the engine's; the answer was on its way for a while."""
    found = page.evaluate(f"{ASK}('{call}')")
    for clock in ("silent", "used"):
        low, high = sorted((found["before"][clock], found["after"][clock]))
        assert low - slack_s <= found["engine"][clock] <= high + slack_s, (clock, found)


def until_true(page: Page, call: str) -> None:
    """Wait until the row's silence is the engine's: a heartbeat of this very moment is still on its way."""
    is_true = f"({{ before, engine }}) => Math.abs(before.silent - engine.silent) < {TOLERANCE_S}"
    page.until(f"{ASK}('{call}').then({is_true})")


def test_the_clocks_of_a_row_are_those_of_the_engine(console: Console) -> None:
    """V5: with a wrong date in the browser, after a heartbeat, a broken connection and a reload."""
    page = console.open("/live", WRONG_DATE)
    silent = console.api.start("speak_oddly", sleep_s=60)
    alive = console.api.start("wait_for_index", beat_s=0.3)
    for call in (silent, alive):
        page.until(f"{at(call)}?.querySelector('.silent .figure').innerText")
    page.until(f"{at(silent)}.querySelector('.elapsed .figure').innerText >= '2.0 s'")
    assert_true(page, silent)
    until_true(page, alive)
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")  # a new stream
    page.until("import('/console/lib/event_feed.js').then(({ isLeading }) => isLeading())")
    assert_true(page, silent)
    until_true(page, alive)
    page.reload()
    page.until(f"{at(silent)}?.querySelector('.silent .figure').innerText")
    assert_true(page, silent)


def test_both_clocks_stand_still_while_a_person_is_asked_and_go_on_with_the_answer(console: Console) -> None:
    """V5, C6: the time left to answer stands in place of the silence."""
    page = console.open()
    call = console.api.start("ask_which")
    question = console.api.asked(call)
    row = at(call)
    page.until(f"{row}?.dataset.state === 'waiting' && {row}.querySelector('.silent .figure').innerText")
    assert page.evaluate(f"{row}.querySelector('.ring').dataset.frozen") == "asked"
    assert page.evaluate(f"{row}.querySelector('.ceiling').dataset.frozen") == "asked"
    assert_true(page, call, 1.0)  # minutes have no tenths
    console.api.post(f"/api/questions/{question['id']}/answer", {"content": {"colour": "red"}})
    page.until(f"{row}.dataset.state === 'done'")
    assert page.evaluate(f"{row}.querySelector('.silent .figure').innerText") == ""
