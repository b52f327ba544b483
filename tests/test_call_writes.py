"""A call changes through the functions of `core/call.py` alone, and every other write is found."""

from pathlib import Path

import pytest

from tests.call_writes import writes, writes_outside

SOURCE = Path(__file__).parent.parent / "src" / "afoot"


def test_nothing_writes_to_a_call_outside_its_module() -> None:
    """C1, H1: what no fact tells is not in the history, and every watcher would see another call."""
    assert writes_outside(SOURCE) == []


@pytest.mark.parametrize(
    "code",
    [
        "call.state = 1",
        "live.call.state = 1",
        "self._live.call.readings += 1",
        "call.heard, call.admitted = now, None",
        "live.due, live.call.since = 1, 2",
        "call.latest: Reading = reading",
        "del call.latest",
        "call.asked_at['q'] = 1",
        "call.asked_at['q'] += 1",
        "del live.call.open['q']",
        "call.open.pop('q', None)",
        "live.call.partials.append(raw)",
        "setattr(call, 'state', 1)",
        "object.__setattr__(live.call, 'state', 1)",
        "for call.state in states: pass",
        "with open('x') as call.latest: pass",
        "one = live.call\none.state = 1",
        "live, one = self.live, self.live.call\none.state = 1",
        "one = Call('c', opened)\none.state = 1",
        "one = fold('c', facts)\none.state = 1",
        "two = one\none = live.call\ntwo.state = 1",
        "if (one := live.call).open:\n    one.state = 1",
        "def f(one: Call) -> None:\n    one.state = 1",
        "def f(one: 'Call | None') -> None:\n    one.state = 1",
        "def f(one: Call) -> None:\n    def g() -> None:\n        one.state = 1",
        "class A:\n    real: Call\n\ndef f(a: A) -> None:\n    a.real.state = 1",
        "class A:\n    def __init__(self) -> None:\n        self._it: Call | None = None\n\n"
        "    def f(self) -> None:\n        self._it.state = 1",
    ],
)
def test_each_kind_of_write_is_found(code: str) -> None:
    """C1: at its line, which is the last here."""
    assert {line for line, _ in writes(code)} == {code.count("\n") + 1}


@pytest.mark.parametrize(
    "code",
    [
        "live.call = call",
        "call = Call('c', opened, state=State.QUEUED)",
        "now = call.heard",
        "x = call.open.get('q')",
        "commit(live, fact)",
        "one.state = 1",
        "setattr(live, 'heard', 1)",
        "self._calls.pop(call.id)",
        "self.calls[call.id] = call",
        "def f(one: Calling) -> None:\n    one.state = 1",
        "def f(one: Call) -> str:\n    return one.id\n\ndef g(one: Live) -> None:\n    one.heard = 1",
    ],
)
def test_what_only_reads_is_no_write(code: str) -> None:
    """C1: nor is a write to something that holds a call."""
    assert writes(code) == []


def test_its_own_module_may_write_and_another_is_named_with_its_line(tmp_path: Path) -> None:
    """C1: so that whoever added it finds it."""
    for name in ("core/call.py", "engine/call.py", "engine/live.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\ncall.state = 1\n")
    assert writes_outside(tmp_path) == ["engine/call.py:2: call.state", "engine/live.py:2: call.state"]
