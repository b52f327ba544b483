"""The relay in odd moments, through the whole chain: reused windows, prerendering, no extension."""

from pathlib import Path

import pytest

from tests.browser.chain import Bench, Chain, linking
from tests.browser.chromium import NATIVE, running, until
from tests.browser.page_script.page_contexts import offer, page
from tests.browser.site import Site

FRAME = """(() => {
  const frame = document.createElement("iframe");
  frame.src = "framed.html";
  document.body.append(frame);
  frame.contentWindow.mark = "reused";
  return new Promise((go) => { frame.onload = () => go(frame.contentWindow.mark); });
})()"""
POPUP = """(() => {
  const other = window.open("framed.html");
  other.mark = "reused";
  return new Promise((go) => {
    const look = () => (other.document.title === "Framed" ? go(other.mark) : setTimeout(look, 20));
    look();
  });
})()"""


@pytest.mark.parametrize("how", [FRAME, POPUP], ids=["frame", "popup"])
def test_a_window_that_gets_another_document_offers_its_tools(either: Chain, how: str) -> None:
    """B3, B6: what a page opens and touches at once keeps its window when it loads."""
    bench = either.open("silent.html")
    assert bench.page.evaluate(how) == "reused"
    call = bench.call("framed")
    assert call.value()["href"] == f"{bench.origin}/framed.html"
    assert call.messages == ["in a frame"]


def test_a_frame_that_its_address_fills_breaks_nothing(either: Chain) -> None:
    """B3: `javascript:` addresses; Chromium 156 crashes there if its WebMCP was looked at before."""
    bench = either.open("bench.html")
    bench.page.evaluate(
        "frame = document.createElement('iframe'), frame.src = 'javascript:`<p>filled`',"
        "document.body.append(frame), 0"
    )
    bench.page.until("frame.contentDocument?.body?.textContent === 'filled'")
    assert bench.call("count", n=1, pause=0).value()["counted"] == 1


def test_a_page_whose_extension_is_gone_stops_its_runs(tmp_path: Path, site: Site) -> None:
    """B6: nobody waits for them any more, so their signal says so; the page itself lives on."""
    with running("--headless=new") as browser, linking(tmp_path, browser, site) as chain:
        bench = chain.open()
        bench.call("linger", tag="run").until_said("lingering run")
        browser.call("Extensions.uninstall", {"id": chain.extension})
        assert "extension" in bench.page.until("marks.run.aborted && marks.run.reason")
        assert bench.page.evaluate("typeof document.modelContext") == "object"


BEFORE = """<!doctype html><title>Before</title>
<script type="speculationrules">{"prerender": [{"source": "list", "urls": ["ahead.html"]}]}</script>
<script>
const look = async () => {
  if ((await fetch("go.json")).ok) location.href = "ahead.html";
  else setTimeout(look, 50);
};
look();
</script>"""
# It says that it is ready long after its tools were gathered.
AHEAD = page(offer("ahead", "return 1") + "setTimeout(() => fetch('ready.json'), 400);")


def test_a_prerendered_page_is_not_offered_until_it_is_shown(tmp_path: Path, site: Site) -> None:
    """B6: nobody has seen it. Chromium does not prerender where DevTools look, so the page goes by itself."""
    site.pages |= {"before.html": BEFORE, "ahead.html": AHEAD}
    site.pages.pop("go.json", None)
    began, address = len(site.seen), {"url": site.url("before.html", host="ahead.localhost")}
    with running("--headless=new", NATIVE) as browser, linking(tmp_path, browser, site) as chain:
        target = browser.call("Target.createTarget", address)["targetId"]
        until(lambda: "/ready.json" in [one.path for one in site.seen[began:]], "the page to be ready ahead")
        bench = Bench(chain, browser.attach(target), "ahead.localhost")
        assert bench.offered() == {}
        site.pages["go.json"] = "{}"
        assert bench.call("ahead").value() == "1"
        activated = "performance.getEntriesByType('navigation')[0].activationStart > 0"
        assert bench.page.evaluate(activated) is True
