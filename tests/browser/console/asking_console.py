"""A console on a gateway whose tools ask and show: what the tests of inbox and call share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser.chromium import Chromium
from tests.browser.console.console_client import Console
from tests.browser.page import Page
from tests.e2e.gateway import TOOLS, Gateway

OWN = Path(__file__).parent / "answer_tools.py"
KEYS = {"Enter": ("\r", 13), "Tab": ("", 9), " ": (" ", 32)}


class Asking(Gateway):
    """A gateway with tools that ask."""

    def command(self, *surface: str) -> list[str]:
        """The command that serves them."""
        return [str(OWN) if part == str(TOOLS) else part for part in super().command(*surface)]


@contextmanager
def answering(folder: Path, browser: Chromium, **settings: Any) -> Iterator[Console]:
    """A console whose gateway is ended with the block."""
    gateway = Asking(folder, {"drain_s": 0.2, **settings})
    gateway.start()
    try:
        yield Console(gateway, browser)
    finally:
        gateway.stop()


def press(page: Page, key: str, *, back: bool = False) -> None:
    """A key of the keyboard, really."""
    text, code = KEYS[key]
    common: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if back else 0}
    page.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
    page.call("Input.dispatchKeyEvent", type="keyUp", **common)


def write(page: Page, text: str) -> None:
    """Text as somebody types it, where the focus is."""
    page.call("Input.insertText", text=text)


def click(page: Page, text: str, within: str = "main") -> None:
    """A click of the mouse on the button or link with this text, as soon as it is there and counts."""
    found = (
        f"[...document.querySelectorAll('{within} button, {within} a')]"
        f".find((one) => one.innerText.trim().split('\\n')[0] === {text!r} && one.checkVisibility())"
    )
    page.until(f"Boolean({found})")
    page.evaluate(f"void {found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    steady(page, found)
    where = page.evaluate(
        f"(({{x, y, width, height}}) => ({{x: x + width / 2, y: y + height / 2}}))"
        f"({found}.getBoundingClientRect())"
    )
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **where)


def steady(page: Page, found: str) -> None:
    """Wait until a button counts: it has looked where it is, and has been there for a while."""
    page.until(f"Boolean({found})")
    page.evaluate(
        f"""new Promise((done) => {{
          const look = () => {found}?.hasAttribute('aria-disabled') ? setTimeout(look, 50) : done();
          setTimeout(look, {found}.matches('[data-act=run], .main') ? 250 : 0);
        }})"""
    )


def tap(page: Page, key: str) -> None:
    """Press a letter outside of every field, as somebody does who steers by keys."""
    page.evaluate("document.activeElement.blur()")
    page.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
    page.call("Input.dispatchKeyEvent", type="keyUp", key=key)


def fill(page: Page, label: str, text: str) -> None:
    """Write into the field with this label, instead of what stands there."""
    page.until(
        f"""(() => {{
          const labels = [...document.querySelectorAll('main label')];
          const field = labels.find((one) => one.innerText.startsWith({label!r}))?.control;
          field?.focus();
          field?.select?.();
          return field === document.activeElement;
        }})()"""
    )
    write(page, text)


def says(page: Page, text: str) -> None:
    """Wait until the page says this somewhere."""
    page.until(f"document.querySelector('main').innerText.includes({text!r})")
