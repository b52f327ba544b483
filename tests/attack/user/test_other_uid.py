"""A program of another user on loopback: it has no access, whatever it knows, unless the config says so."""

import json
import os
import signal
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from tests.attack.user.other_uid import NOBODY, ask_as
from tests.e2e.gateway import Gateway, serving, until
from tests.serve.api_client import Api

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

META: Final[dict[str, object]] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "stranger", "version": "1"},
}
FIN_WAIT_1: Final = "04"  # closed, and the other side has not confirmed it
COMMON: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def list_tools(uid: int, gateway: Gateway, **headers: str) -> tuple[int, str]:
    """The answer to `tools/list` of 2026-07-28."""
    version = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
    status, text = ask_as(uid, gateway.url, "POST", "/mcp", {**COMMON, **version, **headers}, body)
    return status, text


def nap_and_leave(uid: int, gateway: Gateway, tag: str, **headers: str) -> None:
    """Have a call of a tool sent, and the connection closed, before the gateway has looked at either."""
    version = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "nap"}
    params = {"name": "nap", "arguments": {"tag": tag, "sleep_s": 0}, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    os.kill(gateway.process.pid, signal.SIGSTOP)  # as a busy loop would
    try:
        ask_as(uid, gateway.url, "POST", "/mcp", {**COMMON, **version, **headers}, body, leaves=True)
        until(lambda: FIN_WAIT_1 not in states_to(gateway), "the kernel has forgotten whose it was")
    finally:
        os.kill(gateway.process.pid, signal.SIGCONT)


def states_to(gateway: Gateway) -> set[str]:
    """The states of the connections to a gateway, at the other end."""
    port = urlsplit(gateway.url).port or 0
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return {fields[3] for fields in lines if fields[2].endswith(f":{port:04X}")}


def initialize(uid: int, gateway: Gateway) -> tuple[int, str]:
    """The answer to `initialize` of the handshake era."""
    info = {"name": "stranger", "version": "1"}
    params: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    status, text = ask_as(uid, gateway.url, "POST", "/mcp", COMMON, body)
    return status, text


def test_another_user_gets_no_tools_and_starts_nothing(gateway: Gateway) -> None:
    """S6: in both eras; the error says what to do."""
    for status, text in (list_tools(NOBODY, gateway), initialize(NOBODY, gateway)):
        assert status == 401 and "of its own user only" in text and "everyone" in text


def test_another_user_who_leaves_at_once_starts_nothing(gateway: Gateway) -> None:
    """S6: the kernel names root as the user of a socket that was closed."""
    nap_and_leave(NOBODY, gateway, "stranger")
    nap_and_leave(NOBODY, gateway, "known", authorization=f"Bearer {Api(gateway).token}")
    gateway.until_marked("known", "started")  # it came later, so the first one was looked at before
    assert gateway.marks("stranger") == []


def test_the_own_user_is_served(gateway: Gateway) -> None:
    """S6: without a token, as before."""
    assert list_tools(os.geteuid(), gateway)[0] == 200 and initialize(os.geteuid(), gateway)[0] == 200


def test_another_user_with_a_token_is_served(gateway: Gateway) -> None:
    """S6, S2: who proves who it is needs no user id."""
    token = Api(gateway).token
    assert list_tools(NOBODY, gateway, authorization=f"Bearer {token}")[0] == 200
    assert list_tools(NOBODY, gateway, authorization="Bearer " + "x" * 48)[0] == 401


def test_another_user_learns_no_details_of_the_gateways_health(gateway: Gateway) -> None:
    """S6: only that it is well."""
    status, text = ask_as(NOBODY, gateway.url, "GET", "/healthz", {})
    assert status == 200 and json.loads(text)["counted"] == {} and json.loads(text)["problems"] == []


def test_a_session_that_another_user_stole_opens_nothing(gateway: Gateway) -> None:
    """S6: a page of an impostor at the gateway's origin can read what the console stored there."""
    api = Api(gateway)
    code = api.post("/api/session/code", {}).body["code"]
    token = api.post("/api/session", {"code": code}, authorization="").body["token"]
    headers = {"authorization": f"Bearer {token}"}
    assert ask_as(os.geteuid(), gateway.url, "GET", "/api/calls", headers)[0] == 200
    status, text = ask_as(NOBODY, gateway.url, "GET", "/api/calls", headers)
    assert status == 403 and "another user" in text


def test_another_user_gets_no_proof_for_a_name_that_may_mean_another_address(gateway: Gateway) -> None:
    """S6: one who listens at [::1] cannot let the gateway at 127.0.0.1 answer for it."""
    port = gateway.url.split(":")[2].partition("/")[0]
    path = f"/api/proof?key={'0' * 32}&nonce={'0' * 64}"
    assert ask_as(NOBODY, gateway.url, "GET", path, {"host": f"localhost:{port}"})[0] == 403
    assert ask_as(os.geteuid(), gateway.url, "GET", path, {"host": f"localhost:{port}"})[0] == 404


def test_the_config_lets_everyone_in(tmp_path: Path) -> None:
    """S6: as on a machine that one team shares."""
    config = tmp_path / "afoot.toml"
    config.write_text('[access]\nlocal = "everyone"\n')
    with serving(tmp_path, {"config": config}) as open_gateway:
        assert list_tools(NOBODY, open_gateway)[0] == 200
