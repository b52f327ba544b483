"""`/metrics`: the figures of a gateway as Prometheus scrapes them, and who may."""

import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.gateway import Gateway, serving, until
from tests.serve.api_client import Api

Figures = dict[str, list[tuple[dict[str, str], float]]]


def scrape(api: Api, **headers: str) -> Figures:
    """All figures of a gateway, by name: labels and value."""
    answer = api.get("/metrics", **headers)
    assert answer.status == 200, answer
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = list(text_string_to_metric_families(answer.body))
    names = [one.name for one in families]
    assert len(names) == len(set(names)), "a figure stands in two places"
    found: Figures = {}
    for family in families:
        assert family.documentation and family.type in ("counter", "gauge", "histogram"), family
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


def of_tool(figures: Figures, name: str, tool: str) -> list[float]:
    """The values of a figure for one tool."""
    return [value for labels, value in figures.get(name, []) if labels.get("gen_ai_tool_name") == tool]


def one(figures: Figures, name: str) -> float:
    """The value of a figure that has no labels."""
    [(labels, value)] = figures[name]
    assert labels == {}
    return value


def token_for(gateway: Gateway, scope: str) -> str:
    """The secret of a new token with one scope."""
    command = [sys.executable, "-m", "afoot", "tokens", "add", f"may-{scope}", "--scope", scope]
    made = subprocess.run(
        command, env=gateway.environment, capture_output=True, text=True, timeout=30, check=True
    )
    return made.stdout.strip()


def test_ended_calls_are_in_the_figures(api: Api) -> None:
    """V8: how many, how long, and with which end."""
    name = "mcp_server_operation_duration_seconds_count"
    before = sum(of_tool(scrape(api), name, "add"))
    for _ in range(3):
        assert api.ended(api.start("add", a=1, b=2))["outcome"] == "ok"
    found = until(
        lambda: seen if sum(of_tool(seen := scrape(api), name, "add")) == before + 3 else {}, "three calls"
    )
    [labels] = [labels for labels, _ in found[name] if labels["gen_ai_tool_name"] == "add"]
    assert labels == {
        "gen_ai_tool_name": "add",
        "afoot_server": "local",
        "afoot_outcome": "ok",
        "mcp_method_name": "tools/call",
    }
    assert of_tool(found, "afoot_calls_active", "add") == [0]


def test_live_calls_are_in_the_figures_by_state(api: Api) -> None:
    """V8: a call whose question is open waits, and does not count as running."""
    call = api.start("ask_name", tag="asked-for-metrics")
    api.asked(call)
    states = {labels["state"]: value for labels, value in scrape(api)["afoot_calls"]}
    assert states["waiting"] == 1
    assert set(states) == {"queued", "running", "waiting", "cancelling"}
    api.post(f"/api/calls/{call}/cancel", {"reason": "seen"})
    api.ended(call)


def test_the_process_and_its_readiness_are_in_the_figures(api: Api) -> None:
    """V8: by the names that every dashboard for processes looks for; without a cluster, nothing of one."""
    found = scrape(api)
    assert one(found, "afoot_ready") == 1
    assert one(found, "afoot_history_degraded") == 0
    assert one(found, "process_resident_memory_bytes") > 10_000_000
    assert 0 < one(found, "process_open_fds") < one(found, "process_max_fds")
    assert one(found, "process_cpu_seconds_total") > 0
    assert one(found, "process_start_time_seconds") > 1_700_000_000
    assert [labels for labels, _ in found["afoot_build_info"]] == [{"version": "0.1.0"}]
    assert not [name for name in found if name.startswith("afoot_cluster")]


@pytest.mark.parametrize("sent", ["", "Bearer wrong"])
def test_figures_need_a_token(api: Api, sent: str) -> None:
    """S1, V8: names of tools and of callers are nobody else's business."""
    answer = api.get("/metrics", authorization=sent)
    assert (answer.status, answer.error["category"]) == (401, "auth")


@pytest.mark.parametrize(
    ("header", "value", "status"), [("host", "evil.example", 421), ("sec_fetch_site", "cross-site", 403)]
)
def test_figures_are_for_no_other_site(api: Api, header: str, value: str, status: int) -> None:
    """S1: a page in the operator's browser does not read them."""
    assert api.get("/metrics", **{header: value}).status == status


def test_a_scraper_needs_the_scope_to_watch_alone(tmp_path: Path) -> None:
    """S2, V8: a token of its own that may do nothing else; one that may only call is refused."""
    with serving(tmp_path) as made:
        api = Api(made)
        tokens = {scope: token_for(made, scope) for scope in ("watch", "call")}
        assert scrape(api, authorization=f"Bearer {tokens['watch']}")
        assert api.post("/api/purge", {}, authorization=f"Bearer {tokens['watch']}").status == 403
        refused = api.get("/metrics", authorization=f"Bearer {tokens['call']}")
        assert (refused.status, refused.error["category"]) == (403, "auth")


def test_figures_can_be_switched_off(tmp_path: Path) -> None:
    """V8: then no call is counted, and the answer names the setting."""
    with serving(tmp_path, {"metrics": "false"}) as made:
        answer = Api(made).get("/metrics")
        assert (answer.status, answer.error["category"]) == (404, "not_found")
        assert "metrics" in answer.error["message"]


def test_a_gateway_that_nobody_scrapes_counts_nothing_and_then_what_comes(tmp_path: Path) -> None:
    """V8: a call that lives at the first scrape is active and ends in the figures, without its beginning."""
    with serving(tmp_path) as made:
        api = Api(made)
        assert api.ended(api.start("add", a=1, b=2))["outcome"] == "ok"
        call = api.start("ask_name", tag="lives")
        api.asked(call)
        name = "mcp_server_operation_duration_seconds_count"
        first = scrape(api)
        assert of_tool(first, "afoot_calls_active", "ask_name") == [1]
        assert of_tool(first, name, "add") == []
        api.post(f"/api/calls/{call}/cancel", {"reason": "seen"})
        last = until(lambda: seen if of_tool(seen := scrape(api), name, "ask_name") else {}, "its end")
        assert of_tool(last, name, "ask_name") == [1]
        assert of_tool(last, "afoot_calls_active", "ask_name") == [0]
        assert of_tool(last, "afoot_call_first_report_seconds_count", "ask_name") == []
