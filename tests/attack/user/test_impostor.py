"""A program of another user at the port of the gateway: it gets no token of anybody."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from afoot.bridge.connection import BridgeIdentity, GatewayConnection, RefusedByGateway
from afoot.bridge.http import parse_target
from afoot.cli.client import CliError, GatewayClient
from afoot.config import state_folder
from tests.attack.user.impostor import Reply, http_answer, impostor, passing_on_to
from tests.e2e.gateway import Gateway
from tests.serve.api_client import Api

TOKEN: Final = "5ecret" * 8
LIES: Final[dict[str, Reply]] = {
    "agrees with everything": lambda _: http_answer(b'{"calls": []}'),
    "makes up a proof": lambda _: http_answer(b'{"mac": "%s"}' % (b"0" * 64)),
    "knows no proof": lambda _: http_answer(
        b'{"error": {"message": "no", "category": "x"}}', "404 Not Found"
    ),
    "wants a token": lambda _: http_answer(b"", "401 Unauthorized"),
    "leads elsewhere": lambda _: http_answer(b"", "307 Temporary Redirect\r\nlocation: http://127.0.0.1:9/"),
    "closes after the proof": lambda _: b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}",
}


@pytest.mark.parametrize("lie", LIES)
def test_the_command_line_sends_no_token_to_an_impostor(lie: str) -> None:
    """S6, S1: only who proves to know the token gets it."""
    with impostor(LIES[lie]) as other:
        with pytest.raises(CliError):
            GatewayClient(other.url, TOKEN).get("/api/calls")
        assert b"GET /api/proof" in other.got and TOKEN.encode() not in other.got


@pytest.mark.parametrize("lie", LIES)
def test_the_bridge_sends_no_token_to_an_impostor(lie: str) -> None:
    """S6, S1: the bridge carries the operator's token."""

    async def connect(url: str) -> None:
        await GatewayConnection(parse_target(url), BridgeIdentity("connect-" + "a" * 16, TOKEN)).open()

    with impostor(LIES[lie]) as other:
        with pytest.raises(RefusedByGateway):
            asyncio.run(connect(other.url))
        assert b"GET /api/proof" in other.got and TOKEN.encode() not in other.got


@pytest.mark.parametrize("name", ["its own", "the gateway's"])
def test_an_impostor_cannot_let_the_gateway_answer_for_it(gateway: Gateway, name: str) -> None:
    """S6: a proof is for the host that the client meant."""
    api = Api(gateway)
    parts = urlsplit(api.url)
    assert parts.hostname is not None and parts.port is not None

    def rewrite(data: bytes) -> bytes:
        own = urlsplit(other.url).netloc.encode()
        return data if name == "its own" else data.replace(own, parts.netloc.encode())

    with impostor(passing_on_to(parts.hostname, parts.port, rewrite)) as other:
        with pytest.raises(CliError):
            GatewayClient(other.url, api.token).get("/api/calls")
        assert b"GET /api/proof" in other.got and api.token.encode() not in other.got
    assert "calls" in GatewayClient(api.url, api.token).get("/api/calls")


def test_a_gateway_file_whose_pid_was_given_to_another_process_is_stale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """S6: the gateway was killed, and its pid lives on as another process of the same user."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        born = state_folder.process_birth(process.pid)
        address = state_folder.GatewayAddress("http://127.0.0.1:1/mcp", "", TOKEN, process.pid, born)
        state_folder.announce_gateway(address)
        assert state_folder.running_gateway() == address
        address.born = state_folder.process_birth(1)
        state_folder.announce_gateway(address)
        assert state_folder.running_gateway() is None
        process.communicate(b"\n")


def test_a_gateway_writes_when_its_process_started(gateway: Gateway) -> None:
    """S6: so that a stale file is known."""
    written = (gateway.folder / "home" / "gateway.json").read_text()
    assert state_folder.process_birth(gateway.process.pid) in written
