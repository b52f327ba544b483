"""The side panel on odd days: what moves under a pointer, answers that nobody hears, texts that steer."""

from typing import Any

import pytest

from tests.browser.chromium import until
from tests.browser.console.console_client import start_clock, stop_clock
from tests.browser.extension.fake_gateway import LOST, Joined
from tests.browser.extension.test_side_panel import CALL, QUESTION, link, one, panel, press, show
from tests.browser.page import Page

__all__ = ["link", "one", "panel"]

SECOND = {**QUESTION, "id": "c3.1", "call": "c3", "tool": "shop_wipe"}
WHERE = """(() => { const { x, y, width, height } = document.querySelector('[data-yes]')
  .getBoundingClientRect(); return { x: x + width / 2, y: y + height / 2 }; })()"""
# A right-to-left override and a zero-width space: what is read is not what is there.
STEERING = "\u202egnirts\u200b"


def click(page: Page, at: dict[str, float]) -> None:
    """A click of a mouse, wherever it is."""
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)


def answers(link: Joined, mark: int) -> list[dict[str, Any]]:
    """What was decided since."""
    return [heard.params for heard in link.gateway.heard[mark:] if heard.method == "panel.answer"]


def test_a_second_click_approves_nothing_that_came_under_it(link: Joined, panel: Page) -> None:
    """A5: whoever clicks twice has decided once; what has stood there for a moment can be clicked."""
    show(link, questions=[QUESTION, SECOND])
    panel.until("document.querySelectorAll('.narrow-question').length === 2")
    at, mark = panel.evaluate(WHERE), link.gateway.mark()

    def decided() -> bool:
        click(panel, at)
        return bool(answers(link, mark))

    until(decided, "the first click that counts")
    stop_clock(panel)
    show(link, questions=[SECOND])
    panel.until("document.querySelector('.narrow-question h3').innerText === 'shop_wipe'")
    assert panel.evaluate(WHERE) == pytest.approx(at)
    click(panel, at)
    click(panel, at)
    panel.evaluate("document.querySelector('.narrow-question').isConnected")
    assert [said["question"] for said in answers(link, mark)] == [QUESTION["id"]]
    start_clock(panel)
    until(lambda: decided() and len(answers(link, mark)) == 2, "a click after a moment")


def test_an_answer_that_nobody_hears_can_be_given_again(link: Joined, panel: Page) -> None:
    """A5, V6: it cannot be given while nobody hears it, and the buttons work again afterwards."""
    show(link, questions=[QUESTION], calls=[CALL])
    panel.until("!!document.querySelector('.narrow-question')")
    mark = link.gateway.mark()
    link.gateway.close(1001)
    panel.until("document.querySelector('[data-yes]').disabled")
    link.gateway.wait("link.hello", mark)
    show(link, questions=[QUESTION])
    panel.until("document.body.dataset.state === 'on'")
    panel.until("!document.querySelector('[data-yes]').disabled")
    press(panel, "Run")
    assert link.gateway.wait("panel.answer", mark).params["question"] == QUESTION["id"]


def test_an_answer_that_was_lost_on_its_way_can_be_given_again(link: Joined, panel: Page) -> None:
    """A5: the gateway was gone before it took it."""
    show(link, questions=[QUESTION])
    press(panel, "Run")
    panel.until("document.querySelector('[data-yes]').disabled")
    mark = link.gateway.mark()
    link.gateway.close(1001)
    link.gateway.wait(LOST, mark)
    panel.until("document.body.dataset.state === 'on' && !document.querySelector('[data-yes]').disabled")


def test_a_click_while_the_worker_rests_is_not_lost(link: Joined, panel: Page) -> None:
    """A5: it is said when the worker is there again, or the person is told."""
    show(link, questions=[QUESTION])
    panel.until("!!document.querySelector('.narrow-question')")
    mark = link.gateway.mark()
    link.browser.kill_worker(link.id)
    panel.evaluate("document.querySelector('[data-yes]').click()")
    link.gateway.wait("link.hello", mark)
    panel.until("!document.querySelector('[data-yes]')?.disabled")


def test_texts_of_pages_steer_nothing(link: Joined, panel: Page) -> None:
    """B7: reasons, titles and what a stranger at the port says are shown as they are written."""
    tab = {"key": "t1", "tab": "1", "state": "unavailable", "why": STEERING, "tools": 0}
    call = {**CALL, "tab": "1", "message": STEERING, "hindered": {"at": 1, "by": STEERING, "hint": STEERING}}
    show(link, calls=[call], tabs=[tab], questions=[{**QUESTION, "why": STEERING, "caller": STEERING}])
    panel.until("!!document.querySelector('.narrow-row') && !!document.querySelector('.narrow-question')")
    shown = panel.evaluate("document.body.innerText")
    assert "\u202e" not in shown and "\u200b" not in shown and "⟨U+202E⟩" in shown
