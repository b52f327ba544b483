"""What was said on the wires of a call: both sides, both eras, without secrets; only where it is wanted."""

import asyncio
import sys
from pathlib import Path

import pytest
from msgspec import json

from afoot.core.ports import CallQuery, Run
from afoot.engine.engine import Engine
from afoot.wire.browser_data import PageReport
from tests.e2e.raw_client import Http, call
from tests.providers.browser.fake_browser import page_tool, scene
from tests.serve.api_client import Api
from tests.serve.fake_gateway import Client, asks, call_request, faked, only, site_of, wanted
from tests.serve.gateway_with_secrets import TOOLS, secretive
from tests.serve.raw_transports import hello, older


def token_checks(engine: Engine, name: str) -> list[tuple[str, str, object]]:
    """What is on a call's tape: side, way, and the method or what it is."""
    assert engine.wire_log is not None
    read = [(one.side, one.way, json.decode(one.message)) for one in engine.wire_log[name].said]
    return [
        (side, way, said.get("method", "result" if "result" in said else "?")) for side, way, said in read
    ]


async def reports(run: Run) -> str:
    """A tool that reports."""
    run.report(1.0, 2.0, "half")
    return "done"


@faked
async def test_a_modern_callers_request_and_frames_are_taken_down() -> None:
    """V4: the request as it came, the notifications, and the result."""
    async with site_of(reports) as gateway:
        wire_log = gateway.engine.record_wire()
        tape = await call_request(gateway, wanted(token=1))
        name = (await gateway.engine.journal.find(CallQuery()))[0].id
        assert token_checks(gateway.engine, name) == [
            ("caller", "in", "tools/call"),
            ("caller", "out", "notifications/progress"),
            ("caller", "out", "result"),
        ]
        last = json.decode(wire_log[name].said[-1].message)
        assert last["result"]["content"] == tape.result["content"]


@faked
async def test_a_session_that_is_asked_has_its_answer_on_the_tape() -> None:
    """V4: our request, its response, the result; a secret in the response is a mark."""
    async with site_of(asks) as gateway:
        wire_log = gateway.engine.record_wire()
        client = Client(gateway)
        await client.ask(hello(elicitation={}))
        sent = client.put(older(), streaming=True)
        await asyncio.sleep(1)
        name = only(gateway).call.id
        client.answer(sent.of("elicitation/create")[0][1], action="accept", content={"password": "hunter2"})
        await client.done()
        found = token_checks(gateway.engine, name)
        assert found[0] == ("caller", "in", "tools/call")
        assert ("caller", "out", "elicitation/create") in found and ("caller", "in", "result") in found
        answer = next(one for one in wire_log[name].said if b"redacted" in bytes(one.message))
        assert (answer.side, answer.way) == ("caller", "in") and b"hunter2" not in bytes(answer.message)


@faked
async def test_without_the_wish_nothing_is_taken_down() -> None:
    """V4: the outlet is the very same."""
    async with site_of(reports) as gateway:
        await call_request(gateway, wanted(token=1))
        assert gateway.engine.wire_log is None


@faked
async def test_what_a_page_is_told_and_tells_is_taken_down() -> None:
    """V4, B1: the frames of its run."""
    async with scene() as play:
        play.open(page_tool())
        wire_log = play.engine.record_wire()
        live, sent = await play.call("shop_example_add", {"n": 1, "token": "hunter2"})
        play.progress(sent, 1, PageReport(1, 3, "one"))
        play.end(sent, {"total": 7}, 2)
        await play.ended(live)
        found = token_checks(play.engine, live.call.id)
        assert [(side, way) for side, way, _ in found] == [("page", "out"), ("page", "in"), ("page", "in")]
        assert b"hunter2" not in b"".join(bytes(one.message) for one in wire_log[live.call.id].said)


def test_both_sides_of_a_call_to_a_server_are_shown(tmp_path: Path) -> None:
    """V4, S4: over the API, with when and which way; and only while it is set."""
    config = tmp_path / "afoot.toml"
    tools = tmp_path / "inner.py"
    tools.write_text(TOOLS)
    words = [sys.executable, "-m", "afoot", "serve", str(tools), "--stdio", "--store", ":memory:"]
    config.write_text(f"record_wire = true\n[servers.inner]\ncommand = {words[0]!r}\nargs = {words[1:]!r}\n")
    with secretive(tmp_path / "on", config=config) as gateway:
        api = Api(gateway)
        with Http(gateway.url) as http:
            arguments = {"user": "me", "password": "hunter2", "pin": "hunter2"}
            answer = http.ask(call("inner__sign_in", arguments, progressToken="p1"))
            assert answer["result"]["content"][0]["text"] == "7 and 7 characters"
        name = api.get("/api/calls?tool=inner__sign_in").body["calls"][0]["id"]
        shown = api.get(f"/api/calls/{name}/wire").body
        assert shown["recording"] is True and shown["left_out"] == 0
        sides = [(one["side"], one["way"]) for one in shown["messages"]]
        assert sides[:2] == [("caller", "in"), ("upstream", "out")] and sides[-1] == ("caller", "out")
        assert sides[-2] == ("upstream", "in")
        inner = next(one["message"] for one in shown["messages"] if one["side"] == "upstream")
        assert inner["method"] == "tools/call" and inner["params"]["arguments"]["user"] == "me"
        assert "hunter2" not in str(shown) and shown["messages"][0]["at"] > 0
        assert api.get("/api/calls/nobody00/wire").status == 404


def test_off_is_said(api: Api) -> None:
    """V4: by default."""
    name = api.ended(api.start("add", a=1, b=2))["id"]
    assert api.get(f"/api/calls/{name}/wire").body == {"recording": False, "messages": [], "left_out": 0}


@pytest.mark.parametrize("value", ["true", "1"])
def test_a_variable_switches_it_on(tmp_path: Path, value: str) -> None:
    """V4: AFOOT_RECORD_WIRE."""
    with secretive(tmp_path, record_wire=value) as gateway:
        api = Api(gateway)
        name = api.ended(api.start("child"))["id"]
        assert api.get(f"/api/calls/{name}/wire").body["recording"] is True
