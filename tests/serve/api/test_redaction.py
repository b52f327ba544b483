"""Secrets reach a tool over the API, and nothing that shows, keeps or logs calls has them."""

import json
from collections.abc import Iterator

import pytest

from tests.e2e.gateway import until
from tests.serve.api_client import Api
from tests.serve.gateway_with_secrets import Secretive, secretive

HIDDEN = {"dev.afoot/redacted": True}
SECRETS = {"user": "me", "password": "hunter2hunter2", "pin": "no-such-pin-8"}
WORDS = (b"hunter2", b"no-such-pin")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secretive]:
    """A gateway with tools that get secrets."""
    with secretive(tmp_path_factory.mktemp("secrets")) as started:
        yield started


def is_clean(text: object) -> bool:
    """Whether no secret is in it."""
    data = text if isinstance(text, bytes) else json.dumps(text).encode()
    return not any(word in data for word in WORDS)


def test_no_surface_shows_a_secret_and_the_tool_has_it(api: Api, gateway: Secretive) -> None:
    """S4: the call, its events, the list, the log, and the files of the history."""
    call = api.ended(api.start("sign_in", **SECRETS))
    assert call["result"]["content"][0]["text"] == "14 and 13 characters"
    assert call["arguments"] == {"user": "me", "password": HIDDEN, "pin": HIDDEN}
    assert call["redacted"] == ["/password", "/pin"]
    events = api.get(f"/api/calls/{call['id']}/events?follow=no").body
    assert "opened" in events and "password=[redacted]" in events
    assert is_clean(call) and is_clean(events) and is_clean(api.get("/api/calls?q=sign_in").body)
    assert api.get("/api/calls?q=hunter2").body["calls"] == []
    until(lambda: "signs in with password=[redacted]" in gateway.said(), "the line in the log")
    assert is_clean(gateway.said().encode())
    files = [*gateway.folder.glob("calls.db*"), *(gateway.folder / "home").glob("*.json")]
    assert files and all(is_clean(file.read_bytes()) for file in files)


def test_a_rerun_needs_the_secrets_again(api: Api) -> None:
    """V1, S4: 422 names each field; a mark is no value, whoever sends it."""
    first = api.ended(api.start("sign_in", **SECRETS))
    path = f"/api/calls/{first['id']}/rerun"
    nothing: dict[str, object] = {}
    for body in (nothing, {"arguments": first["arguments"]}, {"arguments": {"user": "you"}}):
        answer = api.post(path, body)
        assert answer.status == 422 and answer.error["code"] == "redacted"
        assert [one["field"] for one in answer.error["fields"]] == ["/password", "/pin"]
    one = api.post(path, {"arguments": {**SECRETS, "pin": HIDDEN}})
    assert [field["field"] for field in one.error["fields"]] == ["/pin"]
    again = api.post(path, {"arguments": SECRETS})
    assert again.status == 202
    second = api.ended(again.body["id"])
    assert (second["outcome"], second["rerun_of"], second["redacted"]) == (
        "ok",
        first["id"],
        first["redacted"],
    )
    assert api.post("/api/calls", {"tool": "sign_in", "arguments": first["arguments"]}).status == 422


def test_a_reviewer_sees_marks_and_answers_what_was_displayed(api: Api) -> None:
    """S4, A6: the digest of what was shown is the one that counts."""
    call = api.start("transfer", amount=5, token="no-such-pin-token")
    asked = api.asked(call)
    assert asked["arguments"] == {"amount": 5, "token": HIDDEN} and is_clean(asked)
    yes = {"content": {"decision": "run"}, "digest": asked["digest"]}
    answer = api.post(f"/api/questions/{asked['id']}/answer", yes, **{"afoot-surface": "terminal"})
    assert answer.status == 200
    ended = api.ended(call)
    assert ended["result"]["content"][0]["text"] == "moved 5 with 17"
    said = ended["settled"][0]["answer"]
    assert (said["by"], said["surface"], said["who"]) == ("operator", "terminal", None)


def test_an_answer_is_kept_without_its_secrets(api: Api) -> None:
    """S4, Q4: the tool hears it, the history does not; and where it came from is known."""
    call = api.start("ask_password")
    asked = api.asked(call)
    given = {"content": {"password": "hunter2", "user": "me"}}
    assert api.post(f"/api/questions/{asked['id']}/answer", given).status == 200
    ended = api.ended(call)
    assert ended["result"]["content"][0]["text"] == "7 characters"
    said = ended["settled"][0]["answer"]
    assert said["content"] == {"password": HIDDEN, "user": "me"} and said["surface"] == "api"
    assert is_clean(ended)


def test_a_browser_that_answers_is_named(api: Api, gateway: Secretive) -> None:
    """V1, A3: which session said yes."""
    login = api.post("/api/session", {"code": api.post("/api/session/code", {}).body["code"]})
    browser = Api(gateway)
    browser.token = login.body["token"]
    call = api.start("transfer", amount=1, token="no-such-pin-token")
    asked = api.asked(call)
    assert (
        browser.post(f"/api/questions/{asked['id']}/answer", {"content": {"decision": "skip"}}).status == 200
    )
    said = api.ended(call)["settled"][0]["answer"]
    session = browser.get("/api/session").body["sessions"][-1]
    assert (said["surface"], said["who"]) == ("console", session["id"]) and session["mine"]


def test_children_are_counted_while_a_call_lives_and_after(api: Api) -> None:
    """V1, P8: how many, how many live, how many did not end well; and they are found by their parent."""
    call = api.start("fan_out", n=3, waits=True)
    counts = {"total": 4, "live": 1, "failed": 1}
    until(lambda: api.call(call)["children"] == counts, "three that ended and one that waits")
    page = api.get(f"/api/calls?parent={call}").body["calls"]
    below = [("child", "failed"), ("child", "ok"), ("child", "ok"), ("wait", None)]
    assert sorted((one["tool"], one["outcome"]) for one in page) == below  # those of one moment in any order
    assert {one["parent"] for one in page} == {call}
    assert [one["children"] for one in api.get("/api/snapshot").body["calls"] if one["id"] == call] == [
        counts
    ]
    assert api.post(f"/api/calls/{call}/cancel", {}).status == 202
    api.ended(call)
    until(lambda: api.call(call)["children"] == {"total": 4, "live": 0, "failed": 2}, "all over")
    assert api.ended(api.start("child"))["children"] is None
    assert api.get(f"/api/calls?parent={call}&outcome=failed").body["calls"][0]["tool"] == "child"


def test_rules_of_the_settings_are_in_force(tmp_path_factory: pytest.TempPathFactory) -> None:
    """S4: names and shapes of one's own; a wrong shape stops the start with its place."""
    folder = tmp_path_factory.mktemp("rules")
    config = folder / "afoot.toml"
    config.write_text('[redact]\nnames = ["user"]\nkeep = ["password"]\nvalues = ["no-such-[a-z]+"]\n')
    with secretive(folder, config=config) as gateway:
        call = Api(gateway).ended(Api(gateway).start("sign_in", user="me", password="no-such-word"))
        assert call["arguments"] == {"user": HIDDEN, "password": HIDDEN}
        plain = Api(gateway).ended(Api(gateway).start("sign_in", user="me", password="plain"))
        assert plain["arguments"] == {"user": HIDDEN, "password": "plain"}
