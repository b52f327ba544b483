"""A call run once more: a new one, linked to the old, and approved anew."""

from uuid import uuid4

from tests.serve.api_client import Api


def test_a_call_is_run_again_with_the_same_arguments(api: Api) -> None:
    """V1: 202, a new id, and the link is in the history."""
    first = api.ended(api.start("add", a=2, b=3))
    answer = api.post(f"/api/calls/{first['id']}/rerun", {})
    assert answer.status == 202 and answer.headers["location"] == f"/api/calls/{answer.body['id']}"
    second = api.ended(answer.body["id"])
    assert second["id"] != first["id"] and second["arguments"] == {"a": 2, "b": 3}
    assert (second["rerun_of"], second["outcome"], second["caller"]) == (first["id"], "ok", "operator")
    assert first["rerun_of"] is None


def test_it_may_be_run_with_other_arguments(api: Api) -> None:
    """V1: those of the form; the old call keeps its own."""
    first = api.ended(api.start("add", a=2, b=3))
    answer = api.post(f"/api/calls/{first['id']}/rerun", {"arguments": {"a": 40, "b": 2}})
    assert api.ended(answer.body["id"])["result"]["structured"] == {"sum": 42}
    assert api.call(first["id"])["arguments"] == {"a": 2, "b": 3}


def test_what_needed_a_yes_needs_another(api: Api) -> None:
    """A6: an approval is for that exact call."""
    first = api.asked(api.start("wipe", tag=f"mark-{uuid4().hex}"))
    yes = {"content": {"decision": "run"}, "digest": first["digest"]}
    assert api.post(f"/api/questions/{first['id']}/answer", yes).status == 200
    api.ended(first["call"])
    again = api.post(f"/api/calls/{first['call']}/rerun", {}).body["id"]
    asked = api.asked(again)
    assert asked["changed"]["arguments"] is None
    assert api.post(f"/api/questions/{asked['id']}/answer", yes).status == 409
    api.post(f"/api/questions/{asked['id']}/answer", {"action": "decline"})
    assert api.ended(again)["outcome"] == "refused"


def test_a_rerun_that_does_not_fit_is_refused(api: Api) -> None:
    """E4: no object, an unknown field, an unknown call; a tool's own check ends the new call."""
    first = api.ended(api.start("add", a=2, b=3))
    assert api.post(f"/api/calls/{first['id']}/rerun", {"arguments": [1]}).status == 422
    assert api.post(f"/api/calls/{first['id']}/rerun", {"tool": "wipe"}).status == 422
    assert api.post("/api/calls/nobody0000/rerun", {}).status == 404
    wrong = api.post(f"/api/calls/{first['id']}/rerun", {"arguments": {"a": "x", "b": 1}}).body["id"]
    assert api.ended(wrong)["failure"]["category"] == "validation"


def test_a_secret_below_a_name_of_digits_is_no_place_in_a_list(api: Api) -> None:
    """S4: the name may have more digits than Python reads as a number."""
    first = api.start("add", a={"9" * 5_000: {"password": "hunter22hunter22"}}, b=3)
    api.ended(first)
    answer = api.post(f"/api/calls/{first}/rerun", {"arguments": {"a": [1], "b": 3}})
    assert answer.status == 202
