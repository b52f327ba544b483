"""Lines: one a profile, the same over all of its sockets."""

import pytest
from msgspec import json

from afoot.providers.browser import extension
from afoot.providers.browser.extension import ExtensionLinks
from afoot.wire.extension import LinkHello, PageContextGone, Ping, RunResultAck
from tests.serve.extension.fake_extension import Listener


class Wire:
    """A socket that keeps what it is told."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.closed: list[int] = []

    def put(self, frame: bytes) -> bool:
        self.sent.append(json.decode(frame)["method"])
        return not self.closed

    def close(self, code: int, why: str) -> None:
        self.closed.append(code)


def test_a_browser_is_named_by_its_label_or_its_profile() -> None:
    """B1: for people."""
    lines = ExtensionLinks(Listener(), lambda: 5.0)
    assert lines.attach(Wire(), LinkHello("1", "0123456789ab"), 0.0).name == "browser 01234567"
    assert lines.attach(Wire(), LinkHello("1", "0123456789ab", label="work"), 1.0).name == "work"
    assert len(lines.connected()) == 1


def test_a_welcome_is_the_first_that_a_browser_is_sent() -> None:
    """B1: whatever else is said at that moment comes behind it."""
    wire, listener = Wire(), Listener()
    listener.early = [RunResultAck("a", "r")]
    line = ExtensionLinks(listener, lambda: 5.0).attach(wire, LinkHello("1", "p"), 0.0)
    assert line.send(Ping()) and wire.sent == ["link.welcome", "tool.settled", "ping"]


def test_what_an_old_socket_says_or_loses_changes_nothing() -> None:
    """B7: a frame counts over the link it came by, while that is the browser's."""
    listener = Listener()
    lines = ExtensionLinks(listener, lambda: 5.0)
    old, new = Wire(), Wire()
    line = lines.attach(old, LinkHello("1", "p"), 0.0)
    assert lines.attach(new, LinkHello("1", "p"), 1.0) is line and old.closed == [4409]
    lines.receive(line, old, PageContextGone("a"))
    lines.detach(line, old, "late")
    assert [what for what, *_ in listener.heard] == ["joined", "left", "joined"]
    assert line.socket is new and line.since == 1.0
    lines.receive(line, new, PageContextGone("a"))
    lines.detach(line, new, "gone")
    assert [what for what, *_ in listener.heard[3:]] == ["told", "left"]
    assert listener.heard[-1] == ("left", "gone", 5.0)
    assert not line.send(Ping())


def test_the_grace_is_the_one_that_is_set_now() -> None:
    """B6: settings change while a browser is there."""
    grace = [5.0]
    listener, wire = Listener(), Wire()
    lines = ExtensionLinks(listener, lambda: grace[0])
    line = lines.attach(wire, LinkHello("1", "p"), 0.0)
    grace[0] = 1.5
    lines.detach(line, wire, "gone")
    assert listener.heard[-1] == ("left", "gone", 1.5)


def test_browsers_that_are_gone_are_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """B1: fresh profiles come and go; one that is there is never forgotten."""
    monkeypatch.setattr(extension, "MAX_LINKS", 3)
    lines = ExtensionLinks(Listener(), lambda: 5.0)
    for number in range(10):
        wire = Wire()
        line = lines.attach(wire, LinkHello("1", f"p{number}"), 0.0)
        if number:
            lines.detach(line, wire, "gone")
    assert {line.profile for line in lines} == {"p0", "p8", "p9"}


def test_all_sockets_are_closed_at_once() -> None:
    """B7: as a new key wants it."""
    lines = ExtensionLinks(Listener(), lambda: 5.0)
    wires = [Wire(), Wire()]
    for number, wire in enumerate(wires):
        lines.attach(wire, LinkHello("1", f"p{number}"), 0.0)
    lines.close(4403, "another key")
    assert [wire.closed for wire in wires] == [[4403], [4403]]
