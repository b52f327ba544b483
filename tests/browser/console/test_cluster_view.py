"""The console's page of a cluster in a real browser: its members, and a drain that is undone."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium
from tests.browser.console.console_client import Console, Tended, attended, size
from tests.browser.console.test_accessibility import AXE, CHECK
from tests.browser.console.test_shell import check_top_bar
from tests.browser.page import Page
from tests.cluster.redis_server import RedisServer, redis_server
from tests.cluster.worker_process import WorkerProcess, workers
from tests.e2e.gateway import until
from tests.serve.api_client import Api

LINK = "document.querySelector('nav:not(.bottom) a[href=\"/cluster\"]')"


def config(folder: Path, redis: RedisServer) -> Path:
    """The settings of a gateway; its lease is that of the worker."""
    file = folder / "afoot.toml"
    file.write_text(f'[cluster]\nredis = "{redis.url}"\nlease_s = 1.0\n')
    return file


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis for these tests."""
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="module")
def worker(redis: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    """A worker of the cluster."""
    with workers(redis, "afoot", tmp_path_factory.mktemp("worker"), slots=7) as [started]:
        yield started


@pytest.fixture(scope="module")
def other(redis: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tended]:
    """Another gateway of the cluster."""
    folder = tmp_path_factory.mktemp("other")
    gateway = Tended(folder, {"drain_s": 0.2, "config": config(folder, redis)})
    gateway.start()
    yield gateway
    gateway.stop()


@pytest.fixture(scope="module")
def console(
    redis: RedisServer,
    other: Tended,
    worker: WorkerProcess,
    tmp_path_factory: pytest.TempPathFactory,
    plain_browser: Chromium,
) -> Iterator[Console]:
    """The gateway whose console is open."""
    folder = tmp_path_factory.mktemp("here")
    with attended(folder, plain_browser, config=config(folder, redis)) as one:
        until(lambda: len(one.api.get("/api/cluster").body["members"]) == 3, "all members to be heard of")
        yield one


def row(id: str) -> str:
    """The row of a member, as an expression."""
    return f"document.querySelector('[data-place={json.dumps(id)}]')"


def press(page: Page, id: str, words: str) -> None:
    """Press the button with these words in the row of a member."""
    buttons = f"[...{row(id)}.querySelectorAll('button')]"
    page.evaluate(f"{buttons}.find((one) => one.innerText === {json.dumps(words)}).click()")


def test_a_lone_gateway_has_no_page_of_a_cluster(tmp_path: Path, plain_browser: Chromium) -> None:
    """V1: nor a link, nor an entry of the palette; its address says how to have one."""
    with attended(tmp_path, plain_browser) as alone:
        page = alone.open("/servers")
        assert page.evaluate(f"{LINK}.checkVisibility()") is False
        page = alone.open("/cluster")
        page.until("document.querySelector('main').innerText.includes('This gateway is alone')")
        assert page.evaluate("odd") == []


def test_members_are_listed_with_leases_and_calls(
    console: Console, other: Tended, worker: WorkerProcess
) -> None:
    """V1, D1: which one answers, what waits for workers, and how many calls each has."""
    own = console.api.get("/api/cluster").body["id"]
    call = console.api.start("export_pages", n=1000, step_s=0.5)
    page = console.open("/live")
    page.until(f"{LINK}?.checkVisibility()")
    page.evaluate(f"{LINK}.click()")
    page.until("location.pathname === '/cluster' && document.querySelectorAll('[data-place]').length === 3")
    page.until(f"{row(own)}.innerText.includes('1 call') && {row(own)}.innerText.includes('you are here')")
    assert "lease" in page.evaluate(f"{row(own)}.innerText")
    assert "0 of 7 calls" in page.evaluate(f"{row(worker.id)}.innerText")
    assert "0 functions in the queue" in page.evaluate("document.querySelector('main').innerText")
    console.api.post(f"/api/calls/{call}/cancel", {})
    assert page.evaluate("odd") == []


def test_a_drain_is_ordered_and_undone(console: Console, other: Tended) -> None:
    """V1, D6: the other gateway takes no calls until it is undone, also from here."""
    page = console.open("/cluster")
    id = Api(other).get("/api/cluster").body["id"]
    page.until(f"{row(id)}?.innerText.includes('Drain')")
    press(page, id, "Drain")
    page.until(f"{row(id)}.innerText.includes('takes no new calls')")
    assert Api(other).get("/readyz").body == {"status": "draining"}
    press(page, id, "Undo the drain")
    page.until(f"!{row(id)}.innerText.includes('takes no new calls')")
    assert Api(other).get("/readyz").status == 200
    assert page.evaluate("odd") == []


@pytest.mark.parametrize(("look", "width"), [("light", 1280), ("dark", 1280), ("light", 360)])
def test_the_page_is_for_everybody(console: Console, look: str, width: int) -> None:
    """V1: contrast, names and sizes, in both looks and on a phone; nothing is wider than the window."""
    page = console.open("/cluster")
    size(page, width, 800)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": look}])
    page.until("document.querySelectorAll('[data-place]').length === 3")
    page.evaluate(AXE.read_text() + ";0")
    assert page.evaluate(CHECK) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") is True


@pytest.mark.parametrize("width", [700, 860, 1160, 1440])
def test_the_top_bar_has_room_for_one_more_view(console: Console, width: int) -> None:
    """V1: at the widths where it drops words, also in a cluster."""
    page = console.open("/cluster")
    size(page, width, 800)
    page.until(f"{LINK}?.checkVisibility()")
    check_top_bar(page)
