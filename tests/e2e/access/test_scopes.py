"""Every way in, and which scope opens it: one table for all routes, and what a scope alone cannot do."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from afoot.serve.access.principal import SCOPES
from afoot.serve.api.router import ROUTES
from tests.e2e.access.test_tokens import ask, bearing, token
from tests.e2e.gateway import DANGEROUS, TOOLS, until
from tests.e2e.gateway_with_servers import Front, fronting
from tests.e2e.raw_client import modern
from tests.serve.api_client import Api

C, W, A, X = "call", "watch", "answer", "admin"
OPENS: Final = {
    "GET /api/calls": {C, W}, "POST /api/calls": {C}, "GET /api/calls/{id}": {C, W},
    "GET /api/calls/{id}/wire": {W}, "GET /api/calls/{id}/events": {C, W},
    "POST /api/calls/{id}/cancel": {C, A}, "POST /api/calls/{id}/rerun": {C},
    "DELETE /api/calls/{id}/cancel": {C, A}, "GET /api/answers": {W},
    "GET /api/activity": {C, W}, "GET /api/calls/{id}/story": {C, W}, "GET /api/calls/{id}/runs": {C, W},
    "GET /api/history": {C, W}, "GET /api/cluster": {W},
    "POST /api/cluster/{id}/drain": {X}, "DELETE /api/cluster/{id}/drain": {X},
    "POST /api/cluster/{id}/takeover": {X}, "POST /api/cluster/rotate-keys": {X}, "GET /metrics": {W},
    "GET /api/export": {X}, "POST /api/purge": {X},
    "GET /api/events": {W}, "GET /api/snapshot": {W}, "GET /api/callers": {W},
    "GET /api/questions": {W}, "POST /api/questions/{id}/answer": {A},
    "GET /api/allow": {W}, "POST /api/allow": {X}, "DELETE /api/allow/{id}": {X},
    "GET /api/tools": {C, W}, "GET /api/tools/{name}": {C, W}, "GET /api/openapi.json": {C, W},
    "GET /api/resources": {C, W}, "POST /api/resources/read": {C},
    "GET /api/prompts": {C, W}, "POST /api/prompts/get": {C},
    "GET /api/servers": {W}, "POST /api/servers": {X}, "GET /api/servers/{name}": {W},
    "DELETE /api/servers/{name}": {X}, "GET /api/servers/{name}/logs": {W},
    "POST /api/servers/{name}/reload": {X}, "POST /api/servers/{name}/login": {X},
    "GET /api/servers/{name}/login": {X}, "POST /api/servers/{name}/logout": {X},
    "POST /api/logout": {X},
    "GET /api/hosts": {X}, "GET /api/extension": {X}, "POST /api/extension/rotate": {X},
    "GET /api/tabs": {W}, "POST /api/tabs/{id}/reload": {X},
    "POST /api/session/code": {X}, "GET /api/session": {X}, "DELETE /api/session/{id}": {X},
}  # fmt: skip
CLOSED: Final = {"access": {"required": True}}
METHODS: Final = (
    "server/discover",
    "tools/list",
    "tools/call",
    "tasks/get",
    "resources/list",
    "prompts/list",
)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A gateway that wants to know who calls."""
    with fronting(tmp_path_factory.mktemp("closed"), {}, CLOSED, (TOOLS, DANGEROUS)) as one:
        yield one


@pytest.fixture(scope="module")
def secrets(closed: Front) -> dict[str, str]:
    """For each scope a token that has no other."""
    return {scope: token(closed, f"just-{scope}", "--scope", scope) for scope in SCOPES}


def test_every_route_is_opened_by_its_scopes_and_by_no_other(closed: Front, secrets: dict[str, str]) -> None:
    """S2: a new route stands in the table, or this fails; the refusal names a scope that would do."""
    routes = {f"{one.method} {one.path}" for one in ROUTES if not one.is_public}
    assert routes == OPENS.keys()
    for scope, secret in secrets.items():
        api = bearing(closed, secret)
        for route, scopes in OPENS.items():
            method, path = route.split()
            body = b"{}" if method == "POST" else None
            kind = {"content-type": "application/json"} if body else {}
            with api.open(method, re.sub(r"\{\w+\}", "none", path), body, kind) as (_, response):
                how = response.getheader("www-authenticate") or ""
                assert (response.status == 403) is (scope not in scopes), (route, scope, response.status)
            named = re.search(r'error="insufficient_scope", scope="(\w+)"', how)
            assert (named is None) is (scope in scopes) and (named is None or named[1] in scopes)


def test_only_who_may_call_speaks_mcp(closed: Front, secrets: dict[str, str]) -> None:
    """S2: whatever is asked there."""
    for scope, secret in secrets.items():
        for method in METHODS:
            status = ask(closed, modern(method, {"name": "add", "taskId": "none"}), secret)[0]
            assert (status == 403) is (scope != C), (scope, method)


def test_who_may_not_watch_is_told_of_its_own_runs_alone(closed: Front, secrets: dict[str, str]) -> None:
    """S3: neither how many calls others made of a tool, nor which."""
    own = Api(closed)
    api = bearing(closed, secrets[C])
    before = api.get("/api/tools/add").body["stats"]["runs"]  # of the tests before this one
    not_mine = own.start("add", a=1, b=2)
    own.ended(not_mine)
    mine = api.start("add", a=3, b=4)
    api.ended(mine)
    stats = api.get("/api/tools/add").body["stats"]
    newest = [one["id"] for one in stats["last"]]
    assert stats["runs"] == before + 1 and newest[0] == mine and not_mine not in newest
    [listed] = [one for one in api.get("/api/tools?recent=true").body["tools"] if one["name"] == "add"]
    assert listed["recent"]["runs"] == before + 1


def test_who_may_answer_but_not_watch_touches_only_its_own(closed: Front, secrets: dict[str, str]) -> None:
    """S3: another's question is as unknown as one that there never was, and no other is named."""
    own = Api(closed)
    running = own.start("ask_name", tag="not-yours")
    question = own.asked(running)["id"]
    api = bearing(closed, secrets[A])
    said = {"action": "accept", "content": {"name": "Eve"}}
    for name in (question, f"{running[-8:]}.1", f"{'f' * len(running)}.1"):
        refused = api.post(f"/api/questions/{name}/answer", said)
        assert (refused.status, refused.error["nearest"]) == (404, []), name
    assert api.post(f"/api/calls/{running}/cancel", {}).status == 404
    assert own.call(running)["outcome"] is None
    assert own.post(f"/api/calls/{running}/cancel", {}).status == 202


def test_what_is_allowed_for_longer_is_allowed_by_an_admin(closed: Front) -> None:
    """S2, A5: an answer goes into the allowlist only if whoever gives it could put it there."""
    api = bearing(closed, token(closed, "reviewer", "--scope", "watch,answer"))
    call = Api(closed).start("wipe", tag="lasting")
    path = f"/api/questions/{api.asked(call)['id']}/answer"
    for lasts in ("ever", 60):
        content = {"decision": "always", "scope": "server", "for": lasts}
        refused = api.post(path, {"content": content})
        assert (refused.status, refused.error["category"]) == (403, "auth")
        assert "`admin` is needed" in refused.error["message"]
    assert not [one for one in Api(closed).get("/api/allow").body["allowed"] if one["scope"] == "server"]
    assert api.post(path, {"content": {"decision": "run"}}).status == 200
    assert Api(closed).ended(call)["outcome"] == "ok"


def test_who_cannot_answer_is_nobody_to_ask(tmp_path: Path) -> None:
    """A1, S2: a call that needs a yes is refused at once if all who look could not give one."""
    with fronting(tmp_path, {}, CLOSED, (TOOLS, DANGEROUS)) as gateway:
        looks, calls = (bearing(gateway, token(gateway, one, "--scope", one)) for one in (W, C))
        assert looks.get("/api/calls").status == 200
        want = {"tool": "wipe", "arguments": {"tag": "nobody"}}
        with calls.stream("/api/calls", want) as events:
            facts = [event.data for event in events if event.event == "fact"]
    assert any('"refused"' in one for one in facts) and not any('"asked"' in one for one in facts)


def test_health_is_told_to_all_and_why_to_those_who_may_watch(closed: Front, secrets: dict[str, str]) -> None:
    """S2: what is wrong inside is nobody's business outside."""
    closed.config.write_text(closed.config.read_text() + "\nno_such_setting = 1\n")
    until(lambda: Api(closed).get("/healthz").body["problems"], "a problem with the settings")
    known = bearing(closed, secrets[W]).get("/healthz").body
    assert known["problems"]
    for secret in ("", "wrong", secrets[C]):
        told = bearing(closed, secret).get("/healthz")
        assert (told.status, told.body["status"], told.body["problems"]) == (200, "ok", [])


def test_an_entry_of_the_allowlist_says_whose_word_it_is(closed: Front) -> None:
    """S3, A4: the name of the token, whether it was added or answered."""
    api = bearing(closed, token(closed, "chief", "--scope", "watch,answer,admin"))
    added = api.post("/api/allow", {"tool": "add", "for": "ever"})
    assert (added.status, added.body["by"]) == (201, "token:chief")
    call = Api(closed).start("wipe", tag="chief-says")
    content = {"decision": "always", "scope": "arguments", "for": "ever"}
    assert api.post(f"/api/questions/{api.asked(call)['id']}/answer", {"content": content}).status == 200
    assert Api(closed).ended(call)["outcome"] == "ok"
    entries = api.get("/api/allow").body["allowed"]
    assert {one["by"] for one in entries} == {"token:chief"}
    for one in entries:
        assert api.send("DELETE", f"/api/allow/{one['id']}", None, {}).status == 200
