"""A browser at a debugging port on odd days: half characters, faults of ours, what is no browser."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from afoot.errors import CallerError
from afoot.providers.browser.cdp.browser import CdpBrowser, make_cdp_browser
from afoot.providers.browser.chromium import Chromium
from afoot.providers.browser.profiles import Carrier
from afoot.wire.browser_data import PluginBundle
from afoot.wire.extension import (
    FromBrowser,
    LinkHello,
    LinkWelcome,
    PageContextOpened,
    PageContextTools,
    PluginSync,
    TabList,
)
from tests.providers.fake_run import until

PAGE = {"targetId": "T1", "type": "page", "title": "Shop", "url": "http://shop.example/"}
RELAY = {
    "id": 2, "origin": "http://shop.example", "name": "afoot.relay.m", "uniqueId": "u2",
    "auxData": {"frameId": "T1", "isDefault": False},
}  # fmt: skip
MAIN = {**RELAY, "id": 1, "name": "", "uniqueId": "u1", "auxData": {"frameId": "T1", "isDefault": True}}


class Wire:
    """A browser that answers every command, with what a test wants."""

    def __init__(self, **answers: object) -> None:
        self.answers = answers
        self.commands: list[dict[str, Any]] = []
        self._said: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def send(self, message: bytes) -> None:
        """A command; it is answered at once."""
        command = msgspec.json.decode(message)
        self.commands.append(command)
        answer = self.answers.get(command["method"].replace(".", "_"), {"result": {}})
        self.raw(msgspec.json.encode({"id": command["id"], **answer}))  # pyrefly: ignore[invalid-argument]

    def raw(self, message: bytes) -> None:
        """Say anything."""
        self._said.put_nowait(message)

    def event(self, method: str, session: str = "", **params: object) -> None:
        """Say that something happened."""
        self.raw(msgspec.json.encode({"method": method, "params": params, "sessionId": session}))

    def speak(self, payload: str) -> None:
        """What the relay of the page says."""
        called = {"name": "afootSend", "payload": payload, "executionContextId": 2}
        self.event("Runtime.bindingCalled", "s1", **called)

    async def messages(self) -> AsyncIterator[bytes | str]:
        """What was said."""
        while (message := await self._said.get()) is not None:
            yield message

    async def close(self) -> None:
        """It is gone."""
        self._said.put_nowait(None)


class Ear:
    """Hears one browser, and breaks over some of what it says."""

    def __init__(self) -> None:
        self.told_all: list[FromBrowser] = []
        self.lefts: list[str] = []
        self.breaks_over: type = type(None)

    def on_connect(self, carrier: Carrier, hello: LinkHello) -> LinkWelcome:
        """It is there."""
        return LinkWelcome("e")

    def on_frame(self, carrier: Carrier, message: FromBrowser) -> None:
        """It says something."""
        if isinstance(message, self.breaks_over):
            raise KeyError("a fault of ours")
        self.told_all.append(message)

    def on_disconnect(self, carrier: Carrier, why: str, grace_s: float) -> None:
        """It is gone."""
        self.lefts.append(why)

    def tools(self) -> list[str]:
        """The tools that it told."""
        return [tool.name for one in self.told_all if isinstance(one, PageContextTools) for tool in one.tools]


@asynccontextmanager
async def reached(wire: Wire, *worlds: dict[str, Any]) -> AsyncIterator[tuple[CdpBrowser, Ear]]:
    """A carrier that has a browser with one page."""
    ear = Ear()

    async def dial() -> Wire:
        return wire

    async with CdpBrowser("http://127.0.0.1:9", dial, ear, "m") as cdp:
        async with asyncio.timeout(10):
            await cdp.joined.wait()
        wire.event("Target.targetCreated", targetInfo=PAGE)
        wire.event("Target.attachedToTarget", sessionId="s1", targetInfo=PAGE)
        for world in worlds or (MAIN, RELAY):
            wire.event("Runtime.executionContextCreated", "s1", context=world)
        wire.speak('{"method": "open", "params": {}}')
        yield cdp, ear


async def test_half_a_character_costs_nothing_but_itself() -> None:
    """B5: a tool whose words hold half of a surrogate pair is heard, and so is what comes after it."""
    wire = Wire()
    async with reached(wire) as (_, ear):
        wire.speak(r'{"method": "tab.tools", "params": {"tools": [{"name": "a", "title": "\ud83d"}]}}')
        wire.raw(rb'{"method": "Runtime.bindingCalled", "sessionId": "s1", "params": {"name": "afootSend",'
                 rb' "executionContextId": 2, "more": "\udc00", "payload": "{\"method\": \"tab.tools\",'
                 rb' \"params\": {\"tools\": [{\"name\": \"b\"}]}}"}}')  # fmt: skip
        await until(lambda: ear.tools() == ["a", "b"])


async def test_a_fault_of_ours_over_one_page_ends_nothing_of_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """B5, B6: what one page says is counted and logged as our fault; the browser stays connected."""
    wire = Wire()
    async with reached(wire) as (cdp, ear):
        await until(lambda: any(isinstance(one, TabList) for one in ear.told_all))
        ear.breaks_over = PageContextTools
        wire.speak('{"method": "tab.tools", "params": {"tools": []}}')
        await until(lambda: cdp.state.dropped.get("faults of ours") == 1)
        ear.breaks_over = type(None)
        wire.speak('{"method": "tab.tools", "params": {"tools": [{"name": "a"}]}}')
        await until(lambda: ear.tools() == ["a"])
        assert (ear.lefts, "a fault of ours" in caplog.text) == ([], True)


async def test_a_tab_is_of_its_own_origin_before_the_browser_has_told_of_its_page() -> None:
    """A1, B5: its tools are not taken for those of a frame somewhere else, which would be off."""
    wire = Wire()
    async with reached(wire, RELAY) as (_, ear):
        await until(lambda: [one.room.top for one in ear.told_all if isinstance(one, PageContextOpened)])
        (opened,) = [one.room for one in ear.told_all if isinstance(one, PageContextOpened)]
        assert (opened.origin, opened.top, opened.frame) == (
            "http://shop.example",
            "http://shop.example",
            "0",
        )


async def test_a_browser_that_cannot_be_started_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B5: no profile, and no open pipe."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = os.listdir("/proc/self/fd")
    with pytest.raises(CallerError, match="cannot be started"):
        await Chromium(binary=str(tmp_path / "none")).__aenter__()
    assert (os.listdir(tmp_path), os.listdir("/proc/self/fd")) == ([], before)


def test_two_gateways_of_one_person_are_told_apart_in_a_browser_by_their_histories() -> None:
    """B7: where a host starts a second one, neither hears the runs of the other, nor stops them."""
    first, again, other = (
        make_cdp_browser("http://127.0.0.1:9", Ear(), store) for store in ("", "", "stdio-7.db")
    )
    assert first._names.relay == again._names.relay != other._names.relay


async def test_old_code_of_plugins_is_forgotten() -> None:
    """B2: whoever saves a file all day fills no memory."""
    wire = Wire()
    async with reached(wire) as (cdp, _):
        for number in range(20):
            body = PluginBundle("notes", f"h{number}", "k", ["http://other.example/*"], body="1")
            assert cdp.send(PluginSync([body]))
        assert cdp._targets is not None
        assert list(cdp._targets.worlds._binding_listener.plugins) == ["afoot.plugin.m.notes@h19"]


@pytest.mark.parametrize("answer", [{}, {"result": []}, {"result": {"product": 7}}])
async def test_what_is_no_browser_is_tried_again_and_said(answer: dict[str, object]) -> None:
    """B5: whatever answers at the port, the carrier goes on trying."""
    dials, said = 0, ""

    async def dial() -> Wire:
        nonlocal dials
        dials += 1
        return Wire(Browser_getVersion=answer)

    async with CdpBrowser("http://127.0.0.1:9", dial, Ear(), "m") as cdp:
        await until(lambda: dials >= 2)
        said = cdp.state.error
    assert "http://127.0.0.1:9" in said
