"""What is stolen or made up: sessions, states, keys and tasks of another caller, from end to end."""

import json
from typing import Any, Final

import pytest

from tests.e2e.access.test_tokens import afoot, ask, bearing, token
from tests.e2e.gateway_with_servers import Front
from tests.e2e.raw_client import EVERYTHING, LATEST, Http, Message, call, hello, last, modern, request
from tests.serve.api_client import Api

ADA: Final = {"name": {"action": "accept", "content": {"name": "Ada"}}}
KEY: Final = "dev.afoot/idempotency"
HELLO: Final = request("initialize", hello(EVERYTHING))


@pytest.fixture(scope="module")
def ada(closed: Front) -> str:
    """Somebody's token."""
    return token(closed, "ada")


@pytest.fixture(scope="module")
def eve(closed: Front) -> str:
    """Somebody else's."""
    return token(closed, "eve")


def test_a_stolen_session_is_of_no_use_with_another_token(closed: Front, ada: str, eve: str) -> None:
    """S3: to whoever is not its owner it does not exist, whatever they do with it."""
    with Http(closed.url) as http:
        opened = http.post(HELLO, mcp_protocol_version=None, authorization=f"Bearer {ada}")
        session = opened.getheader("mcp-session-id")
        assert session and "error" not in last(opened)
        add_up = request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, 2)
        for secret, status in ((eve, 404), ("", 401), (ada, 200)):
            sent = {
                "mcp_session_id": session, "mcp_protocol_version": LATEST, "mcp_method": None,
                "mcp_name": None, "authorization": f"Bearer {secret}" if secret else None,
            }  # fmt: skip
            answer = http.post(add_up, **sent)
            assert (answer.status, ("error" in last(answer))) == (status, status != 200)
    assert plain(closed, "GET", session, eve, **{"last-event-id": "1.2.3"}) == 404
    assert plain(closed, "GET", session, eve) == plain(closed, "DELETE", session, eve) == 404
    assert plain(closed, "DELETE", session, ada) == 200


def test_a_stolen_state_is_of_no_use_to_another_caller(closed: Front, ada: str, eve: str) -> None:
    """Q1 c, S3: nor changed, nor for other arguments; and sent twice by its owner it runs nothing twice."""
    tag = "stolen-state"
    first = ask(closed, call("ask_name", {"tag": tag}), ada)[1]["result"]
    state = first["requestState"]
    half = len(state) // 2
    changed = state[:half] + ("A" if state[half] != "A" else "B") + state[half + 1 :]
    tries = [(eve, tag, state), (ada, tag, changed), (ada, "other", state), (ada, tag, state[:-1])]
    for secret, named, sent in tries:
        retry = call("ask_name", {"tag": named}, 2, requestState=sent, inputResponses=ADA)
        assert ask(closed, retry, secret)[1]["error"]["code"] == -32602
    retry = call("ask_name", {"tag": tag}, 3, requestState=state, inputResponses=ADA)
    done = [ask(closed, retry, ada)[1]["result"]["structuredContent"] for _ in range(2)]
    assert done[0] == done[1] == {"action": "accept", "content": {"name": "Ada"}}
    assert closed.marks(tag) == ["ran", "answered accept"]
    assert "error" in ask(closed, retry, eve)[1]


def test_the_key_of_another_caller_joins_nothing(closed: Front, ada: str, eve: str) -> None:
    """X3, S3: each has its own; the same caller joins what it has begun."""
    tag = "stolen-key"
    sent = call("nap", {"tag": tag}, **{KEY: "k"})
    results = [ask(closed, sent, secret)[1]["result"] for secret in (ada, ada, eve)]
    ids = [result["_meta"]["dev.afoot/call"] for result in results]
    assert ids[0] == ids[1] != ids[2]
    assert closed.marks(tag) == ["started", "ended"] * 2


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
def test_a_guessed_task_is_one_that_there_is_not(closed: Front, ada: str, eve: str, method: str) -> None:
    """S3, H3: word for word; and its owner's goes on."""
    running = bearing(closed, ada).start("linger", tag=f"guessed-{method.replace('/', '-')}")
    more: dict[str, Any] = {"inputResponses": {}} if method == "tasks/update" else {}
    able: Message = {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
    errors = [
        json.dumps(ask(closed, modern(method, {"taskId": one, **more}, capabilities=able), eve)[1]["error"])
        for one in (running, "f" * len(running))
    ]
    assert errors[0].replace(running, "X") == errors[1].replace("f" * len(running), "X")
    assert bearing(closed, ada).call(running)["state"] == "running"
    assert bearing(closed, ada).post(f"/api/calls/{running}/cancel", {}).status == 202


def plain(gateway: Front, method: str, session: str, secret: str, **headers: str) -> int:
    """The status of a request of a session without a body."""
    sent = {
        "mcp-session-id": session,
        "mcp-protocol-version": LATEST,
        "accept": "text/event-stream",
        **headers,
    }
    api = bearing(gateway, secret)
    with api.open(method, "/mcp", None, sent) as (_, response):
        return response.status


def test_a_browser_that_a_stolen_token_let_in_goes_with_it(closed: Front) -> None:
    """S2: the token is taken back, and nothing that came of it is left."""
    api = bearing(closed, token(closed, "stolen", "--scope", "admin"))
    inside = logged_in(closed, api)
    behind = logged_in(closed, inside)
    assert inside.get("/api/session").status == behind.get("/api/session").status == 200
    assert afoot(closed, "tokens", "revoke", "stolen").returncode == 0
    assert inside.get("/api/session").status == behind.get("/api/session").status == 401


def test_a_browser_that_a_token_let_in_may_do_no_more_than_the_token(closed: Front) -> None:
    """S2, S3: also one that such a browser let in; its calls are the token's, and so are their limits."""
    api = bearing(closed, token(closed, "clerk", "--scope", "admin,call"))
    inside = logged_in(closed, api)
    for browser in (inside, logged_in(closed, inside)):
        refused = browser.get("/api/snapshot")
        assert refused.status == 403
        assert refused.error["message"] == "the scope `watch` is needed, and token:clerk has call, admin"
        running = browser.start("linger", tag=f"clerk-{browser.token[:4]}")
        assert Api(closed).call(running)["caller"] == "token:clerk"
        assert {one["caller"] for one in browser.get("/api/calls").body["calls"]} == {"token:clerk"}
        assert api.post(f"/api/calls/{running}/cancel", {}).status == 202


def logged_in(gateway: Front, api: Api) -> Api:
    """The API for a browser that was let in by whoever has this API."""
    code = api.post("/api/session/code", {}).body["code"]
    return bearing(gateway, api.post("/api/session", {"code": code}).body["token"])
