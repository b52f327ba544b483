"""Approval over the operator's API: shown in full, decided once; an allowlist that outlives the gateway."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.e2e.gateway import Gateway, serving, until
from tests.serve.api_client import Answer, Api, Recorder


def ask(api: Api, **arguments: object) -> tuple[str, dict[str, Any]]:
    """A call that asks whether it may run."""
    call = api.start("wipe", tag=f"mark-{uuid4().hex}", **arguments)
    return call, api.asked(call)


def decide(api: Api, question: dict[str, Any], **content: object) -> Answer:
    """A decision; `for_` is its `for`."""
    said = {key.rstrip("_"): value for key, value in content.items()}
    return api.post(f"/api/questions/{question['id']}/answer", {"action": "accept", "content": said})


def revoke_all(api: Api) -> None:
    """Nothing is allowed any more."""
    for one in api.get("/api/allow").body["allowed"]:
        assert api.send("DELETE", f"/api/allow/{one['id']}", None, {}).status == 200


def test_an_approval_shows_what_is_to_run_and_what_may_be_decided(api: Api) -> None:
    """A2, A5: tool, server, arguments in full, why, and the choices."""
    call, question = ask(api, what="x" * 10_000)
    assert (question["kind"], question["tool"], question["server"]) == ("approval", "wipe", "local")
    assert (question["caller"], question["to"]) == ("operator", "operator")
    assert question["arguments"]["what"] == "x" * 10_000 and "destroy" in question["why"]
    assert [one["decision"] for one in question["choices"]] == ["run", "skip", "reject", "always"]
    assert set(question["schema"]["properties"]) == {"decision", "instead", "scope", "for"}
    shown = api.call(call)
    assert (shown["state"], shown["waiting"], shown["approved"]) == ("queued", "person", "none")
    assert decide(api, question, decision="skip").status == 200


@pytest.mark.parametrize(
    ("content", "outcome", "approved"),
    [
        ({"decision": "run"}, "ok", "user"),
        ({"decision": "skip"}, "refused", "none"),
        ({"decision": "reject", "instead": "use the bin"}, "refused", "none"),
    ],
)
def test_a_decision_settles_it(api: Api, content: dict[str, str], outcome: str, approved: str) -> None:
    """A2, A3: in the call, and in its line of the history."""
    call, question = ask(api)
    assert decide(api, question, **content).status == 200
    ended = api.ended(call)
    assert (ended["outcome"], ended["approved"]) == (outcome, approved)
    if "instead" in content:
        assert "use the bin" in ended["failure"]["message"]
    line = next(one for one in api.get("/api/calls?tool=wipe").body["calls"] if one["id"] == call)
    assert line["approved"] == approved
    assert api.ended(api.start("add", a=1, b=2))["approved"] == "auto"


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"decision": "perhaps"}, "decision"),
        ({"decision": "always", "for": "a while"}, "for"),
        ({"decision": "always", "scope": "world"}, "scope"),
        ({"yes": True}, ""),
    ],
)
def test_a_decision_that_does_not_fit_names_the_field(api: Api, content: dict[str, Any], field: str) -> None:
    """A2, Q2: 422, and it stays open."""
    call, question = ask(api)
    answer = decide(api, question, **content)
    assert (answer.status, answer.error["category"]) == (422, "validation")
    assert [one["field"] for one in answer.error["fields"]] == [field]
    assert api.question(call) is not None
    decide(api, question, decision="skip")


def test_a_second_decision_is_refused_and_names_the_first(api: Api) -> None:
    """A5: 409, whoever was first."""
    _, question = ask(api)
    assert decide(api, question, decision="skip").status == 200
    second = decide(api, question, decision="run")
    assert second.status == 409 and "accept, by operator" in second.error["message"]


def test_everybody_who_watches_sees_that_it_was_answered(api: Api) -> None:
    """A5, H2: over the stream of everything."""
    with Recorder(api, "/api/events") as watcher:
        until(lambda: watcher.events, "the snapshot")
        call, question = ask(api)
        until(lambda: "asked" in watcher.kinds(call), "the question")
        decide(api, question, decision="run")
        until(lambda: "answered" in watcher.kinds(call), "its answer")


@pytest.mark.parametrize("scope", ["tool", "server", "arguments"])
def test_always_is_listed_and_revoked(api: Api, scope: str) -> None:
    """A2, A4: what, as it was defined, since when, by whom, until when."""
    _, question = ask(api, what="one")
    decide(api, question, decision="always", scope=scope, for_=3600)
    [one] = api.get("/api/allow").body["allowed"]
    assert (one["server"], one["scope"], one["by"], one["caller"]) == ("local", scope, "operator", None)
    assert one["until"] - one["since"] == pytest.approx(3600, abs=1)
    assert len(one["tools"]["wipe"]) == 64 and one["changed"] == []
    assert (len(one["tools"]) > 1) == (scope == "server")
    assert ("arguments" in one) == (scope == "arguments")
    tag = question["arguments"]["tag"]
    again = api.start("wipe", tag=tag, what="one")
    assert api.ended(again)["approved"] == "allowlist"
    revoke_all(api)
    third = api.start("wipe", tag=tag, what="one")
    decide(api, api.asked(third), decision="skip")


def test_a_tool_is_allowed_beforehand(api: Api) -> None:
    """A4: by name, by server, or with exactly these arguments."""
    added = api.post("/api/allow", {"tool": "local/wipe", "for": 60})
    assert added.status == 201 and list(added.body["tools"]) == ["wipe"]
    assert api.ended(api.start("wipe", tag=f"mark-{uuid4().hex}"))["approved"] == "allowlist"
    revoke_all(api)
    tag = f"mark-{uuid4().hex}"
    exact = api.post("/api/allow", {"tool": "wipe", "arguments": {"what": "dust", "tag": tag}})
    assert exact.body["scope"] == "arguments" and "dust" in exact.body["words"]
    assert api.ended(api.start("wipe", tag=tag, what="dust"))["approved"] == "allowlist"
    decide(api, ask(api, what="gold")[1], decision="skip")
    whole = api.post("/api/allow", {"server": "local"})
    assert whole.body["scope"] == "server" and "every tool" in whole.body["words"]
    revoke_all(api)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"tool": "wipe", "server": "local"}, 422),
        ({"tool": "wipee"}, 404),
        ({"server": "nowhere"}, 404),
        ({"tool": "wipe", "for": "connection"}, 422),
        ({"tool": "wipe", "for": 0}, 422),
        ({"tool": "wipe", "for": "soon"}, 422),
        ({"tool": "wipe", "scope": "server"}, 422),
        ({"tool": "wipe", "scope": "arguments"}, 422),
        ({"tool": "wipe", "arguments": []}, 422),
        ({"server": "local", "arguments": {}}, 422),
        ({"tool": "wipe", "ever": True}, 422),
    ],
)
def test_what_cannot_be_allowed_is_told(api: Api, body: dict[str, Any], status: int) -> None:
    """A4, E4: and nothing is."""
    assert api.post("/api/allow", body).status == status
    assert api.get("/api/allow").body["allowed"] == []
    assert api.send("DELETE", "/api/allow/nothing", None, {}).status == 404


@pytest.fixture
def home(tmp_path: Path) -> Callable[[], dict[str, Any]]:
    """The stored list."""
    return lambda: json.loads((tmp_path / "home" / "allow.json").read_text())


def test_what_is_allowed_for_ever_outlives_the_gateway(
    tmp_path: Path, home: Callable[[], list[dict[str, Any]]]
) -> None:
    """A4, A5: in a file of its owner alone; a connection's word is not in it."""
    with serving(tmp_path) as gateway:
        api = Api(gateway)
        decide(api, ask(api)[1], decision="always")
        assert not (tmp_path / "home" / "allow.json").exists()
        revoke_all(api)
        decide(api, ask(api)[1], decision="always", for_="ever")
        assert stat.S_IMODE((tmp_path / "home" / "allow.json").stat().st_mode) == 0o600
        assert [one["by"] for one in home()] == ["operator"]
    with serving(tmp_path) as gateway:
        api = Api(gateway)
        assert api.ended(api.start("wipe", tag="later"))["approved"] == "allowlist"
        revoke_all(api)
        assert home() == []


def test_a_list_that_is_broken_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    """A4: at the start, and while it runs; nothing is overwritten."""
    file = tmp_path / "home" / "allow.json"
    with serving(tmp_path) as gateway:
        api = Api(gateway)
        decide(api, ask(api)[1], decision="always", for_="ever")
        file.write_text('[{"id": ')
        call, question = ask(api)
        assert "allow.json" in api.get("/api/allow").error["message"]
        decide(api, question, decision="always", for_="ever")
        assert api.ended(call)["outcome"] == "ok" and file.read_text() == '[{"id": '
    broken = Gateway(tmp_path)
    with pytest.raises(pytest.fail.Exception, match="no address"):
        broken.start()
    assert str(file) in broken.said() and file.read_text() == '[{"id": '
