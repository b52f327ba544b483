"""Page tools are asked about unless somebody says otherwise, and what was allowed is what was seen."""

from collections.abc import Iterator

import pytest

from tests.browser.chain import Chain, linking
from tests.browser.chromium import Chromium, until
from tests.browser.site import Site
from tests.e2e.official_client import accept


@pytest.fixture(scope="module")
def careful(
    tmp_path_factory: pytest.TempPathFactory, native_browser: Chromium, site: Site
) -> Iterator[Chain]:
    """A gateway as it is by default."""
    with linking(tmp_path_factory.mktemp("careful"), native_browser, site, {"approval": ""}) as one:
        yield one


@pytest.fixture
def asking(careful: Chain) -> Chain:
    """It, with a client that has not been asked yet."""
    careful.clear()
    careful.caller.asked.clear()
    return careful


def test_a_page_tool_asks_by_default(asking: Chain) -> None:
    """A1, A5: the client is asked before the page hears of it; run runs it, once."""
    bench = asking.open()
    asking.caller.reply = accept(decision="run")
    assert bench.call("echo", text="approved").value() == "approved"
    [asked] = asking.caller.asked
    assert bench.tool("echo").name in asked and "approved" in asked


def test_a_page_tool_that_is_refused_never_runs(asking: Chain) -> None:
    """A2: a no is told to the caller, and the page hears nothing."""
    bench = asking.open()
    asking.caller.reply = accept(decision="skip")
    told = bench.call("linger", tag="refused").error()
    assert told["category"] == "refused"
    assert bench.page.evaluate("marks.refused ?? null") is None


def test_a_tool_that_changed_its_definition_asks_again(asking: Chain) -> None:
    """A4, S6: what the operator allowed holds for the definition that was seen."""
    bench = asking.open("workshop.html")
    bench.page.evaluate("offer('tea', 'makes tea')")
    assert asking.api.post("/api/allow", {"tool": bench.tool("tea").name}).status == 201
    asking.caller.reply = accept(decision="run")
    assert bench.call("tea").value() == "tea"
    assert asking.caller.asked == []
    bench.page.evaluate("offer('tea', 'sells tea')")
    until(lambda: "sells" in str(bench.tool("tea").description), "the new definition")
    assert bench.call("tea").value() == "tea"
    assert len(asking.caller.asked) == 1
