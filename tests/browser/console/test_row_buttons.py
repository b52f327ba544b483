"""The buttons of a row in a real browser: they answer, cancel, undo and run again in place (V1)."""

from collections.abc import Iterator

import pytest

from tests.browser.chromium import Chromium, until
from tests.browser.console.asking_console import answering, press, tap, write
from tests.browser.console.console_client import Console, start_clock, stop_clock
from tests.browser.page import Page

# The buttons for a call, alone in a page, with the keys of a selected call.
ROW = """(async (id) => {
  const parts = ["question/answer_row", "cancel", "call/call_keys"].map(
    (name) => import(`/console/components/${name}.js`));
  const [{ rowAnswer }, { cancelButton, rerunButton, undoCancel }, { registerCallKeys }] =
    await Promise.all(parts);
  const [{ store }, { scope }, { startKeys }] = await Promise.all(
    ["store", "signal", "keys"].map((name) => import(`/console/lib/${name}.js`)));
  if (!globalThis.hasKeys) startKeys();
  globalThis.hasKeys = true;
  while (!store.get(id)) await new Promise((done) => requestAnimationFrame(done));
  const entry = store.get(id);
  document.querySelector("#alone")?.remove();
  const row = document.createElement("div");
  row.id = "alone";
  scope(() => {
    row.append(rowAnswer(entry), undoCancel(entry), cancelButton(entry), rerunButton(entry));
    registerCallKeys(() => entry);
  });
  document.querySelector("main").prepend(row);
})"""
BUTTON = (
    "[...document.querySelectorAll('#alone button')]"
    ".find((one) => one.ariaLabel?.startsWith({!r}) && one.checkVisibility())"
)
PANEL = "document.querySelector('.floating')"


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """A gateway whose tools ask."""
    with answering(tmp_path_factory.mktemp("row"), plain_browser) as console:
        yield console


@pytest.fixture
def page(asking: Console, plain: Chromium) -> Iterator[Page]:
    """A fresh tab; nothing in it was refused by its policy."""
    page = asking.open("/tabs")
    yield page
    assert page.evaluate("odd") == []


def show(page: Page, call: str) -> None:
    """Show the buttons of a call."""
    page.evaluate(f"{ROW}({call!r})")


def until_ready(page: Page, label: str) -> str:
    """Wait until a button counts; gives it as an expression."""
    button = BUTTON.format(label)
    page.until(f"{button} && {button}.ariaDisabled !== 'true'")
    return button


def steps(asking: Console) -> list[str]:
    """The ids of the calls of the tool that takes steps, newest first."""
    return [one["id"] for one in asking.api.get("/api/calls?tool=step").body["calls"]]


def test_run_is_outlined_where_it_destroys_and_counts_only_when_it_stands_still(
    asking: Console, page: Page
) -> None:
    """V1, A2: reject left, run right; what has just appeared takes no click."""
    call = asking.api.start("erase", path="/a")
    stop_clock(page)
    show(page, call)
    page.until(BUTTON.format("Run") + " !== undefined")
    buttons = "[...document.querySelectorAll('#alone .pair button')]"
    words = f"{buttons}.map((one) => [one.innerText, one.className])"
    assert page.evaluate(words) == [["Reject…", "small"], ["Run", "small danger"]]
    page.evaluate(BUTTON.format("Run") + ".click()")
    assert asking.api.call(call)["state"] == "queued"
    start_clock(page)
    page.evaluate(until_ready(page, "Run") + ".click()")
    assert asking.api.ended(call)["outcome"] == "ok"


def test_a_rejection_with_words_opens_in_place(asking: Console, page: Page) -> None:
    """V1, A2: the field has the focus, Enter sends, and the panel is gone with its question."""
    call = asking.api.start("erase", path="/a")
    show(page, call)
    until_ready(page, "Run")
    tap(page, "n")
    page.until(f"{PANEL} && document.activeElement.localName === 'textarea'")
    write(page, "use the bin")
    press(page, "Enter")
    assert "use the bin" in asking.api.ended(call)["failure"]["message"]
    page.until(f"{PANEL} === null")


def test_a_form_is_filled_in_in_place(asking: Console, page: Page) -> None:
    """V1, Q2: the panel has the whole form, and stays open while something is wrong."""
    call = asking.api.start("book")
    show(page, call)
    page.until(BUTTON.format("Fill in") + " !== undefined")
    tap(page, "e")
    page.until(f"{PANEL}?.innerText.includes('Who comes, and when?')")
    page.evaluate(f"{PANEL}.querySelector('input').focus()")
    write(page, "Ann")
    press(page, "Enter")
    page.until(f"{PANEL}.innerText.includes('1 field needs a look')")
    write(page, "44")
    press(page, "Enter")
    assert asking.api.ended(call)["result"]["structured"]["content"]["age"] == 44
    page.until(f"{PANEL} === null")


def test_a_key_answers_only_half_a_second_after_its_question_appeared(asking: Console, page: Page) -> None:
    """V1, A2: y pressed too early does nothing, and later it runs."""
    call = asking.api.start("erase", path="/a")
    stop_clock(page)
    show(page, call)
    page.until(BUTTON.format("Run") + " !== undefined")
    tap(page, "y")
    assert asking.api.call(call)["state"] == "queued"
    start_clock(page)
    until_ready(page, "Run")
    tap(page, "y")
    assert asking.api.ended(call)["outcome"] == "ok"


def test_a_cancel_can_be_undone_and_a_call_is_run_again(asking: Console, page: Page) -> None:
    """V1: x, u and r; the gateway keeps the delay, and every other page sees it."""
    gate = str(asking.gateway.folder / "gate")
    call = asking.api.start("step", gate=gate)
    show(page, call)
    page.until("document.querySelector('#alone .undo-cancel').hidden")
    page.evaluate(until_ready(page, "Cancel step") + ".click()")
    page.until("/cancels in \\d\\.\\d s/.test(document.querySelector('#alone').innerText)")
    assert asking.api.call(call)["cancel_due"] > 0
    tap(page, "u")
    page.until("document.querySelector('#alone .undo-cancel').hidden")
    assert "cancel_due" not in asking.api.call(call)
    assert asking.api.call(call)["state"] == "running"
    asking.gateway.folder.joinpath("gate").touch()
    assert asking.api.ended(call)["outcome"] == "ok"
    until_ready(page, "Run step again")
    tap(page, "r")
    again = until(lambda: next((one for one in steps(asking) if one != call), ""), "the second run")
    assert asking.api.ended(again)["rerun_of"] == call


def test_a_call_is_approved_by_keyboard_alone_from_the_list(asking: Console, plain: Chromium) -> None:
    """V1, A2: j leads to the call, y runs it and no other; n leads to the words, Escape back to the list."""
    page = asking.open("/live")
    first, second = asking.api.start("erase", path="/a"), asking.api.start("erase", path="/b")
    rows = "[...document.querySelectorAll('.live-row[data-state=waiting]')]"
    page.until(f"{rows}.length === 2")
    chosen = "document.activeElement.closest('.live-row')?.querySelector('a.name')?.pathname"
    while page.evaluate(chosen) != f"/calls/{second}":
        page.call("Input.dispatchKeyEvent", type="keyDown", key="j", text="j")
        page.call("Input.dispatchKeyEvent", type="keyUp", key="j")
    run = "document.activeElement.closest('.live-row').querySelector('[data-act=run]')"
    page.until(f"{run} && {run}.ariaDisabled !== 'true'")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="n", text="n")
    page.until(f"{PANEL} && document.activeElement.localName === 'textarea'")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="Escape", windowsVirtualKeyCode=27)
    page.until(f"{PANEL} === null && {chosen} === '/calls/{second}'")
    page.until(f"{run}.ariaDisabled !== 'true'")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="y", text="y")
    assert asking.api.ended(second)["outcome"] == "ok"
    assert asking.api.call(first)["state"] == "queued"
    assert page.evaluate("odd") == []
