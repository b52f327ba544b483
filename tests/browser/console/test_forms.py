"""Forms of a schema in a real browser: what is nested, what may be null, and what is no field at all."""

from collections.abc import Iterator

import pytest

from tests.browser.chromium import Chromium
from tests.browser.console.asking_console import answering, click, fill, says
from tests.browser.console.console_client import Console
from tests.browser.page import Page

HERE = "location.pathname"
LABEL = "[...document.querySelectorAll('main label')].find((one) => one.innerText.startsWith({!r}))"


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """A gateway whose tools take every kind of argument."""
    with answering(tmp_path_factory.mktemp("form"), plain_browser) as console:
        yield console


def started(asking: Console, page: Page) -> dict[str, object]:
    """The arguments of the call that the form has started."""
    call = page.until(f"{HERE}.startsWith('/calls/') && {HERE}.slice(7)")
    given = dict(asking.api.call(call)["arguments"])
    if question := asking.api.question(call):
        asking.api.post(f"/api/questions/{question['id']}/answer", {"content": {"decision": "skip"}})
    return given


def test_objects_in_lists_and_what_may_be_null_are_fields(asking: Console, plain: Chromium) -> None:
    """V1: items come and go, null is a tick, and focus is never lost."""
    page = asking.open("/tools/pack")
    for number in (1, 2, 3):
        click(page, "Add")
        page.until(f"document.querySelectorAll('form ol > li').length === {number}")
    widths = "[...document.querySelectorAll('form li .fields > .field:first-child input')]"
    for number in (1, 2, 3):
        page.evaluate(f"{widths}[{number - 1}].focus()")
        page.call("Input.insertText", text=f"{number}0")
    page.evaluate("document.querySelectorAll('form li [aria-label=\"Remove boxes 2\"]')[0].click()")
    page.until("document.querySelectorAll('form ol > li').length === 2")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Add boxes"
    page.evaluate("document.querySelector('form li input[type=checkbox]').click()")
    fill(page, "label", "first")
    click(page, "Run")
    boxes = [{"width": 10, "label": "first"}, {"width": 30, "label": None}]
    assert started(asking, page) == {"boxes": boxes, "limit": None}
    assert page.evaluate("odd") == []


def test_what_is_no_field_is_written_as_json(asking: Console, plain: Chromium) -> None:
    """V1: with an error while it is none, at its place; a long number keeps its digits."""
    page = asking.open("/tools/burn")
    fill(page, "path", "/a")
    fill(page, "more", '{"n": 12345678901234567890')
    says(page, "Is not JSON")
    click(page, "Run")
    assert page.evaluate(HERE) == "/tools/burn"
    fill(page, "more", '{"n": 12345678901234567890}')
    click(page, "Run")
    assert started(asking, page) == {"path": "/a", "more": {"n": 12345678901234567890}}


def test_a_form_with_a_secret_keeps_no_draft(asking: Console, plain: Chromium) -> None:
    """S4: nothing of it is stored; a form without one is there again after a reload."""
    page = asking.open("/tools/store_key")
    fill(page, "name", "mine")
    fill(page, "key", "abc-very-secret")
    assert page.evaluate(f"{LABEL.format('key')}.control.type") == "password"
    assert "very-secret" not in page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})")
    page.reload()
    page.until(f"{LABEL.format('name')}?.control.value === ''")
    page.navigate(f"{asking.api.url}/tools/erase")
    fill(page, "path", "/half written")
    page.reload()
    page.until(f"{LABEL.format('path')}?.control.value === '/half written'")
