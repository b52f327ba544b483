"""Logging a browser in over HTTP: what a session opens, and everything that is turned away."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from afoot.serve.access.browser_sessions import CODE_S
from tests.e2e.gateway import Gateway, serving, until
from tests.serve.api_client import Answer, Api, Recorder

FOREIGN = (
    ({"origin": "https://evil.example"}, 403),
    ({"origin": "http://127.0.0.1:1"}, 403),  # another port's page
    ({"origin": "null"}, 403),
    ({"sec_fetch_site": "cross-site"}, 403),
    ({"sec_fetch_site": "same-site"}, 403),
    ({"host": "evil.example"}, 421),
)


@pytest.fixture
def link(api: Api) -> str:
    """A fresh login link."""
    made = api.post("/api/session/code", {})
    assert made.status == 201 and made.body["url"] == f"{api.url}/#login={made.body['code']}"
    assert abs(made.body["expires"] - time.time() - CODE_S) < 5
    return str(made.body["url"])


def log_in(api: Api, link: str, **headers: str) -> Answer:
    """What a page does with its link."""
    code = link.partition("#login=")[2]
    return api.post("/api/session", {"code": code}, **{"authorization": "", **headers})


@pytest.fixture
def session(api: Api, link: str) -> Iterator[dict[str, str]]:
    """The session of a browser, revoked at the end."""
    made = log_in(api, link, user_agent="Browser/1", origin=api.url).body
    yield made
    api.send("DELETE", f"/api/session/{made['id']}", None, {})


def test_a_session_opens_the_api_as_the_operators_token_does(api: Api, session: dict[str, str]) -> None:
    """S1: reading, and doing."""
    bearer = {"authorization": f"Bearer {session['token']}"}
    assert api.get("/api/calls", **bearer).status == 200
    assert api.post("/api/calls", {"tool": "add", "arguments": {"a": 1, "b": 2}}, **bearer).status != 401
    assert api.get("/api/calls", authorization=f"Bearer {session['token']}x").status == 401
    assert api.get("/api/calls", authorization=f"Bearer {session['id']}").status == 401


def test_a_session_is_no_bridge_and_no_link(api: Api, session: dict[str, str]) -> None:
    """S1, S3: its token is good for the API alone."""
    named = {"afoot_caller": "connect-0123456789abcdef", "authorization": f"Bearer {session['token']}"}
    refused = api.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, **named)
    assert refused.status == 403 and "operator's token" in json.dumps(refused.body)
    assert api.get("/link", authorization=f"Bearer {session['token']}").status in (403, 404, 426)


def test_a_link_that_was_used_is_refused_and_says_so(api: Api, link: str) -> None:
    """S1: 403, with what to do."""
    first = log_in(api, link)
    assert first.status == 201 and first.headers["cache-control"] == "no-store"
    second = log_in(api, link)
    assert (second.status, second.error["category"]) == (403, "auth")
    assert "used already" in second.error["message"] and "afoot console" in second.error["message"]
    assert "set-cookie" not in first.headers


@pytest.mark.parametrize(("headers", "status"), FOREIGN)
def test_a_login_from_elsewhere_is_refused_and_uses_nothing_up(
    api: Api, link: str, headers: dict[str, str], status: int
) -> None:
    """S1: another origin, port, site or name; the link still works for its owner."""
    assert log_in(api, link, **headers).status == status
    assert log_in(api, link).status == 201


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"]
)
def test_a_form_logs_nobody_in(api: Api, link: str, kind: str) -> None:
    """S1: bodies only as JSON; what a form of another site can send is none."""
    assert log_in(api, link, content_type=kind).status == 415
    assert log_in(api, link, content_type=kind, origin="https://evil.example").status == 403
    assert log_in(api, link).status == 201


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 422), ({"code": 1}, 422), ({"code": "x", "more": 1}, 422), ([], 422), ({"code": "wrong"}, 403)],
)
def test_a_login_that_makes_no_sense_is_refused(api: Api, body: object, status: int) -> None:
    """E4: named, before anything is done."""
    assert api.post("/api/session", body, authorization="").status == status


@pytest.mark.parametrize("path", ["/api/session", "/api/session/me"])
def test_only_logging_in_needs_no_token(api: Api, path: str) -> None:
    """S1: the list, the code and the end do."""
    method = "GET" if path == "/api/session" else "DELETE"
    assert api.send(method, path, None, {"authorization": ""}).status == 401
    assert api.post("/api/session/code", {}, authorization="").status == 401
    assert api.get(f"/api/session?token={api.token}", authorization="").status == 401


def test_sessions_are_listed_and_one_knows_itself(api: Api, session: dict[str, str]) -> None:
    """S1: who is logged in, since when and how long; no token is ever shown again."""
    bearer = f"Bearer {session['token']}"
    [mine] = [one for one in api.get("/api/session", authorization=bearer).body["sessions"] if one["mine"]]
    assert (mine["id"], mine["agent"]) == (session["id"], "Browser/1") and mine["seen"] is not None
    assert not any(one["mine"] for one in api.get("/api/session").body["sessions"])
    assert session["token"] not in json.dumps(api.get("/api/session").body)


def test_a_browser_logs_itself_out(api: Api, link: str) -> None:
    """S1: `me` is whoever asks; the operator's token is no session."""
    bearer = {"authorization": f"Bearer {log_in(api, link).body['token']}"}
    assert api.send("DELETE", "/api/session/me", None, bearer).body["mine"]
    assert api.get("/api/calls", **bearer).status == 401
    assert api.send("DELETE", "/api/session/me", None, {}).status == 404
    assert api.send("DELETE", "/api/session/none", None, {}).status == 404


def test_the_streams_of_a_revoked_session_end(api: Api, link: str) -> None:
    """S1: not only the next request is refused."""
    made = log_in(api, link).body
    reader = Recorder(api, "/api/events", authorization=f"Bearer {made['token']}")
    with reader:
        until(lambda: reader.events, "a snapshot")
        api.send("DELETE", f"/api/session/{made['id']}", None, {})
        until(lambda: not reader.is_open, "its end")


def test_a_session_outlives_the_gateway_and_a_code_does_not(tmp_path: Path) -> None:
    """S1: a browser stays logged in over a restart."""
    with serving(tmp_path) as gateway:
        api = Api(gateway)
        unused = str(api.post("/api/session/code", {}).body["url"])
        made = log_in(api, str(api.post("/api/session/code", {}).body["url"])).body
        gateway.stop()
        gateway.start()
        api = Api(gateway)
        assert api.get("/api/calls", authorization=f"Bearer {made['token']}").status == 200
        assert log_in(api, unused).status == 403
        assert secret_free(gateway, made["token"], unused)


def secret_free(gateway: Gateway, *secrets: str) -> bool:
    """Whether nothing that was written has these."""
    files = [file for file in gateway.folder.rglob("*") if file.is_file()]
    return not any(secret.encode() in file.read_bytes() for file in files for secret in secrets)
