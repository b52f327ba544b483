"""What happens to a run when its tab, its browser, the extension's worker or the gateway goes (B6)."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.browser.chain import Bench, Chain, linking
from tests.browser.chain_fixtures import GRACE_S, ONCE
from tests.browser.chromium import NATIVE, running, until
from tests.browser.extension.link_proxy import Cable
from tests.browser.mcp_calls import Call
from tests.browser.site import Site
from tests.e2e import history

AT_ONCE_S: Final = 15.0  # on a very busy machine; the idle limit is twice that


def begun(bench: Bench, tag: str = "run") -> Call:
    """A run that would go on for ever."""
    return bench.call("linger", tag=tag).until_said(f"lingering {tag}")


# What is done to a tab, and how the caller is told.
ENDS: Final[dict[str, tuple[Callable[[Bench], object], str]]] = {
    "closed": (lambda bench: bench.page.close(), "tab_closed"),
    "reloaded": (lambda bench: bench.page.reload(), "tab_reloaded"),
    "navigated": (lambda bench: bench.page.navigate(f"{bench.origin}/silent.html"), "tab_navigated"),
    "sent elsewhere": (
        lambda bench: bench.page.navigate(bench.chain.site.url("silent.html")),
        "tab_navigated",
    ),
    "crashed": (lambda bench: bench.page.crash(), "tab_crashed"),
}


@pytest.mark.parametrize("event", ENDS)
def test_a_run_ends_with_its_tab_and_says_why(bench: Bench, event: str) -> None:
    """B6, E2, U4: at once, with its own error, and how far it got."""
    act, code = ENDS[event]
    call, kept = begun(bench), bench.chain.open()
    other = kept.call("count", n=8, pause=0.1).until_said("count 1")
    began = time.monotonic()
    act(bench)
    told = call.error(AT_ONCE_S)
    assert time.monotonic() - began < AT_ONCE_S
    assert code in json.dumps(told), told
    assert told["last"]["message"] == "lingering run"
    assert other.value()["counted"] == 8  # no other tab's run is touched


def test_a_run_ends_with_its_frame(chain: Chain) -> None:
    """B6: a frame that is removed takes its runs along; the tab's own go on."""
    bench = chain.open("silent.html")
    bench.page.navigate(f"{bench.origin}/frames.html?frame=same")
    call = bench.call("framed", wait=True).until_said("in a frame")
    bench.page.evaluate("document.querySelector('iframe').remove()")
    assert "frame_removed" in json.dumps(call.error(AT_ONCE_S))


def test_a_page_in_the_back_forward_cache_is_gone(bench: Bench) -> None:
    """B6: its run ends at once; nothing of it comes when it is back."""
    call = begun(bench)
    bench.page.navigate(bench.chain.site.url("silent.html", host="127.0.0.2"))
    told = call.error(AT_ONCE_S)
    assert told["category"] != "timeout"
    bench.page.go(-1)
    assert bench.call("echo", text="again").value() == "again"


@ONCE
def test_a_killed_worker_costs_a_run_nothing(bench: Bench) -> None:
    """B1, B6: the run goes on in the page, the link comes back, every later report and the result arrive."""
    call = bench.call("count", n=20, pause=0.1).until_said("count 3")
    bench.chain.browser.kill_worker(bench.chain.extension)
    assert call.value()["counted"] == 20
    numbers = [progress for progress, _, _ in call.seen]
    assert numbers == sorted(set(numbers)) and numbers[-1] == 20


@ONCE
def test_a_result_that_came_while_the_worker_was_dead_arrives(bench: Bench) -> None:
    """B6: the relay keeps it until somebody takes it."""
    bench.page.evaluate("offer('tea', 'held', (_, {reportProgress}) => (reportProgress('brewing'), "
                        "new Promise((done) => (globalThis.pour = done))))")  # fmt: skip
    call = bench.call("tea").until_said("brewing")
    bench.chain.browser.kill_worker(bench.chain.extension)
    bench.page.evaluate("pour('poured'), 1")
    assert call.value() == "poured"


@ONCE
def test_a_worker_killed_again_and_again_costs_a_run_nothing(bench: Bench) -> None:
    """B6: each time the link is back within its grace."""
    call = bench.call("count", n=40, pause=0.1).until_said("count 2")
    for _ in range(3):
        bench.chain.until_linked()
        bench.chain.browser.kill_worker(bench.chain.extension)
    assert call.value()["counted"] == 40


@ONCE
def test_a_cancel_while_the_worker_is_dead_reaches_the_page(bench: Bench) -> None:
    """X1: what could not be sent is said at the next welcome."""
    call = begun(bench, "late stop")
    bench.chain.browser.kill_worker(bench.chain.extension)
    call.cancel()
    assert bench.page.until("typeof marks['late stop'] === 'object' && marks['late stop']")["aborted"]


def test_an_extension_that_is_gone_ends_its_runs_after_the_grace(tmp_path: Path, site: Site) -> None:
    """B6: with an error of its own, long before any limit."""
    settings = {"browser": {"link_grace_s": 0.5}}
    with (
        running("--headless=new", NATIVE) as browser,
        linking(tmp_path, browser, site, settings) as chain,
    ):
        call = begun(chain.open())
        browser.call("Extensions.uninstall", {"id": chain.extension})
        told = call.error(AT_ONCE_S)
        assert "link_lost" in json.dumps(told) and told["category"] != "timeout"


def test_a_killed_browser_ends_its_runs_after_the_grace(tmp_path: Path, site: Site) -> None:
    """B6, U4: nothing of it can come back."""
    settings = {"browser": {"link_grace_s": 0.5}}
    with running("--headless=new", NATIVE) as browser, linking(tmp_path, browser, site, settings) as chain:
        call = begun(chain.open())
        browser.kill()
        assert "link_lost" in json.dumps(call.error(AT_ONCE_S))


@pytest.fixture
def cable(chain: Chain) -> Iterator[Cable]:
    """The link through something that can be cut; mended and taken out again at the end."""
    with Cable.between(chain) as one:
        yield one


@ONCE
def test_a_link_that_is_back_within_its_grace_costs_nothing(bench: Bench, cable: Cable) -> None:
    """B6: the newest value and the result arrive, and nothing twice."""
    call = bench.call("count", n=12, pause=0.1).until_said("count 2")
    cable.cut()
    bench.chain.until_linked(False)
    cable.mend()
    assert call.value()["counted"] == 12
    assert call.seen[-1] == (12, 12, "count 12")
    assert len(call.messages) == len(set(call.messages))


@ONCE
def test_a_link_that_is_lost_for_too_long_ends_the_run_on_both_sides(bench: Bench, cable: Cable) -> None:
    """B6: the caller is told after the grace, the page is told to stop when the link is back."""
    call = begun(bench)
    cable.cut()
    assert "link_lost" in json.dumps(call.error(GRACE_S + AT_ONCE_S))
    cable.mend()
    assert bench.page.until("typeof marks.run === 'object' && marks.run")["aborted"]


@ONCE
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_a_gateway_that_is_back_has_the_page_stop_what_it_lost(chain: Chain, how: str) -> None:
    """B6, U4: what ran when it went is uncertain, is stopped in the page, and new calls work."""
    bench = chain.open()
    name = bench.tool("linger").name
    begun(bench)
    if how == "killed":
        chain.gateway.kill()
    else:
        chain.gateway.stop()
    chain.restart()
    assert bench.page.until("typeof marks.run === 'object' && marks.run")["aborted"]
    [row] = history.rows(chain.gateway.store, name)
    assert row.outcome in (["uncertain"] if how == "killed" else ["cancelled", "uncertain"])
    assert bench.call("echo", text="back").value() == "back"


@ONCE
def test_two_browsers_at_once_keep_their_runs_apart(tmp_path: Path, chain: Chain) -> None:
    """B6: a second profile has tools of its own, and its end ends only its own runs."""
    with running("--headless=new", NATIVE) as second:
        second.load_extension(chain.gateway.folder / "extension")
        until(lambda: len(chain.browsers()) == 2, "the second browser")
        far = Bench(chain, second.open(chain.site.url("bench.html", host="far.localhost")), "far.localhost")
        near = chain.open()
        here, there = begun(near, "near"), begun(far, "far")
        second.kill()
        assert "link_lost" in json.dumps(there.error(GRACE_S + AT_ONCE_S))
        assert near.call("count", n=2).value()["counted"] == 2
        assert not here.future.done()
        here.cancel()
