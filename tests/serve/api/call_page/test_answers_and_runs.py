"""Earlier answers, and earlier and later runs, over the operator's API."""

from typing import Any

from tests.serve.api_client import Api


def answers(api: Api, query: str = "") -> list[dict[str, Any]]:
    """The newest answers."""
    return list(api.get(f"/api/answers?{query}").body["answers"])


def answered(api: Api, house: str, **content: object) -> str:
    """A call whose approval got this answer."""
    call = api.start("demolish", house=house)
    question = api.asked(call)
    assert api.post(f"/api/questions/{question['id']}/answer", {"content": content}).status == 200
    return call


def test_the_answers_of_a_tool_are_listed_newest_first(api: Api) -> None:
    """A2, A3: what was decided, with which arguments and words, by whom, and how the call ended."""
    first = answered(api, "red", decision="reject", instead="paint it")
    assert api.ended(first)["outcome"] == "refused"
    second = answered(api, "blue", decision="run")
    asked = api.asked(second)
    api.post(f"/api/questions/{asked['id']}/answer", {"action": "decline"})
    api.ended(second)
    told = answers(api, "tool=demolish&server=local")
    assert [(one["call"], one["kind"]) for one in told[:3]] == [
        (second, "form"), (second, "approval"), (first, "approval"),
    ]  # fmt: skip
    assert told[2]["answer"]["content"] == {"decision": "reject", "instead": "paint it"}
    assert (told[2]["arguments"], told[2]["outcome"]) == ({"house": "red"}, "refused")
    assert (told[1]["answer"]["surface"], told[1]["outcome"]) == ("api", "ok")
    assert told[1]["ran_s"] is not None and told[2]["ran_s"] is None
    assert {one["tool"] for one in answers(api)} >= {"demolish"}
    assert answers(api, "tool=demolish&limit=1") == told[:1]
    assert answers(api, "tool=leaf") == []


def test_an_answer_in_a_live_call_is_listed_at_once(api: Api) -> None:
    """A3: before the call has ended."""
    call = answered(api, "green", decision="run")
    asked = api.asked(call)
    told = answers(api, "tool=demolish")[0]
    assert (told["call"], told["outcome"], told["question"]) == (call, None, f"{call}.1")
    api.post(f"/api/questions/{asked['id']}/answer", {"action": "decline"})
    api.ended(call)


def test_an_unknown_filter_or_limit_of_answers_is_refused(api: Api) -> None:
    """E4: 422 with the field."""
    assert api.get("/api/answers?who=me").error["fields"] == ["who"]
    assert api.get("/api/answers?limit=0").error["fields"] == ["limit"]


def test_the_runs_before_and_after_a_call_are_of_its_tool(api: Api) -> None:
    """V1: the nearest ones, live ones included; null at both ends of the line."""
    calls = []
    for name in ("a", "b"):
        calls.append(api.start("leaf", name=name))
        api.ended(calls[-1])
        api.ended(api.start("heap", size=1))
    calls.append(api.start("leaf", name="c"))

    def runs(call: str) -> tuple[str | None, str | None]:
        body = api.get(f"/api/calls/{call}/runs").body
        earlier, later = body["earlier"], body["later"]
        return earlier and earlier["id"], later and later["id"]

    assert runs(calls[1]) == (calls[0], calls[2])
    assert runs(calls[2])[0] == calls[1] and runs(calls[2])[1] is None
    assert runs(calls[0])[1] == calls[1]
