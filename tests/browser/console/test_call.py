"""A call in a real browser: watched, cancelled, run again; and whatever it returns, shown and never run."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium, until
from tests.browser.console.asking_console import answering, click, fill, says
from tests.browser.console.console_client import Console
from tests.browser.page import Page

HERE = "location.pathname"


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory, plain_browser: Chromium) -> Iterator[Console]:
    """A gateway whose tools ask and show."""
    with answering(tmp_path_factory.mktemp("call"), plain_browser) as console:
        yield console


@pytest.fixture
def page(asking: Console, plain: Chromium) -> Iterator[Page]:
    """A tab of the console; its policy refused nothing in it, and nothing was run."""
    tab = asking.open("/inbox")
    yield tab
    assert tab.evaluate("odd") == [] and tab.evaluate("globalThis.owned === undefined")


def show(asking: Console, page: Page, call: str) -> None:
    """The call in this tab."""
    page.navigate(f"{asking.api.url}/calls/{call}")
    page.until("Boolean(document.querySelector('main .call-columns'))")


def heading(title: str) -> str:
    """The part under this heading, as an expression."""
    return (
        "[...document.querySelectorAll('main section h2')]"
        f".find((one) => one.innerText.startsWith({title!r}))?.closest('section')"
    )


def open_panel(page: Page, name: str) -> None:
    """Open the panel below the head of a call: again, command or cancel."""
    button = f"document.querySelector('[data-opens={name}]')"
    page.until(f"{button}?.checkVisibility()")
    page.evaluate(f"{button}.click()")


def follow(page: Page, text: str) -> None:
    """Follow a link of the column beside a call; that moves while the rest of the page arrives."""
    link = f"[...document.querySelectorAll('.call-column a')].find((one) => one.innerText === {text!r})"
    page.until(f"Boolean({link})")
    page.evaluate(f"{link}.click()")


def values(page: Page, name: str) -> str:
    """A fact of the column beside a call."""
    found = f"[...document.querySelectorAll('.call-column dt')].find((one) => one.innerText === {name!r})"
    return str(page.until(f"{found}?.nextElementSibling.innerText"))


def test_a_call_is_watched_live_to_its_end(asking: Console, page: Page, tmp_path: Path) -> None:
    """V1, P9: bar and message move, then the result, the timeline and the story are there."""
    call = asking.api.start("step", n=40, step_s=0.05, gate=str(tmp_path / "gate"))
    show(asking, page, call)
    bar = "Number(document.querySelector('main [role=progressbar]')?.ariaValueNow) / 100"
    first = page.until(bar)
    (tmp_path / "gate").touch()
    page.until(f"{bar} > {first}")
    asking.api.ended(call)
    page.until(f"{heading('Result')}?.innerText.includes('there')")
    page.until(f"Boolean({heading('Timeline')}?.querySelector('.wf-running'))")
    lines = (
        f"[...{heading('Story')}.querySelectorAll('li')].map((one) => one.innerText.replaceAll('\\n', ' '))"
    )
    page.until(f"{lines}.at(-1).endsWith('Done')")
    story = page.evaluate(lines)
    assert "Opened by operator" in story[0] and "step 1" in story[1] and "39 reports folded" in story[2]
    page.evaluate(f"{heading('Story')}.querySelector('.fold-line').click()")
    page.until(f"{heading('Story')}.innerText.includes('step 40')")


def test_a_call_is_cancelled_with_a_reason(asking: Console, page: Page, tmp_path: Path) -> None:
    """X1: the words reach the call's end, and the page shows how far it got."""
    call = asking.api.start("step", n=400, step_s=0.05, gate=str(tmp_path / "never"))
    show(asking, page, call)
    says(page, "of 400")
    open_panel(page, "cancel")
    fill(page, "Why", "the wrong folder")
    click(page, "Cancel the call")
    assert asking.api.ended(call)["failure"]["message"].startswith("cancelled: the wrong folder")
    page.until(f"{heading('What went wrong')}?.innerText.includes('of 400')")
    assert page.evaluate(f"{heading('What went wrong')}.innerText").count("the wrong folder") == 1


def test_an_error_says_how_far_it_got(asking: Console, page: Page) -> None:
    """E2: what, how far, how long, and whether something may have happened."""
    call = asking.api.start("step", n=3, fail=True)
    asking.api.ended(call)
    show(asking, page, call)
    for words in ("the floor gave way", "3 of 3, step 3", "Side effects", "unavailable"):
        page.until(f"{heading('What went wrong')}?.innerText.includes({words!r})")


def test_a_call_is_run_again_with_other_arguments(asking: Console, page: Page) -> None:
    """V1, A6: a form with the old ones; a new call, linked, and approved anew."""
    call = asking.api.start("step", n=2)
    asking.api.ended(call)
    show(asking, page, call)
    open_panel(page, "again")
    fill(page, "n", "3")
    click(page, "Run it again")
    page.until(f"{HERE}.startsWith('/calls/') && !{HERE}.endsWith({call!r})")
    again = asking.api.ended(page.evaluate(HERE).rpartition("/")[2])
    assert (again["arguments"], again["rerun_of"]) == ({"n": 3}, call)
    page.until(f"{heading('Result')}?.innerText.includes('there')")
    follow(page, "an earlier call")
    page.until(f"{HERE}.endsWith({call!r})")


def test_after_an_uncertain_end_it_asks_twice(asking: Console, page: Page) -> None:
    """V1, U4: the first press only warns."""
    call = asking.api.start("step", n=400, step_s=0.05)
    asking.gateway.kill()
    asking.gateway.start()
    asking.api.url = asking.gateway.url.removesuffix("/mcp")
    assert asking.api.ended(call)["outcome"] == "uncertain"
    tab = asking.open(f"/calls/{call}")
    open_panel(tab, "again")
    fill(tab, "n", "1")
    click(tab, "Run it again")
    says(tab, "its effects may have happened. Press once more")
    assert tab.evaluate(HERE).endswith(call)
    click(tab, "Run it all the same")
    tab.until(f"!{HERE}.endsWith({call!r})")
    assert asking.api.ended(tab.evaluate(HERE).rpartition("/")[2])["outcome"] == "ok"


@pytest.mark.parametrize("kind", ["text", "table", "deep"])
def test_hostile_content_is_shown_as_text(asking: Console, page: Page, kind: str) -> None:
    """V1: markup stays words, and what cannot be seen has marks; nothing of it runs."""
    call = asking.api.start("show", kind=kind)
    asking.api.ended(call)
    show(asking, page, call)
    page.until(f"{heading('Result')}?.innerText.includes('<img src=x')")
    text = page.evaluate(f"{heading('Result')}.innerText")
    assert "⟨U+202E⟩" in text and "\u202e" not in text and "\x1b" not in text
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    if kind == "table":
        cells = "[...document.querySelectorAll('main td')].map((one) => one.innerText)"
        assert page.evaluate(cells)[1:] == ["1", "b", "2"]
    if kind == "deep":
        assert "12345678901234567890" in text


def test_pictures_sound_links_and_resources_are_shown(asking: Console, page: Page) -> None:
    """V1: an image is drawn, a link leads only to http and https, with its host and no opener."""
    call = asking.api.start("show_media")
    asking.api.ended(call)
    show(asking, page, call)
    page.until("document.querySelector('main img')?.naturalWidth === 1")
    links = "[...document.querySelectorAll('.content a[href^=http]')]"
    assert page.evaluate(f"{links}.map((one) => [one.href, one.rel, one.innerText])") == [
        ["https://example.com:8443/x", "noopener noreferrer", "a page (example.com:8443)"]
    ]
    says(page, "a trap javascript:globalThis.owned = true")
    says(page, "inside")
    odd = "({ contentBlocks }) => contentBlocks([{ type: 'constructor', a: 1 }]).textContent"
    assert page.evaluate(f"import('/console/components/content.js').then({odd})") == 'type: "constructor"a: 1'
    click(page, "Play")
    says(page, "This browser cannot play it")


def test_a_long_result_has_a_head_and_a_download(asking: Console, page: Page, tmp_path: Path) -> None:
    """V1: over 256 KB only the beginning is drawn; the rest is a file."""
    call = asking.api.start("show", kind="long")
    asking.api.ended(call)
    show(asking, page, call)
    page.until("Boolean(document.querySelector('.content a[download]'))")
    assert page.evaluate("document.querySelector('.content pre').innerText.length") < 20_000
    page.browser.call("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    click(page, "Download (625 KB)")
    file = tmp_path / "text.txt"
    until(lambda: file.exists() and file.stat().st_size == 640_000, "the file to be there")


def test_a_command_pasted_into_bash_makes_the_same_call(asking: Console, page: Page) -> None:
    """V1: with whatever is in its arguments; a real shell, and the real command."""
    kind = "it's `id` $(id) \"$HOME\" !! \\ \n\t\x1b[31m \u202e 🙂 '; touch owned; '"
    call = asking.api.start("show", kind=kind)
    asking.api.ended(call)
    show(asking, page, call)
    open_panel(page, "command")
    line = page.until("document.querySelector('.command')?.textContent")
    own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-s"], input=line.encode(), env={**asking.gateway.environment, **own},
        cwd=asking.gateway.folder, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    newest = asking.api.get("/api/calls?tool=show&limit=1").body["calls"][0]
    assert newest["id"] != call and asking.api.call(newest["id"])["arguments"] == {"kind": kind}
    assert not (asking.gateway.folder / "owned").exists()
