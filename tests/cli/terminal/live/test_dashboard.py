"""`afoot watch` in a pseudo-terminal: what a person sees on the screen, and how it is left."""

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from afoot.cli.terminal.text import display_width
from tests.cli.pseudo_terminal import terminal
from tests.cli.terminal.live.dashboard_screen import cancel, choose, decide, fresh, row, tag
from tests.e2e.gateway import Gateway, until
from tests.serve.api_client import Api

LATIN_1 = {"LC_ALL": "", "LANG": "de_DE.ISO-8859-1", "PYTHONCOERCECLOCALE": "0"}
LOST = r"\n(?m:^Not connected since \d\d:\d\d:\d\d, trying again$)"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway on HTTP."""
    with fresh(tmp_path_factory.mktemp("board")) as started:
        yield started


def test_a_call_is_watched_live_from_its_start_to_after_its_end(gateway: Gateway, api: Api) -> None:
    """V2, V6: one row: state, bar, per cent, message; its end stays to be read."""
    with terminal(["watch"], gateway.environment) as screen:
        screen.see("?: keys")
        call = api.start("count_up", n=30)
        parts = ("▶ count_up", "━", " %", "step")
        screen.see(lambda shown: all(part in row(shown, call) for part in parts))
        screen.see(lambda shown: "✓ count_up" in row(shown, call) and "━ 100 %" in row(shown, call))
        shown = screen.shown.split("\n")
        assert any(line.startswith("Just ended") and line.endswith("kept here for 5:00") for line in shown)
        screen.type("q")
        assert screen.end() == 0 and screen.is_restored()


def test_what_runs_already_is_shown_and_leaving_changes_nothing(gateway: Gateway, api: Api) -> None:
    """V2: Ctrl-C leaves, and cancels nothing."""
    call = api.start("linger", tag=tag())
    until(lambda: api.call(call)["progress"], "a report")
    with terminal(["watch"], gateway.environment) as screen:
        screen.see(lambda shown: "lingering" in row(shown, call))
        screen.type("\x03")
        assert screen.end() == 0 and screen.is_restored()
    assert api.call(call)["state"] == "running"
    cancel(api, call)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(gateway: Gateway, number: signal.Signals) -> None:
    """V2: whatever ends it, the next prompt is where it was."""
    with terminal(["watch"], gateway.environment) as screen:
        screen.see("?: keys")
        screen.signal(number)
        screen.end()
        assert screen.is_restored()


def test_an_error_gives_the_terminal_back(gateway: Gateway, api: Api) -> None:
    """V2, S1: a gateway that no longer lets us in ends it with a line."""
    environment = {**gateway.environment, "AFOOT_TOKEN": api.token}
    with terminal(["watch"], {**environment, "AFOOT_TOKEN": "wrong"}) as screen:
        assert screen.end() == 5 and "token" in screen.text
        assert screen.is_restored()


def test_a_call_is_cancelled_with_its_reason(gateway: Gateway, api: Api) -> None:
    """X1, V2: x, the end of its id, and why; a name that nobody has is said."""
    mark = tag()
    call = api.start("linger", tag=mark)
    gateway.until_marked(mark, "started")
    with terminal(["watch"], gateway.environment) as screen:
        screen.see(lambda shown: row(shown, call) != "")
        screen.type("x")
        screen.see("the end of its id:")
        screen.type("ffffffff\n")
        screen.see("why (")
        screen.type("\n")
        screen.see("unknown call")
        screen.type("x")
        screen.see("the end of its id:")
        screen.type(f"{call[-8:]}\n")
        screen.see("why (")
        screen.type("seen enough\n")
        screen.see(lambda shown: "u: undo  cancels in " in row(shown, call))
        screen.see(lambda shown: row(shown, call).startswith("■") and "seen" in row(shown, call))
        screen.type("u")
        screen.see("no cancel is pending")
        screen.type("q")
        screen.end()
    assert gateway.marks(mark)[-1] == "cancelled: seen enough"


def test_a_cancel_is_undone_while_it_has_not_come(gateway: Gateway, api: Api) -> None:
    """X1, V6: by u, for five seconds, as in the console; the call goes on and knows nothing of it."""
    mark = tag()
    call = api.start("linger", tag=mark)
    gateway.until_marked(mark, "started")
    with terminal(["watch"], gateway.environment, (120, 30)) as screen:
        screen.see(lambda shown: row(shown, call) != "")
        screen.type("x")
        screen.see("the end of its id:")
        screen.type(f"{call[-8:]}\n")
        screen.see("why (")
        screen.type("\n")
        screen.see(
            lambda shown: row(shown, call).startswith("□ cancelling") and "cancels in 4." in row(shown, call)
        )
        screen.type("u")
        screen.see(f"{call[-8:]}: goes on")
        screen.see(lambda shown: row(shown, call).startswith("▶ running"))
        screen.type("q")
        assert screen.end() == 0
    found = api.call(call)
    assert found["state"] == "running" and "cancel_due" not in found
    cancel(api, call)


def test_children_stand_below_their_parent_and_many_are_counted(gateway: Gateway, api: Api) -> None:
    """P8, V2: five, and how many more."""
    call = api.start("parent", n=12)
    with terminal(["watch"], gateway.environment) as screen:
        screen.see("… 7 more")
        lines = screen.shown.split("\n")
        above = next(number for number, line in enumerate(lines) if call[-8:] in line)
        assert all("└ child" in line for line in lines[above + 1 : above + 6])
        screen.type("q")
        screen.end()
    cancel(api, call)


def test_the_keys_are_listed_and_the_table_moves(gateway: Gateway, api: Api) -> None:
    """V2: ? says what there is; what does not fit can be moved to, and a small window is usable."""
    calls = [api.start("linger", tag=tag()) for _ in range(20)]
    with terminal(["watch"], gateway.environment, (40, 12)) as screen:
        screen.see("more that do not fit")
        assert "▶ linger" in screen.shown and "10 %" in screen.shown
        screen.type("?")
        screen.see("cancel a call")
        screen.type("?")
        screen.see(lambda shown: "cancel a call" not in shown)
        screen.resize(100, 12)
        screen.see(lambda shown: row(shown, calls[0]) != "" and row(shown, calls[-1]) == "")
        screen.type("\x1b[6~\x1b[6~")
        screen.see(lambda shown: row(shown, calls[-1]) != "")
        screen.type("\x1b[5~\x1b[5~\x1b[A")
        screen.see(lambda shown: row(shown, calls[0]) != "")
        screen.type("q")
        assert screen.end() == 0
    cancel(api, *calls)


def test_another_size_is_drawn_anew(gateway: Gateway, api: Api) -> None:
    """V2: wider, narrower, and no line left over."""
    call = api.start("linger", tag=tag())
    with terminal(["watch"], gateway.environment, (120, 30)) as screen:
        screen.see(lambda shown: row(shown, call) != "")
        for size in ((60, 10), (40, 8), (170, 40)):
            screen.resize(*size)
            screen.see(lambda shown: shown.count("▶ ") == 1 and shown.startswith("afoot "))
            assert all(len(line) <= size[0] for line in screen.shown.split("\n"))
        screen.see(lambda shown: "operator" in row(shown, call))
        screen.type("q")
        assert screen.end() == 0 and screen.is_restored()
    cancel(api, call)


def test_a_gateway_that_dies_is_said_and_found_again_where_it_comes_back(tmp_path: Path) -> None:
    """V2, V6, U4: all clocks stand still; the table goes on by itself, on another port too, and what was lost
    is shown as lost."""
    with fresh(tmp_path) as gateway:
        call = Api(gateway).start("linger", tag=tag())
        until(lambda: Api(gateway).call(call)["progress"], "a report")
        with terminal(["watch"], gateway.environment) as screen:
            screen.see(lambda shown: row(shown, call) != "")
            gateway.kill()
            known = screen.see(lambda shown: re.search(LOST, shown) is not None)
            assert row(known, call), "what was known stays to be read"
            screen.wait(2.2)
            assert screen.shown == known, "no clock counts on, and no bar moves"
            gateway.start()
            screen.see(lambda shown: "Not connected" not in shown)
            again = Api(gateway).start("linger", tag=tag())
            screen.see(lambda shown: "▶ linger" in row(shown, again))
            screen.see(lambda shown: row(shown, call).startswith("✗") and "uncertain: " in row(shown, call))
            asked = Api(gateway).start("wipe", tag=tag())
            choose(screen, asked)
            decide(screen, "s")
            screen.see(f"{asked[-8:]} wipe: skip")
            screen.type("\x03")
            assert screen.end() == 0 and screen.is_restored()


def test_a_gateway_that_says_nothing_is_as_good_as_away_until_it_speaks_again(tmp_path: Path) -> None:
    """V6: a stream that is silent for longer than its keep-alives allow; no clock counts on by guessing."""
    with fresh(tmp_path, {"keepalive_s": 0.5}) as gateway:
        call = Api(gateway).start("linger", tag=tag())
        with terminal(["watch"], gateway.environment) as screen:
            screen.see(lambda shown: row(shown, call) != "")
            screen.wait(4.0)
            assert "Not connected" not in screen.shown, "keep-alives are heard"
            gateway.process.send_signal(signal.SIGSTOP)
            try:
                known = screen.see(lambda shown: re.search(LOST, shown) is not None)
                screen.wait(1.5)
                assert screen.shown == known
            finally:
                gateway.process.send_signal(signal.SIGCONT)
            screen.see(lambda shown: "Not connected" not in shown and "▶ linger" in row(shown, call))
            screen.type("q")
            assert screen.end() == 0


@pytest.mark.parametrize("wide", [80, 100])
def test_a_line_as_wide_as_the_screen_keeps_its_last_character(gateway: Gateway, wide: int) -> None:
    """V2: the cursor waits behind it, and what erases the rest of the line may not erase it."""
    with terminal(["watch"], gateway.environment, (wide, 20)) as screen:
        screen.see(lambda shown: shown.split("\n")[0].endswith("?: keys"))
        assert len(screen.shown.split("\n")[0]) == wide
        screen.type("q")
        screen.end()


def test_no_colour_is_used_where_none_is_wanted(gateway: Gateway) -> None:
    """V2: NO_COLOR is obeyed; TERM=dumb moves no cursor."""
    with terminal(["watch"], {**gateway.environment, "NO_COLOR": "1"}) as screen:
        screen.see("?: keys")
        screen.type("q")
        screen.end()
        assert not re.search(rb"\x1b\[[39]\d", screen.raw)
    api, held = Api(gateway), Api(gateway).start("linger", tag=tag())
    with terminal(["watch"], {**gateway.environment, "TERM": "dumb"}) as screen:
        screen.until(held[-8:])
        call = api.start("add", a=1, b=1)
        screen.until(f"{call[-8:]} add finished")
        screen.type("\x03")
        assert screen.end() == 0 and b"\x1b" not in screen.raw
    cancel(api, held)


def test_two_hundred_calls_that_report_fast_leave_the_keys_usable(tmp_path: Path) -> None:
    """V2: at most ten drawings a second, and a key is heard among them."""
    with fresh(tmp_path) as gateway:
        api = Api(gateway)
        calls = [api.start("count_up", n=400, step_s=0.05) for _ in range(200)]
        with terminal(["watch"], gateway.environment) as screen:
            screen.see("200 running")
            screen.see("▸ count_up  200 running, slowest ")
            began, before = time.monotonic(), screen.raw.count(b"\x1b[4;1H")
            screen.wait(2.0)
            drawn = screen.raw.count(b"\x1b[4;1H") - before
            screen.type("l")
            screen.see(lambda shown: shown.count("▶ count_up") > 10)
            assert drawn <= 10 * (time.monotonic() - began) + 2
            screen.type("?")
            screen.see("cancel a call")
            screen.type("q")
            assert screen.end() == 0 and screen.is_restored()
        assert len(calls) == 200


def test_a_stopped_program_gives_the_terminal_to_the_shell_and_takes_it_again(gateway: Gateway) -> None:
    """V2: Ctrl-Z."""
    with terminal(["watch"], gateway.environment) as screen:
        screen.see("?: keys")
        screen.type("\x1a")
        until(lambda: screen.wait(0.05) or screen.is_restored(), "the terminal as it was")
        screen.signal(signal.SIGCONT)
        screen.see(lambda shown: screen.raw.count(b"\x1b[?1049h") == 2 and "?: keys" in shown)
        screen.type("q")
        assert screen.end() == 0 and screen.is_restored()


def test_somebody_who_only_reads_sees_the_table(gateway: Gateway, api: Api) -> None:
    """V2: `afoot watch < /dev/null` has no keys, and Ctrl-C still leaves."""
    call = api.start("linger", tag=tag())
    with terminal(["watch"], gateway.environment, stdin="/dev/null") as screen:
        screen.see(lambda shown: row(shown, call) != "")
        screen.signal(signal.SIGINT)
        assert screen.end() == 0 and screen.is_restored()
    cancel(api, call)


def test_both_clocks_of_a_call_are_seen_and_stand_still_while_a_person_is_asked(
    gateway: Gateway, api: Api
) -> None:
    """V5, V6: within 0.2 s of the gateway's own; the column then has the time left to answer."""
    call = api.start("linger", tag=tag())
    until(lambda: api.call(call)["progress"], "a report")
    asks = api.start("ask_name", tag=tag())
    api.asked(asks)
    with terminal(["watch"], gateway.environment) as screen:
        screen.see(lambda shown: re.search(r"● [12]\.\d s", row(shown, call)) is not None)
        found = re.search(r"● (\d\.\d) s +(\d\.\d) s ", row(screen.shown, call))
        clocks = api.call(call)["clocks"]
        assert found, screen.shown
        now = time.time()
        assert now - clocks["heard"] - 0.7 < float(found[1]) <= now - clocks["heard"] + 0.1
        assert now - clocks["since"] - 0.7 < float(found[2]) <= now - clocks["since"] + 0.1
        lines = screen.shown.split("\n")
        assert lines[2].startswith("Waiting for you  ")
        waits, runs = (next(at for at, line in enumerate(lines) if one[-8:] in line) for one in (asks, call))
        assert waits < runs
        before = left_to_answer(lines[waits])
        screen.see(lambda shown: left_to_answer(row(shown, asks))[0] <= before[0] - 2)
        assert left_to_answer(row(screen.shown, asks))[1] == before[1], "its ceiling stands still"
        screen.type("q")
        screen.end()
    cancel(api, call, asks)


def left_to_answer(line: str) -> tuple[int, str]:
    """The seconds that a person has left, and the time on the clock, as a row tells them."""
    found = re.search(r"◆ ask_name local +key \d +‖ (\d+):(\d\d) +(\d\.\d s) ", line)
    assert found, line
    return 60 * int(found[1]) + int(found[2]), found[3]


def test_a_silent_call_is_said_to_end_before_it_does(gateway: Gateway, api: Api) -> None:
    """V5, V6, C1: with a quarter of its limit left, and then why it ended."""
    call = api.start("hush")
    with terminal(["watch"], gateway.environment) as screen:
        seen = screen.see(lambda shown: "stalled, ends in 0." in row(shown, call))
        assert row(seen, call).startswith("△ hush") and "1 stalled" in seen.split("\n")[0]
        screen.see(lambda shown: "✗ hush" in row(shown, call) and "timed out: no report" in row(shown, call))
        screen.type("q")
        screen.end()


def test_who_comes_later_sees_what_has_just_ended(gateway: Gateway, api: Api) -> None:
    """V6: of the last five minutes, as in the console."""
    call = api.start("add", a=1, b=2)
    api.ended(call)
    with terminal(["watch"], gateway.environment) as screen:
        screen.see(lambda shown: "✓ add" in row(shown, call))
        screen.type("q")
        screen.end()


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, LATIN_1, {"TERM": "linux"}])
def test_a_terminal_without_unicode_gets_ascii_shapes(
    gateway: Gateway, api: Api, locale: dict[str, str]
) -> None:
    """V6: each state has a shape of its own there, too; nothing but ASCII is written."""
    call = api.start("linger", tag=tag())
    with terminal(["watch"], {**gateway.environment, "LC_CTYPE": "", **locale}) as screen:
        screen.see(lambda shown: row(shown, call).startswith("> linger") and "=---" in row(shown, call))
        screen.type("?")
        screen.see("? waiting  > running  ! stalled")
        screen.type("q")
        assert screen.end() == 0 and screen.raw.isascii()
    cancel(api, call)


@pytest.mark.parametrize("wide", [40, 60, 80, 120])
def test_hostile_and_wide_text_breaks_no_row(gateway: Gateway, api: Api, wide: int) -> None:
    """V2, V6: in a terminal of any width, its own line ends included."""
    calls = [api.start("nasty"), api.start("broad"), api.start("linger", tag=tag())]
    with terminal(["watch"], gateway.environment, (wide, 24)) as screen:
        screen.see(lambda shown: all(call[-8:] in shown or wide == 60 for call in calls) and "漢字" in shown)
        lines = screen.shown.split("\n")
        assert all(display_width(line) <= wide and line.isprintable() for line in lines)
        for shape, tool in (("◆", "nasty"), ("▶", "broad"), ("▶", "linger")):
            assert re.search(rf"^{shape} .*{tool} ", screen.shown, re.MULTILINE), screen.shown
        assert b"\x1b]0;" not in screen.raw and "\u202e".encode() not in screen.raw
        screen.type("q")
        screen.end()
    cancel(api, *calls)
