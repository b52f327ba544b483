"""What pages do with their tools, well or badly, called by an official client over the extension and CDP."""

from typing import Any, Final

import pytest

from tests.browser.chain import Bench, Chain
from tests.browser.chromium import NATIVE, until
from tests.e2e.gateway_with_servers import ROOT

POLYFILL: Final = ROOT / "node_modules" / "@mcp-b" / "webmcp-polyfill" / "dist" / "index.iife.js"


@pytest.fixture
def bench(either: Chain) -> Bench:
    """A tab with every tool, over either way."""
    return either.open()


def is_native(chain: Chain) -> bool:
    """Whether its browser has WebMCP of its own."""
    return NATIVE in chain.browser.flags


def test_a_tool_that_is_an_instance_of_a_class_works(bench: Bench) -> None:
    """B3: what it needs is on its prototype, and its `this` is itself."""
    call = bench.call("greet", who="Ada")
    assert (call.value(), call.messages) == ("hello Ada", ["greeting Ada"])


# What a tool gives back, and what the caller gets of it.
GIVEN: Final[dict[str, Any]] = {
    "null": "null", "number": "7", "nan": "null", "list": "[1,2,3]", "toJSON": "as told", "map": {},
    "date": "1970-01-01T00:00:00.000Z", "undefined": None,
}  # fmt: skip


def test_what_a_tool_gives_back_arrives_as_json_has_it(bench: Bench) -> None:
    """B3: a value, not the browser's text of it; undefined is no content."""
    assert {what: bench.call("give", what=what).value() for what in GIVEN} == GIVEN


def test_what_has_no_json_is_an_error_that_says_so(bench: Bench) -> None:
    """E3: a clear error, at once."""
    for what in ("cycle", "bigint", "throwing", "window"):
        assert "cannot be written as JSON" in bench.call("give", what=what).error()["text"], what


def test_an_async_generator_is_an_error_that_says_what_to_do(bench: Bench) -> None:
    """E3: native makes "{}" of it, and nobody would know."""
    assert "reportProgress" in bench.call("give", what="generator").error()["text"]


# What a tool throws, and what of it the caller reads.
THROWN: Final = {
    "string": "just a string", "error": "the wrong type", "dom": "not here", "object": "an object",
    "empty": "Error", "abort": "the tool's own abort", "undefined": "", "null": "", "evil": "",
}  # fmt: skip


def test_what_a_tool_throws_reaches_the_caller(bench: Bench) -> None:
    """E1, E3: its message, however odd the thing thrown."""
    for what, words in THROWN.items():
        assert words in bench.call("fail", what=what).error()["text"], what


def test_an_error_keeps_its_code(bench: Bench) -> None:
    """E1: what the page calls it."""
    assert bench.call("fail", what="error").error()["code"] == "E_TYPE"


def test_odd_reports_never_raise_and_cost_nothing(bench: Bench) -> None:
    """P1, P4: whatever is given to reportProgress, the tool goes on."""
    call = bench.call("odd_reports")
    assert call.value() == "never raised"
    assert call.messages[-1] == "the last one"
    numbers = [progress for progress, _, _ in call.seen]
    assert numbers == sorted(set(numbers))


def test_nothing_is_reported_after_the_end(bench: Bench) -> None:
    """P4: late reports reach nobody."""
    call = bench.call("late")
    assert call.value() == "early"
    assert bench.call("count", n=3, pause=0.05).value()["counted"] == 3
    assert call.seen == []


def test_a_tool_of_the_first_inline_script_is_offered_and_reports(either: Chain) -> None:
    """B3: the shim is there before any script of the page."""
    call = either.open("early.html").call("first")
    assert (call.value(), call.messages) == ("the first", ["early"])


def test_a_tool_registered_anew_mid_run_ends_as_it_began(bench: Bench) -> None:
    """B3: the run under way goes on; the next one has the new code."""
    bench.page.evaluate("offer('tea', 'one', (_, {signal, reportProgress}) => (reportProgress('brewing'), "
                        "new Promise((done) => (globalThis.pour = () => done('old tea')))))")  # fmt: skip
    first = bench.call("tea").until_said("brewing")
    bench.page.evaluate("offer('tea', 'two', () => 'new tea')")
    until(lambda: "two" in str(bench.tool("tea").description), "the new tool")
    assert bench.call("tea").value() == "new tea"
    bench.page.evaluate("pour()")
    assert first.value() == "old tea"


def test_a_withdrawn_tool_is_offered_no_more(bench: Bench) -> None:
    """B3: its registration's signal ends it; calling it says that it is not there."""
    bench.page.evaluate("offer('brief', 'soon gone')")
    name = bench.tool("brief").name
    bench.page.evaluate("withdraw('brief')")
    until(lambda: "brief" not in bench.offered(), "its end")
    assert bench.chain.caller.call(name).error()["category"] == "unavailable"


def test_the_page_and_an_agent_run_a_tool_at_once(bench: Bench) -> None:
    """B4: the page's monitor hears its own run, the agent its own; the ids differ."""
    call = bench.call("count", n=10_000, pause=0.1, tag="agent").until_said("agent 1")
    mine = bench.page.evaluate("runMonitored('count', {n: 4, pause: 0.1, tag: 'mine'})")
    bench.page.evaluate("enough = 'agent'")
    assert call.value()["tag"] == "agent"
    assert mine["heard"] == [f"mine {n}" for n in range(1, 5)]
    assert mine["given"] == {"counted": 4, "tag": "mine"}
    assert mine["id"] in mine["ids"] and len(mine["ids"]) == 2
    assert {message.split()[0] for message in call.messages} == {"agent"}


def test_meta_of_the_callers_own_comes_through(bench: Bench) -> None:
    """B4: only what afoot added is taken out again."""
    assert bench.call("input", a=1).value() == {"input": {"a": 1}}
    given = {"_meta": {"mine": {"deep": [1]}}, "b": 2}
    assert bench.call("input", **given).value() == {"input": given}


def test_a_run_has_an_id_and_a_signal(bench: Bench) -> None:
    """B4: every run another one."""
    first, second = bench.call("context").value(), bench.call("context").value()
    assert first["keys"] == ["alive", "reportProgress", "signal", "toolExecutionId"]
    assert first["signal"] is True and first["id"] and first["id"] != second["id"]


@pytest.mark.parametrize("kind", ["same", "srcdoc", "blank"])
def test_a_frame_of_the_tabs_origin_offers_its_tools(either: Chain, kind: str) -> None:
    """B3: named and judged by the frame's origin, which is the tab's."""
    bench = either.open("silent.html")
    bench.page.navigate(f"{bench.origin}/frames.html?frame={kind}")
    call = bench.call("framed")
    assert call.value()["origin"] == bench.origin
    assert call.messages == ["in a frame"]


@pytest.mark.parametrize("kind", ["cross", "sandboxed"])
def test_a_frame_of_another_origin_is_off(either: Chain, kind: str) -> None:
    """A1: its tools are not offered, though the tab's own are."""
    bench, other = either.open("bench.html"), f"o{id(kind) % 1000}.localhost"
    frame = f"{bench.origin}/frames.html?frame={kind}&other={either.site.origin(other)}"
    bench.page.navigate(frame)
    bench.page.evaluate(
        "document.head.append(Object.assign(document.createElement('script'), {src: 'bench.js'}))"
    )
    bench.page.until("window.offer && offer('own', 'of the tab')")
    bench.tool("own")
    assert not [name for name in either.caller.tools() if name.endswith("framed")]


def test_document_open_keeps_a_page_in_touch(either: Chain) -> None:
    """B3: what is written over a document can still offer tools."""
    bench = either.open("silent.html")
    page = "<title>Again</title><script src='bench.js'></script>"
    bench.page.evaluate(f'document.open(), document.write("{page}"), document.close()')
    bench.page.until("window.offer && offer('again', 'after open')")
    assert bench.call("again").value() == "again"


def test_push_state_ends_nothing(bench: Bench) -> None:
    """B6: another address is not another document."""
    call = bench.call("count", n=5, pause=0.1).until_said("count 1")
    bench.page.evaluate("history.pushState({}, '', '/elsewhere'), 1")
    assert call.value()["counted"] == 5


def test_tools_come_and_go_with_back_and_forward(either: Chain) -> None:
    """B6: a page that comes back offers its tools again, and they work."""
    bench = either.open()
    name = bench.tool("echo").name
    bench.page.navigate(f"{bench.origin}/silent.html")
    until(lambda: echoed(either, name) is None, "its tools to be gone")
    bench.page.go(-1)
    until(lambda: echoed(either, name) == "there", "its tools to be back")
    bench.page.go(1)
    until(lambda: echoed(either, name) is None, "its tools to be gone again")


def echoed(chain: Chain, name: str) -> str | None:
    """What comes back from it; nothing where it is unavailable."""
    call = chain.caller.call(name, {"text": "there"})
    if call.result().is_error:
        assert call.error()["category"] == "unavailable"
        return None
    return str(call.value())


def test_an_insecure_page_offers_its_tools(either: Chain) -> None:
    """B3: the browser has no WebMCP there, so the shim supplies it; ids need no secure context."""
    bench = either.open(host=f"i{id(either) % 997}.test")
    assert bench.page.evaluate("[isSecureContext, typeof crypto.randomUUID]") == [False, "undefined"]
    call = bench.call("count", n=3, pause=0.05)
    assert (call.value()["counted"], len(call.seen)) == (3, 3)


def test_a_policy_against_tools_is_respected(either: Chain) -> None:
    """B3: where the browser refuses, the page is told what the browser told us."""
    bench = either.open("workshop.html", "Permissions-Policy: tools=()")
    said = bench.page.evaluate("refusal('no')")
    assert said == ("NotAllowedError" if is_native(either) else "")


def test_a_page_without_its_own_agent_cluster_breaks_nothing(either: Chain) -> None:
    """B3: native refuses with its own error; the page hears it and goes on."""
    bench = either.open("workshop.html", "Origin-Agent-Cluster: ?0")
    said = bench.page.evaluate("refusal('no')")
    assert said == ("SecurityError" if is_native(either) else "")


@pytest.mark.parametrize(
    "policy",
    [
        "require-trusted-types-for 'script'; trusted-types none",
        "default-src 'none'; script-src 'self' 'unsafe-inline'; connect-src 'none'",
    ],
    ids=["trusted types", "strict"],
)
def test_a_strict_policy_of_the_page_is_in_nobodys_way(either: Chain, policy: str) -> None:
    """B1: the chain needs nothing of the page's rights."""
    bench = either.open("bench.html", f"Content-Security-Policy: {policy}")
    call = bench.call("count", n=3, pause=0.05)
    assert (call.value()["counted"], len(call.seen)) == (3, 3)


def test_another_polyfill_on_the_page_is_no_rival(either: Chain) -> None:
    """B3: MCP-B's steps aside for ours, or is wrapped; tools work and report."""
    either.site.pages["polyfill.js"] = POLYFILL.read_text()
    either.site.pages["rival.html"] = (
        '<!doctype html><title>Rival</title><script src="polyfill.js"></script>'
        '<script src="bench.js"></script><script>offerAll();</script>'
    )
    bench = either.open("rival.html")
    call = bench.call("count", n=3, pause=0.05)
    assert (call.value()["counted"], len(call.seen)) == (3, 3)
