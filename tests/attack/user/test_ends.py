"""Another program of the machine, or a person, ends things under a running gateway."""

import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.e2e.gateway import Gateway, serving, until
from tests.e2e.raw_client import Http, call, last
from tests.serve.api_client import Api

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway whose calls have a while to end. It hears SIGHUP, even if the tests run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with serving(tmp_path / "gateway", {"drain_s": 8}) as started:
            yield started
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_closed_terminal_drains_as_a_termination_does(gateway: Gateway) -> None:
    """X1: after SIGHUP what runs ends well, what is new is refused, and the exit is a clean one."""
    tag = f"mark-{uuid4().hex}"
    with Http(gateway.url) as running, Http(gateway.url) as late:
        assert "result" in late.ask(call("add", {"a": 1, "b": 1}))
        running.put(call("nap", {"tag": tag, "sleep_s": 1.0}))
        gateway.until_marked(tag, "started")
        gateway.process.send_signal(signal.SIGHUP)
        refused = until(
            lambda: last(late.post(call("nap", {"sleep_s": 0.01}))).get("error") or {}, "a refusal"
        )
        assert "SIGHUP" in refused["message"]
        assert last(running.take())["result"]["content"][0]["text"] == "slept"
    assert gateway.wait(10) == 0


def test_a_deleted_history_is_said_and_is_whole_when_it_is_back(gateway: Gateway) -> None:
    """H1: a gateway writes to no file without a name; `/healthz` says so, with calls or without."""
    api = Api(gateway)
    away = gateway.store.with_suffix(".away")
    assert api.get("/healthz").body["status"] == "ok"
    gateway.store.rename(away)
    health = api.get("/healthz").body
    assert health["status"] == "degraded" and "was deleted or replaced" in health["why"]
    assert "history is degraded" in gateway.said()
    with Http(gateway.url) as http:
        assert last(http.post(call("add", {"a": 1, "b": 2})))["result"]["content"][0]["text"] == '{"sum":3}'
    away.rename(gateway.store)
    until(lambda: api.get("/healthz").body["status"] == "ok", "the history is back")
    assert [one["outcome"] for one in api.get("/api/calls?tool=add").body["calls"]] == ["ok"]
