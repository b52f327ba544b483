"""Who is who: tokens and their scopes, access tokens of an issuer, and what is needed off loopback."""

import json
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import Front, fronting
from tests.e2e.raw_client import Http, call, modern
from tests.serve.api_client import Api


def afoot(gateway: Front, *words: str) -> subprocess.CompletedProcess[str]:
    """A command beside a gateway."""
    command = [sys.executable, "-m", "afoot", *words]
    return subprocess.run(
        command, env=gateway.environment, capture_output=True, text=True, timeout=30, check=False
    )


def token(gateway: Front, name: str, *words: str) -> str:
    """The secret of a new token."""
    made = afoot(gateway, "tokens", "add", name, *words)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def bearing(gateway: Front, secret: str) -> Api:
    """The API for who has this token."""
    api = Api(gateway)
    api.token = secret
    return api


def ask(gateway: Front, message: dict[str, Any], secret: str = "") -> tuple[int, dict[str, Any], str]:
    """Send a request to `/mcp`: status, answer, and how to get in."""
    with Http(gateway.url) as http:
        response = http.post(message, authorization=f"Bearer {secret}" if secret else None)
        challenge = response.getheader("www-authenticate", "")
        data = response.read()
        kind = response.getheader("content-type", "")
        lines = [line[5:] for line in data.decode().splitlines() if line.startswith("data:")]
        return response.status, json.loads(lines[-1] if "stream" in kind else data or b"{}"), challenge


def test_without_a_token_nobody_calls_anything(closed: Front) -> None:
    """S2: and the answer says what is missing."""
    status, told, challenge = ask(closed, call("add", {"a": 1, "b": 2}))
    assert (status, challenge) == (401, "Bearer") and "Authorization: Bearer" in told["error"]["message"]


@pytest.mark.parametrize("secret", ["wrong", "afoot_wrong"])
def test_a_token_that_nobody_was_given_counts_for_nothing(closed: Front, secret: str) -> None:
    """S2: on either surface."""
    assert ask(closed, call("add", {"a": 1, "b": 2}), secret)[0] == 401
    assert bearing(closed, secret).get("/api/calls").status == 401


def test_calls_bear_the_name_of_their_caller(closed: Front) -> None:
    """S3: whoever has the token is who it was made for, in either way in."""
    secret = token(closed, "ada")
    assert ask(closed, call("add", {"a": 1, "b": 2}), secret)[1]["result"]["structuredContent"] == {"sum": 3}
    started = bearing(closed, secret).start("nap", tag="ada-naps")
    mine = bearing(closed, secret).get("/api/calls").body["calls"]
    assert {one["caller"] for one in mine} == {"token:ada"} and started in {one["id"] for one in mine}


def test_a_caller_sees_and_touches_only_its_own_calls(closed: Front) -> None:
    """S3: what is another's is unknown, just as what never was."""
    bob, eve = bearing(closed, token(closed, "bob")), bearing(closed, token(closed, "eve"))
    running = bob.start("linger", tag="bob-lingers")
    for way in (f"/api/calls/{running}", f"/api/calls/{running}/events", f"/api/calls/{running[-12:]}"):
        assert eve.get(way).status == 404, way
    never = eve.get(f"/api/calls/{'0' * len(running)}").error["message"].replace("0" * len(running), "X")
    assert eve.get(f"/api/calls/{running}").error["message"].replace(running, "X") == never
    for way in ("cancel", "rerun"):
        assert eve.post(f"/api/calls/{running}/{way}", {}).status == 404
    assert running not in json.dumps(eve.get("/api/calls").body)
    assert bob.post(f"/api/calls/{running}/cancel", {}).status == 202
    assert until(lambda: bob.call(running)["outcome"], "its end") == "cancelled"


@pytest.mark.parametrize(
    ("scope", "may", "may_not"),
    [
        (
            "call",
            ["/api/calls", "/api/tools"],
            ["/api/events", "/api/questions", "/api/servers", "/api/session"],
        ),
        ("watch", ["/api/questions", "/api/servers", "/api/snapshot"], ["/api/session", "/api/export"]),
        ("admin", ["/api/session", "/api/extension"], ["/api/calls", "/api/questions"]),
    ],
)
def test_a_scope_opens_what_it_says_and_nothing_else(
    closed: Front, scope: str, may: list[str], may_not: list[str]
) -> None:
    """S2: the refusal names the scope that is missing."""
    api = bearing(closed, token(closed, f"only-{scope}", "--scope", scope))
    assert {path: api.get(path).status for path in may} == dict.fromkeys(may, 200)
    for path in may_not:
        refused = api.get(path)
        assert (refused.status, refused.error["category"]) == (403, "auth"), path
        assert 'error="insufficient_scope"' in refused.headers["www-authenticate"]


def test_who_may_only_watch_calls_nothing_and_answers_nothing(closed: Front) -> None:
    """S2: a look is a look."""
    secret = token(closed, "looker", "--scope", "watch")
    status, told, challenge = ask(closed, call("add", {"a": 1, "b": 2}), secret)
    assert status == 403 and "`call` is needed" in told["error"]["message"] and 'scope="call"' in challenge
    api, own = bearing(closed, secret), Api(closed)
    running = own.start("ask_name", tag="looked-at")
    question = own.asked(running)
    assert api.call(running)["caller"] == "operator"
    said = {"action": "accept", "content": {"name": "Eve"}, "digest": question["digest"]}
    assert api.post(f"/api/questions/{question['id']}/answer", said).status == 403
    assert api.post(f"/api/calls/{running}/cancel", {}).status == 403
    assert own.post(f"/api/calls/{running}/cancel", {}).status == 202


def test_an_answer_says_whose_token_it_came_with(closed: Front) -> None:
    """S3: in the history, for ever."""
    api = bearing(closed, token(closed, "grace", "--scope", "watch,answer"))
    running = Api(closed).start("ask_name", tag="answered")
    question = api.asked(running)
    said = {"action": "accept", "content": {"name": "Ada"}, "digest": question["digest"]}
    assert api.post(f"/api/questions/{question['id']}/answer", said).status == 200
    Api(closed).ended(running)
    facts = Api(closed).send("GET", f"/api/export?call={running}", None, {}).body
    assert '"who":"token:grace"' in facts


def test_a_revoked_token_is_over_at_once(closed: Front) -> None:
    """S2: also for streams that are open, whether anything happens there or not; each says why."""
    secret = token(closed, "brief", "--scope", "watch,call")
    api = bearing(closed, secret)
    running = api.start("linger", tag="brief-lingers")
    with api.stream("/api/events") as events, api.stream(f"/api/calls/{running}/events") as own:
        assert next(events).event == "snapshot" and next(own).event == "fact"
        assert "revoked brief" in afoot(closed, "tokens", "revoke", "brief").stdout
        assert ask(closed, call("add", {"a": 1, "b": 2}), secret)[0] == 401
        for stream in (events, own):
            last = list(stream)[-1]
            why = json.loads(last.data)["error"]
            told = last.event, why["category"], why["message"]
            assert told == ("denied", "auth", "the token 'brief' was revoked")
    assert Api(closed).post(f"/api/calls/{running}/cancel", {}).status == 202
    listed = afoot(closed, "tokens", "--json").stdout
    assert "brief" not in listed and "secret" not in listed


def test_a_task_of_another_caller_is_unknown(closed: Front) -> None:
    """S3, H3: a task's id is no key to it."""
    secret = token(closed, "tasker")
    running = bearing(closed, secret).start("linger", tag="task-lingers")
    told = ask(closed, modern("tasks/get", {"taskId": running}), token(closed, "guesser"))[1]
    never = ask(closed, modern("tasks/get", {"taskId": "f" * 44}), token(closed, "guesser-two"))[1]
    assert "error" in told and told["error"]["code"] == never["error"]["code"]
    assert bearing(closed, secret).post(f"/api/calls/{running}/cancel", {}).status == 202


# An issuer

KEY = ec.generate_private_key(ec.SECP256R1())


@contextmanager
def issuing() -> Iterator[str]:
    """An issuer on this machine that publishes its key."""
    public = {**ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "k"}

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            base = f"http://{self.headers['host']}"
            pages = {
                "/.well-known/oauth-authorization-server": {"issuer": base, "jwks_uri": f"{base}/keys"},
                "/keys": {"keys": [public]},
            }
            body = json.dumps(pages.get(self.path, {})).encode()
            self.send_response(200 if self.path in pages else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()  # or its thread turns for ever


def signed(issuer: str, audience: str, **claims: object) -> str:
    """An access token."""
    expires = datetime.now(UTC) + timedelta(minutes=1)
    usual = {"iss": issuer, "aud": audience, "sub": "ada", "exp": expires, "scope": "afoot:call"}
    return jwt.encode({**usual, **claims}, KEY, "ES256", headers={"kid": "k"})


def test_an_issuers_token_lets_its_subject_in(tmp_path: Path) -> None:
    """S2: who it is for, from whom and until when counts; a client finds out where to get one."""
    with (
        issuing() as issuer,
        fronting(tmp_path, {}, {"access": {"required": True, "issuer": issuer}}) as gateway,
    ):
        status, _, challenge = ask(gateway, call("add", {"a": 1, "b": 2}))
        place, _, rest = challenge.partition('resource_metadata="')[2].partition('"')
        assert rest == ', scope="afoot:call"'  # else a client would ask for every scope there is
        with urllib.request.urlopen(place) as page:
            told = json.load(page)
        assert (status, told["resource"], told["authorization_servers"]) == (401, gateway.url, [issuer])
        good = signed(issuer, told["resource"])
        assert ask(gateway, call("add", {"a": 1, "b": 2}), good)[1]["result"]["structuredContent"] == {
            "sum": 3
        }
        assert Api(gateway).get("/api/calls").body["calls"][0]["caller"] == "oauth:ada"
        late = signed(issuer, told["resource"], exp=datetime.now(UTC) - timedelta(minutes=5))
        for bad in (signed(issuer, "https://other.example"), late, good[:-4] + "AAAA"):
            assert ask(gateway, call("add", {"a": 1, "b": 2}), bad)[0] == 401
        watching = signed(issuer, told["resource"], scope="afoot:watch")
        refused = ask(gateway, call("add", {"a": 1, "b": 2}), watching)
        assert refused[0] == 403 and 'error="insufficient_scope", scope="afoot:call"' in refused[2]
        assert bearing(gateway, watching).get("/api/questions").status == 200
