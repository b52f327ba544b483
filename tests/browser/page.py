"""A tab, frame or worker of a test's Chromium: looked into, steered, closed, crashed."""

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from afoot.providers.browser.cdp.connection import CommandError

if TYPE_CHECKING:
    from tests.browser.chromium import Chromium

STEP_S = 30.0


class Page:
    """What is attached to; `target` is its id for the whole browser."""

    def __init__(self, browser: "Chromium", target: str, session: str) -> None:
        self.browser, self.target, self.session = browser, target, session
        self._is_enabled = False

    def call(self, method: str, /, **params: Any) -> Any:
        """One command to it."""
        return self.browser.call(method, params, self.session)

    def evaluate(self, script: str, *, frame: str = "", limit_s: float = STEP_S) -> Any:
        """The JSON value of an expression in the page's own world; a promise is waited for.

        `frame`: part of the address of the frame that is meant.
        """
        if frame:
            return self.frame(frame).evaluate(script, limit_s=limit_s)
        params: dict[str, Any] = {
            "expression": script, "awaitPromise": True, "returnByValue": True, "userGesture": True,
        }  # fmt: skip
        found = self.browser.call("Runtime.evaluate", params, self.session, limit_s)
        if "exceptionDetails" in found:
            thrown = found["exceptionDetails"].get("exception", {})
            raise Thrown(thrown.get("description") or str(thrown.get("value")))
        return found["result"].get("value")

    def frame(self, part: str) -> "Page | Frame":
        """The frame whose address has this part: of another process, or of this one."""
        end = time.monotonic() + STEP_S
        while time.monotonic() < end:
            for target in self.browser.targets("iframe"):
                if part in target["url"]:
                    return self.browser.attach(target["targetId"])
            for frame in _frames(self.call("Page.getFrameTree")["frameTree"]):
                if part in frame["url"] + frame.get("urlFragment", ""):
                    return Frame(self, frame["id"])
            time.sleep(0.02)
        pytest.fail(f"no frame {part} within {STEP_S:g} s")

    def until(self, script: str, limit_s: float = STEP_S) -> Any:
        """Wait until an expression is true, and give its value; the page may load anew meanwhile."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            with suppress(CommandError):
                if found := self.evaluate(script):
                    return found
            time.sleep(0.02)
        pytest.fail(f"not true within {limit_s:g} s: {script}")

    def event(self, method: str, after: int = 0) -> dict[str, Any]:
        """The params of an event of this session, behind that many of the browser."""
        return self.browser.event(method, self.session, after)

    def navigate(self, url: str) -> None:
        """Go to an address; it has loaded when this returns."""
        self._enable()
        before = len(self.browser.events)
        went = self.call("Page.navigate", url=url)
        assert not went.get("errorText"), f"{url}: {went['errorText']}"
        self.event("Page.loadEventFired", before)

    def reload(self) -> None:
        """Load it again; it has loaded when this returns."""
        self._enable()
        before = len(self.browser.events)
        self.call("Page.reload")
        self.event("Page.loadEventFired", before)

    def _enable(self) -> None:
        """Have it tell what it does; what has crashed cannot be asked any more."""
        if not self._is_enabled:
            self.call("Page.enable")
            self._is_enabled = True

    def go(self, steps: int) -> None:
        """Back (-1) or forward (1) in its history."""
        past = self.call("Page.getNavigationHistory")
        entry = past["entries"][past["currentIndex"] + steps]
        self.call("Page.navigateToHistoryEntry", entryId=entry["id"])

    def activate(self) -> None:
        """Bring it to the front; what was there is hidden."""
        self.browser.call("Target.activateTarget", {"targetId": self.target})

    def close(self) -> None:
        """Close it."""
        self.browser.call("Target.closeTarget", {"targetId": self.target})

    def detach(self) -> None:
        """Leave it alone: a worker that nobody looks into may rest."""
        self.browser.call("Target.detachFromTarget", {"sessionId": self.session})

    def crash(self) -> None:
        """Crash what draws it; the command itself is never answered."""
        self._enable()
        self.call("Inspector.enable")
        before = len(self.browser.events)
        with suppress(TimeoutError, CommandError):
            self.browser.call("Page.crash", {}, self.session, 0.2)
        self.event("Inspector.targetCrashed", before)


class Frame:
    """A frame in the same process as its page."""

    def __init__(self, page: Page, frame: str) -> None:
        self.page, self.id = page, frame

    def evaluate(self, script: str, *, limit_s: float = STEP_S) -> Any:
        """As a page's, in the frame's own world."""
        before = len(self.page.browser.events)
        with suppress(CommandError):
            self.page.call("Runtime.disable")
        self.page.call("Runtime.enable")  # tells of every world again
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            event = self.page.event("Runtime.executionContextCreated", before)["context"]
            if event["auxData"]["frameId"] == self.id and event["auxData"]["isDefault"]:
                return in_world(self.page, event["uniqueId"], script, limit_s)
            before += 1
        pytest.fail(f"the frame has no world within {limit_s:g} s")


class Thrown(Exception):
    """What a script in a page threw."""


def in_world(page: Page, world: str, script: str, limit_s: float) -> Any:
    """As a page's `evaluate`, in one of its worlds."""
    params: dict[str, Any] = {
        "expression": script, "awaitPromise": True, "returnByValue": True, "uniqueContextId": world,
    }  # fmt: skip
    found = page.browser.call("Runtime.evaluate", params, page.session, limit_s)
    if "exceptionDetails" in found:
        raise Thrown(found["exceptionDetails"].get("exception", {}).get("description", ""))
    return found["result"].get("value")


def _frames(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """All frames of a tree but its root."""
    below = [child["frame"] for child in tree.get("childFrames", [])]
    return below + [frame for child in tree.get("childFrames", []) for frame in _frames(child)]
