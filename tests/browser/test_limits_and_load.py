"""Bad days: floods, blocked pages, huge results, too many tools, hidden and frozen tabs."""

import time
from typing import Final

import pytest

from tests.browser.chain import Bench, Chain
from tests.browser.chain_fixtures import ONCE
from tests.browser.chromium import until

FLOOD: Final = 100_000
FLOOD_S: Final = 80.0  # most of it is the client, which has little of the machine where others run beside it


@pytest.mark.parametrize("tool", ["flood", "drip"])
def test_a_flood_is_coalesced_in_the_page_and_ends_well(bench: Bench, tool: str) -> None:
    """B6, P4, P5: 100,000 reports; the last one and the result arrive, far fewer frames than reports."""
    call = bench.call(tool, n=FLOOD)
    took_ms = call.value(FLOOD_S)["ms"]
    assert call.seen[-1][:2] == (FLOOD, FLOOD)
    assert len(call.seen) < 64 * (took_ms / 8 + 3)  # so many a frame, and a frame every so many ms


@ONCE
def test_a_flood_slows_no_other_tab(bench: Bench) -> None:
    """P5, C8: another tab's call goes on beside it."""
    other = bench.chain.open()
    other.tool("count")
    bench.page.activate()  # timers of a page that is hidden run once a second
    flood = bench.call("drip", n=FLOOD)
    call = other.call("count", n=5, tag="calm")
    assert call.value()["tag"] == "calm"
    assert all(message.startswith("calm") for message in call.messages)
    assert flood.value(FLOOD_S)["ms"] > 0


def test_a_page_that_blocks_still_reports(bench: Bench) -> None:
    """B4, P1: a busy loop's reports are live, so its idle limit never fires."""
    call = bench.call("block", {"idle_s": 2.0}, s=3.0, every=0.1)
    call.until_said("blocking")
    assert not call.future.done()
    assert call.value()["told"] >= 15


@ONCE
def test_a_page_that_blocks_and_says_nothing_times_out_at_its_limit(bench: Bench) -> None:
    """C7: the caller is told at the limit, whatever the page does; the tab works again afterwards."""
    began = time.monotonic()
    told = bench.call("block", {"idle_s": 0.5}, s=6.0).error()
    assert told["clock"] == "idle" and time.monotonic() - began < 5.9
    assert bench.call("echo", text="still here").value() == "still here"


@ONCE
def test_a_result_of_20_mb_arrives_whole(bench: Bench) -> None:
    """G3: it is within the limits."""
    assert len(bench.call("big", size=20_000_000).value()) == 20_000_000


# Results that no gateway takes, and what is said of them.
UNFIT: Final = {
    "long": ("() => 'x'.repeat(35e6)", "35000002 bytes"),
    "wide": ("() => '\u00e9'.repeat(25e6)", "50000002 bytes"),
    "deep": ("() => { let deep = []; for (let i = 0; i < 3000; i++) deep = [deep]; return deep; }", "deep"),
}


@ONCE
@pytest.mark.parametrize("how", UNFIT)
def test_a_result_that_does_not_fit_is_a_clear_error(bench: Bench, how: str) -> None:
    """G3: at once, naming what is wrong; the next call works."""
    script, words = UNFIT[how]
    bench.page.evaluate(f"offer('unfit', 'gives what nobody takes', {script})")
    assert words in bench.call("unfit").error()["text"]
    assert bench.call("echo", text="next").value() == "next"


@ONCE
def test_of_500_tools_64_are_offered_and_the_rest_counted(chain: Chain) -> None:
    """B2: a page cannot flood the list."""
    bench = chain.open("workshop.html")
    bench.page.evaluate(
        "Promise.all(Array.from({length: 500}, (_, n) => offer(`t${n}`, 'one of many'))).then(() => 1)"
    )
    until(lambda: len(bench.offered()) == 64, "64 tools")
    tabs = [tab for tab in chain.api.get("/api/tabs").body["tabs"] if tab["origin"] == bench.origin]
    assert [tab["left_out"] for tab in tabs] == [436]
    assert bench.call("t0").value() == "t0"


def test_a_name_registered_twice_is_refused_in_the_page(chain: Chain) -> None:
    """B3: as the browser itself does it; the first one stays."""
    bench = chain.open("workshop.html")
    once = "document.modelContext.registerTool({name: 'twice', description: 'x', execute: () => %s})"
    bench.page.evaluate(once % 1)
    assert bench.page.evaluate((once % 2) + ".then(() => '', (error) => error.name)") == "InvalidStateError"
    assert bench.call("twice").value() == "1"


@ONCE
def test_two_tabs_with_the_same_tool_are_one_tool_that_can_be_aimed(chain: Chain) -> None:
    """B2: listed once; `afoot_tab` says which, and the page does not see it."""
    first = chain.open()
    second = Bench(chain, chain.browser.open(chain.site.url("bench.html", host=first.host)), first.host)
    for number, one in enumerate((first, second)):
        one.page.evaluate(f"window.name = 'tab{number}', 1")
    tabs = both(first, second)
    assert "afoot_tab" in first.tool("where").input_schema["properties"]
    marks = {first.call("where", afoot_tab=tab["key"]).value()["mark"] for tab in tabs}
    assert marks == {"tab0", "tab1"}
    assert first.call("input", afoot_tab=tabs[0]["key"], a=1).value() == {"input": {"a": 1}}
    told = first.call("where", afoot_tab="t999999").error()
    assert "t999999" in told["text"] and tabs[0]["key"] in told["text"]


def both(first: Bench, second: Bench) -> list[dict[str, str]]:
    """Two tabs of one host, as soon as the gateway knows every tool of either: a page offers one by one."""
    known = "window.marks?.registered && document.modelContext.getTools().then((all) => all.length)"
    counts = sorted(one.page.until(known) for one in (first, second))

    def told() -> list[dict[str, str]]:
        tabs = tabs_of(first.chain, first)
        return tabs if sorted(tab["tools"] for tab in tabs) == counts else []

    found: list[dict[str, str]] = until(told, "both tabs with all their tools")
    return found


def tabs_of(chain: Chain, bench: Bench) -> list[dict[str, str]]:
    """The tabs of a host that are ready and have told their tools, as the gateway lists them."""
    listed = [tab for tab in chain.api.get("/api/tabs").body["tabs"] if tab["origin"] == bench.origin]
    return [tab for tab in listed if tab["state"] == "ready" and tab["tools"]]


@ONCE
def test_calls_to_two_tabs_never_mix(chain: Chain) -> None:
    """C8: each tab's run reports and ends its own call."""
    first = chain.open()
    second = Bench(chain, chain.browser.open(chain.site.url("bench.html", host=first.host)), first.host)
    tabs = both(first, second)
    calls = [
        first.call("count", n=3, pause=0.02, tag=f"{tab['key']}x{n}", afoot_tab=tab["key"])
        for n in range(5)
        for tab in tabs
    ]
    for call in calls:
        tag = call.value()["tag"]
        assert {message.split()[0] for message in call.messages} == {tag}


@ONCE
def test_a_tool_whose_last_tab_closed_says_where_it_was(chain: Chain) -> None:
    """B6: unavailable, and which page to open."""
    bench = chain.open()
    name = bench.tool("echo").name
    bench.page.close()
    until(lambda: not tabs_of(chain, bench), "the tab to be gone")
    told = chain.caller.call(name, {"text": "x"}).error()
    assert told["category"] == "unavailable" and bench.origin in told["text"]


@ONCE
def test_a_frozen_tab_is_shown_as_such(chain: Chain) -> None:
    """B6: its run's idle timeout says that the tab is frozen, and what to do."""
    bench = chain.open()
    bench.tool("paced")
    bench.page.call("Page.setWebLifecycleState", state="frozen")
    until(lambda: any(tab.get("frozen") for tab in tabs_of(chain, bench)), "the tab to be frozen")
    told = bench.call("paced", {"idle_s": 1.0}, pauses=[0.1, 0.1]).error()
    assert "frozen" in told["text"]
    bench.page.call("Page.setWebLifecycleState", state="active")
    assert bench.call("echo", text="thawed").value() == "thawed"


@ONCE
def test_a_tab_hidden_behind_another_still_answers(chain: Chain) -> None:
    """B6: reports and result come as fast as ever."""
    bench = chain.open()
    bench.tool("count")
    front = chain.open("silent.html")
    front.page.activate()
    call = bench.call("count", n=5)
    assert call.value()["counted"] == 5


@ONCE
def test_a_form_waits_for_the_person_and_says_so(chain: Chain) -> None:
    """C6: the call is asking, off the clock, until the form is sent."""
    bench = chain.open("form.html")
    assert bench.call("look_up", tea="oolong").value() == {"form": "look_up", "tea": "oolong"}
    call = bench.call("order", {"idle_s": 0.5}, tea="assam")
    [running] = until(lambda: chain.running(bench.tool("order").name), "the call")
    until(lambda: chain.api.call(running)["waiting"] == "person", "it to wait for a person")
    with pytest.raises(TimeoutError):
        call.result(1.0)  # twice its idle limit
    bench.page.evaluate("document.getElementById('send').click(), 1")
    assert call.value() == {"form": "order", "tea": "assam"}
