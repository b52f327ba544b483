"""The operator's API: who may use it, calls and questions over it, and what it says to bad input."""

import time
from uuid import uuid4

import pytest

from tests.e2e.gateway import until
from tests.serve.api_client import Api

PATHS = [
    "/api/calls",
    "/api/calls/x",
    "/api/calls/x/events",
    "/api/events",
    "/api/questions",
    "/api/tools",
    "/api/openapi.json",
    "/api/nothing",
]


def tag() -> str:
    """A name for marks that no other test uses."""
    return f"mark-{uuid4().hex}"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("sent", ["", "Bearer wrong", "Basic eDp5", "Bearer "])
def test_nothing_is_told_without_the_operators_token(api: Api, path: str, sent: str) -> None:
    """S1: every path under /api needs the token, also one that does not exist."""
    answer = api.get(path, authorization=sent)
    assert (answer.status, answer.error["category"]) == (401, "auth")
    assert "Authorization: Bearer" in answer.error["message"]
    assert api.token not in str(answer.body)


def test_the_token_does_not_count_in_an_address(api: Api) -> None:
    """S1: the operator's token never stands in a URL."""
    assert api.get(f"/api/calls?token={api.token}", authorization="").status == 401


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("host", "evil.example", 421),
        ("host", "127.0.0.1", 421),
        ("origin", "https://evil.example", 403),
        ("sec_fetch_site", "cross-site", 403),
        ("sec_fetch_site", "same-site", 403),
    ],
)
def test_other_hosts_and_sites_are_turned_away(api: Api, header: str, value: str, status: int) -> None:
    """S1: Host from an exact list with port, Origin our own, Sec-Fetch-Site same-origin or none."""
    assert api.get("/api/calls", **{header: value}).status == status


def test_health_and_the_console_are_public_and_tell_nothing(api: Api) -> None:
    """S1, V8: without a token one learns that it is well and ready, and gets a page without data."""
    health = api.get("/healthz", authorization="")
    assert (health.status, health.body["status"], health.body["version"]) == (200, "ok", "0.1.0")
    shell = api.get("/", authorization="")
    assert shell.status == 200 and shell.body.startswith("<!doctype html>")
    ready = api.get("/readyz", authorization="")
    assert (ready.status, ready.body) == (200, {"status": "ready"})
    assert api.get("/api/cluster").body == {"id": "", "members": [], "figures": None}
    assert api.get("/healthz", host="evil.example").status == 421
    assert api.get("/", host="evil.example").status == 421


def test_an_unknown_path_names_the_nearest(api: Api) -> None:
    """V4: what is wrong is said with what to do."""
    answer = api.get("/api/call")
    assert answer.status == 404
    assert "/api/calls" in answer.error["nearest"]
    assert "openapi" in api.get("/api/zzzzzzzzzzzzzzzz").error["message"]


def test_a_wrong_method_names_the_right_one(api: Api) -> None:
    """V4: 405 with Allow."""
    answer = api.send("DELETE", "/api/calls", None, {})
    assert (answer.status, answer.headers["allow"]) == (405, "GET, POST")


@pytest.mark.parametrize(
    ("body", "kind", "status", "word"),
    [
        (b"{", "application/json", 400, "not JSON"),
        (b"\xff\xfe", "application/json", 400, "not JSON"),
        (b'{"tool": "add", "arguments": ' + b"[" * 5000, "application/json", 400, ""),
        (
            b'{"tool": "add", "arguments": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            "application/json",
            400,
            "deep",
        ),
        (b'{"tool": 3}', "application/json", 422, "body.tool"),
        (b'{"arguments": {}}', "application/json", 422, "body.tool: missing"),
        (b'{"tool": "add", "colour": 1}', "application/json", 422, "colour"),
        (b'{"tool": "add", "arguments": []}', "application/json", 422, "arguments"),
        (b'{"tool": "add", "idle_s": -1}', "application/json", 422, "idle_s"),
        (b'{"tool": "add", "ceiling_s": 0}', "application/json", 422, "ceiling_s"),
        (b'{"tool": "add"}', "text/plain", 415, "content-type"),
        (b'{"tool": "add"}', "application/x-www-form-urlencoded", 415, "content-type"),
        (b'"' + b"x" * (5 * 1024 * 1024) + b'"', "application/json", 413, "max_body_bytes"),
        (
            b'{"tool": "add", "arguments": {"a": "' + b"x" * 1100000 + b'"}}',
            "application/json",
            413,
            "max_arg",
        ),
    ],
    ids=lambda one: None if isinstance(one, bytes) else str(one),
)
def test_a_bad_body_is_refused_with_the_field_named(
    api: Api, body: bytes, kind: str, status: int, word: str
) -> None:
    """V4: malformed, mistyped, huge and nested bodies are answered, and the gateway lives on."""
    answer = api.send("POST", "/api/calls", body, {"content-type": kind})
    assert answer.status == status
    assert word in answer.error["message"]
    assert answer.error["category"]
    assert api.get("/healthz").status == 200


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=x", "before=x", "state=gone", "outcome=fine", "colour=1"]
)
def test_a_wrong_query_is_refused_with_the_field_named(api: Api, query: str) -> None:
    """V4: a misspelt filter is no empty list."""
    answer = api.get(f"/api/calls?{query}")
    assert answer.status == 422
    assert answer.error["fields"] == [query.partition("=")[0]]


def test_a_call_is_started_and_found_again(api: Api) -> None:
    """V4: respond-async gives 202, the call and its place."""
    answer = api.post("/api/calls", {"tool": "add", "arguments": {"a": 1, "b": 2}}, prefer="respond-async")
    call = answer.body["id"]
    assert (answer.status, answer.headers["location"]) == (202, f"/api/calls/{call}")
    shown = api.ended(call)
    assert shown["result"]["structured"] == {"sum": 3}
    assert (shown["arguments"], shown["caller"], shown["failure"]) == ({"a": 1, "b": 2}, "operator", None)
    listed = api.get("/api/calls?tool=add").body["calls"]
    line = next(one for one in listed if one["id"] == call)
    same = ("id", "tool", "server", "caller", "state", "outcome", "opened", "finished", "elapsed_s")
    assert [line[key] for key in same] == [shown[key] for key in same]


def test_a_call_that_lives_is_listed_with_its_live_values(api: Api) -> None:
    """V4: the list shows what is true now, not what was true when it was written."""
    mark = tag()
    call = api.start("linger", tag=mark)
    found = until(
        lambda: [one for one in api.get("/api/calls?state=running").body["calls"] if one["progress"]],
        "progress",
    )
    line = next(one for one in found if one["id"] == call)
    assert (line["state"], line["progress"], line["total"], line["message"]) == (
        "running",
        1,
        10,
        "lingering",
    )
    assert line["started"] is not None and line["elapsed_s"] >= 0
    assert call in [one["id"] for one in api.get(f"/api/calls?q={mark}&state=live").body["calls"]]
    assert call not in [one["id"] for one in api.get("/api/calls?state=finished").body["calls"]]
    assert api.post(f"/api/calls/{call}/cancel", {}).status == 202


def test_a_call_is_cancelled_with_a_reason(api: Api) -> None:
    """X1: a cancel from the operator reaches the tool with its reason; a second one is told of the end."""
    call = api.start("linger", tag=tag())
    until(lambda: api.call(call)["progress"], "a report")
    assert api.post(f"/api/calls/{call}/cancel", {"reason": "enough"}).body["state"] == "cancelling"
    shown = api.ended(call)
    assert (shown["outcome"], shown["cancel"]["by"], shown["cancel"]["reason"]) == (
        "cancelled", "operator", "enough",
    )  # fmt: skip
    again = api.post(f"/api/calls/{call}/cancel", {"reason": "really"})
    assert (again.status, again.error["outcome"]) == (409, "cancelled")


def test_limits_can_be_lowered_for_one_call(api: Api) -> None:
    """C3: idle_s and ceiling_s of a call."""
    body = {"tool": "linger", "arguments": {"tag": tag()}, "idle_s": 0.3}
    call = api.post("/api/calls", body, prefer="respond-async").body["id"]
    shown = api.ended(call)
    assert (shown["outcome"], shown["failure"]["clock"]) == ("timed_out", "idle")
    assert shown["failure"]["last"]["progress"] == 1


def test_arguments_that_do_not_fit_end_the_call(api: Api) -> None:
    """E1: the call failed, and says which argument."""
    call = api.start("add", a="x", b=2)
    shown = api.ended(call)
    assert (shown["outcome"], shown["failure"]["category"]) == ("failed", "validation")
    assert "a" in shown["failure"]["message"]


def test_unknown_names_list_the_nearest(api: Api) -> None:
    """E5: unknown tool, unknown call."""
    answer = api.post("/api/calls", {"tool": "ad"})
    assert (answer.status, answer.error["nearest"][0]) == (404, "add")
    assert "add" in api.get("/api/tools/ad").error["nearest"]
    call = api.start("add", a=1, b=1)
    api.ended(call)
    wrong = f"{call[-8:-1]}{'0' if call[-1] != '0' else '1'}"
    answer = api.get(f"/api/calls/{wrong}")
    assert answer.status == 404
    assert call[-8:] in answer.error["nearest"]


def test_a_call_is_known_by_the_end_of_its_id(api: Api) -> None:
    """V2: what a person types is short; what fits several names them."""
    call = api.start("add", a=1, b=1)
    api.start("add", a=1, b=1)
    assert api.call(call[-8:])["id"] == call
    api.ended(call)
    assert api.call(call[-8:])["id"] == call
    many = api.get(f"/api/calls/{call[:4]}")
    assert many.status == 409 and len(many.error["nearest"]) > 1


def test_pages_of_calls_join_without_a_gap(api: Api) -> None:
    """V4: `next` of one page is `before` of the next."""
    made = [api.start("add", a=n, b=0) for n in range(5)]
    until(lambda: all(api.call(one)["outcome"] for one in made), "their ends")
    found: list[str] = []
    opened: list[float] = []
    place: float | None = None
    while not set(made) <= set(found):
        before = "" if place is None else f"&before={place!r}"
        page = api.get(f"/api/calls?limit=2{before}").body
        found += [one["id"] for one in page["calls"]]
        opened += [one["opened"] for one in page["calls"]]
        place = page["next"]
        assert place is not None or set(made) <= set(found)
    assert len(found) == len(set(found))
    assert opened == sorted(opened, reverse=True)


def test_tools_are_listed_with_schemas_and_limits(api: Api) -> None:
    """V4: enough to build a form, and to know how long a call may take."""
    tools = {one["name"]: one for one in api.get("/api/tools").body["tools"]}
    assert tools["paced"]["limits"]["idle_s"] == 0.6 and tools["paced"]["limits"]["ceiling_s"] == 2.0
    assert tools["add"]["annotations"]["readOnlyHint"] is True
    one = api.get("/api/tools/add").body
    assert one.pop("stats")["runs"] >= 0  # only of one tool by itself
    assert one == tools["add"] and set(one["inputSchema"]["required"]) == {"a", "b"}


def test_the_description_names_every_path_and_all_its_types(api: Api) -> None:
    """V4: /api/openapi.json is whole."""
    document = api.get("/api/openapi.json").body
    assert document["openapi"].startswith("3.1")
    assert {"/api/calls", "/api/calls/{id}/events", "/api/questions/{id}/answer", "/healthz"} <= set(
        document["paths"]
    )
    text = str(document)
    for name in document["components"]["schemas"]:
        assert f"#/components/schemas/{name}" in text
    assert document["paths"]["/healthz"]["get"]["security"] == []


def test_a_listing_is_quick_while_a_call_blocks_nothing(api: Api) -> None:
    """V4: the API answers while tools run."""
    call = api.start("linger", tag=tag())
    began = time.monotonic()
    for _ in range(20):
        assert api.get("/api/calls?limit=10").status == 200
    assert time.monotonic() - began < 5
    api.post(f"/api/calls/{call}/cancel", {})


def test_a_body_that_is_no_utf_8_is_refused(api: Api) -> None:
    """S5, S8: parts that are passed on undecoded came back to every watcher; found by the fuzzer."""
    body = b'{"tool":"ask_name","arguments":{"tag":"\xff"}}'
    answer = api.send("POST", "/api/calls", body, {"content-type": "application/json"})
    assert answer.status == 400 and "not JSON" in answer.error["message"]
