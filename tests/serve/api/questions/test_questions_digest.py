"""Answers to exactly what was displayed, and what a reviewer is told has changed since the last yes."""

import json
import sys
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from tests.e2e.gateway import Gateway, serving, until
from tests.e2e.gateway_with_servers import fronting
from tests.serve.api_client import Answer, Api

SERVER: Final = Path(__file__).parents[3] / "providers" / "upstream" / "changing_server.py"


def ask(api: Api, **arguments: object) -> dict[str, Any]:
    """The question of a call that asks whether it may run."""
    return api.asked(api.start("wipe", tag=f"mark-{uuid4().hex}", **arguments))


def say(api: Api, question: dict[str, Any], decision: str, **more: object) -> Answer:
    """A decision."""
    body = {"action": "accept", "content": {"decision": decision}, **more}
    return api.post(f"/api/questions/{question['id']}/answer", body)


def test_an_answer_to_something_else_than_is_asked_is_refused(api: Api) -> None:
    """A6: 409, with what is asked now; the question stays open, and the right digest answers it."""
    first, second = ask(api, what="a"), ask(api, what="b")
    assert first["digest"] != second["digest"]
    refused = say(api, first, "run", digest=second["digest"])
    assert (refused.status, refused.error["category"]) == (409, "refused")
    assert "not what was displayed" in refused.error["message"]
    assert refused.error["question"]["digest"] == first["digest"]
    assert refused.error["question"]["arguments"]["what"] == "a"
    assert api.question(first["call"]) is not None
    assert say(api, first, "run", digest=first["digest"]).status == 200
    assert say(api, second, "skip", digest=second["digest"]).status == 200
    assert api.ended(first["call"])["outcome"] == "ok"


def test_the_digest_is_the_same_wherever_the_question_is_seen(api: Api) -> None:
    """A6: in the list, in the call, and in a call that has asked a form."""
    question = ask(api)
    assert api.call(question["call"])["questions"][0]["digest"] == question["digest"]
    say(api, question, "skip")
    assert api.call(question["call"])["settled"][0]["digest"] == question["digest"]
    form = api.asked(api.start("ask_name", tag=f"mark-{uuid4().hex}"))
    body = {"content": {"name": "Ann"}, "digest": "0" * 64}
    assert api.post(f"/api/questions/{form['id']}/answer", body).status == 409
    assert api.post(f"/api/questions/{form['id']}/answer", {**body, "digest": form["digest"]}).status == 200


def test_the_second_of_two_operators_sees_what_the_first_has_said(api: Api) -> None:
    """A5: 409, with who answered what and when."""
    question = ask(api)
    assert say(api, question, "skip", digest=question["digest"]).status == 200
    late = say(api, question, "run", digest=question["digest"])
    assert late.status == 409 and "already answered" in late.error["message"]
    answer = late.error["question"]["answer"]
    assert (answer["by"], answer["content"]) == ("operator", {"decision": "skip"})
    assert answer["at"] >= question["asked"]


def test_a_reviewer_is_told_what_changed_since_the_last_yes(api: Api, gateway: Gateway) -> None:
    """A4, S1: arguments before and after; a no changes nothing; the file is its owner's."""
    tag = f"mark-{uuid4().hex}"
    first = api.asked(api.start("wipe", tag=tag, what="the old"))
    say(api, first, "run")
    api.ended(first["call"])
    same = api.asked(api.start("wipe", tag=tag, what="the old"))
    assert (same["changed"]["definition"], same["changed"]["arguments"]) == (None, None)
    assert same["changed"]["at"] >= first["asked"] and same["source"] == ""
    assert same["destructive"] is True
    say(api, same, "skip")
    other = api.asked(api.start("wipe", tag=tag, what="the new"))
    change = other["changed"]["arguments"]
    assert '"the old"' in change["before"] and '"the new"' in change["after"]
    say(api, other, "skip")
    again = api.asked(api.start("wipe", tag=tag, what="the newest"))
    assert '"the old"' in again["changed"]["arguments"]["before"]
    say(api, again, "skip")
    assert (gateway.folder / "home" / "approved.json").stat().st_mode & 0o777 == 0o600


def test_what_is_too_long_to_compare_is_said_to_be_other(api: Api) -> None:
    """A4, G3: no text before or after, and never as if nothing had changed."""
    first = ask(api, what="x" * 20_000)
    say(api, first, "run")
    api.ended(first["call"])
    second = ask(api, what="x" * 20_000)
    assert second["changed"]["arguments"] == {"before": "", "after": ""}
    say(api, second, "skip")


def test_the_last_yes_outlives_the_gateway(tmp_path: Any) -> None:
    """A4, H4: a reviewer after a restart is told as well."""
    with serving(tmp_path) as gateway:
        first = ask(Api(gateway), what="before")
        say(Api(gateway), first, "run")
        Api(gateway).ended(first["call"])
        gateway.stop()
        gateway.start()
        second = ask(Api(gateway), what="after")
        assert '"before"' in second["changed"]["arguments"]["before"]
        assert until(lambda: say(Api(gateway), second, "skip").status == 200, "its answer")


def test_an_answer_to_a_definition_that_has_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    """A7: 409, with the question about what the tool is now; only an answer to that one counts."""
    tools = tmp_path / "tools.json"
    tools.write_text(_wipe("before"))
    with fronting(
        tmp_path, {"files": {"command": sys.executable, "args": [str(SERVER), str(tmp_path)]}}
    ) as gateway:
        api = Api(gateway)
        first = api.asked(api.start("wipe"))
        tools.write_text(_wipe("after"))
        assert api.post("/api/servers/files/reload", {}).status == 200
        refused = say(api, first, "run", digest=first["digest"])
        assert refused.status == 409 and "its tool has changed" in refused.error["message"]
        second = api.asked(first["call"])
        assert refused.error["question"]["id"] == second["id"] != first["id"]
        assert second["digest"] != first["digest"] and "has changed" in second["why"]
        assert say(api, second, "run", digest=second["digest"]).status == 200
        assert api.ended(first["call"])["outcome"] == "ok"
    assert (tmp_path / "ran").read_text() == "after\n"


def _wipe(title: str) -> str:
    """A list of one tool that must be asked about."""
    hints, schema = {"destructiveHint": True}, {"type": "object"}
    return json.dumps([{"name": "wipe", "title": title, "inputSchema": schema, "annotations": hints}])
