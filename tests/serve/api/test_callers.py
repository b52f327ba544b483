"""Quotas over both wires: who is over one is told when, and the operator sees what was used."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway, serving
from tests.e2e.raw_client import Http, call
from tests.serve.api_client import Api

CONFIG = """
[quota.local]
calls = 2
per_s = 600

[quota.operator]
concurrent = 1
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway with quotas."""
    config = tmp_path / "afoot.toml"
    config.write_text(CONFIG)
    with serving(tmp_path, {"config": config}) as started:
        yield started


def test_a_client_over_its_quota_is_told_when(gateway: Gateway, api: Api) -> None:
    """G2: status 429, a retryable error with its category and the seconds; and the operator sees it."""
    with Http(gateway.url) as http:
        for number in (1, 2):
            assert "result" in http.ask(call("add", {"a": number, "b": 1}))
        response = http.post(call("add", {"a": 3, "b": 1}))
        assert response.status == 429
    with Http(gateway.url) as http:
        error = http.ask(call("add", {"a": 3, "b": 1}))["error"]
    told = error["data"]["dev.afoot/error"]
    assert (told["category"], told["code"], told["retryable"]) == ("rate_limit", "over_quota", True)
    assert 500 < told["retry_after_s"] <= 600
    assert error["message"].startswith("local is over its quota: 2 calls in 600 s; try again in ")
    [local] = [one for one in api.get("/api/callers").body["callers"] if one["caller"] == "local"]
    assert (local["calls"], local["refused"], local["live"]) == (2, 2, 0)
    assert local["last_refused"]["limit"] == "2 calls in 600 s" and local["last_refused"]["at"] > 0
    limits = {"calls": 2, "cpu_s": 0.0, "per_s": 600.0, "concurrent": 0, "concurrency": 0, "sessions": 0}
    assert local["quota"] == limits
    assert api.get("/healthz").body["counted"]["calls over quota"] == 2
    assert len(api.get("/api/calls?tool=add").body["calls"]) == 2


def test_the_operator_may_be_bound_by_name(api: Api) -> None:
    """G2: over the API it is 429 with `Retry-After`."""
    live = api.start("linger", tag="quota")
    answer = api.post("/api/calls", {"tool": "add", "arguments": {"a": 1, "b": 2}}, prefer="respond-async")
    assert (answer.status, answer.error["category"], answer.error["retryable"]) == (429, "rate_limit", True)
    assert answer.headers["retry-after"] == "1" and "1 calls at once" in answer.error["message"]
    [seen] = [one for one in api.get("/api/callers").body["callers"] if one["caller"] == "operator"]
    assert (seen["live"], seen["refused"]) == (1, 1)
    assert api.post(f"/api/calls/{live}/cancel", {}).status == 202


def test_without_quotas_callers_are_seen_all_the_same(tmp_path: Path) -> None:
    """G2: who has calls now."""
    with serving(tmp_path) as started:
        api = Api(started)
        assert api.get("/api/callers").body == {"callers": []}
        api.start("linger", tag="seen")
        [seen] = api.get("/api/callers").body["callers"]
        assert (seen["caller"], seen["live"], seen["quota"]) == ("operator", 1, None)
