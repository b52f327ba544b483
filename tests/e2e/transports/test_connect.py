"""`afoot connect` by hand: what passes, what ends with its client, who may come in, and what is told."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway import Gateway, serving
from tests.e2e.history import rows
from tests.e2e.raw_client import LATEST, MODERN, Http, Pipe, call, hello, modern, request
from tests.e2e.transports.bridge_processes import ERAS, called, hall, said


@pytest.fixture
def pipes(gateway: Gateway) -> Iterator[Callable[[str], Pipe]]:
    """Starts bridges to the gateway that runs already."""
    started: list[Pipe] = []

    def start(era: str) -> Pipe:
        started.append(Pipe(gateway, bridged=True))
        if era == "handshake":
            started[-1].shake_hands()
        return started[-1]

    yield start
    for pipe in started:
        pipe.__exit__()


@pytest.mark.parametrize("era", ERAS)
def test_nothing_follows_a_cancel(
    pipes: Callable[[str], Pipe], gateway: Gateway, era: str, fresh: Callable[[], str]
) -> None:
    """X1: the tool is cancelled, with the client's reason where the era can say it; no answer for that id."""
    pipe, tag = pipes(era), fresh()
    pipe.put(called(era, "linger", {"tag": tag}, "gone", progressToken="t"))
    assert pipe.take()["params"]["progressToken"] == "t"
    params = {"requestId": "gone", "reason": "changed my mind"}
    pipe.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    told = "changed my mind" if era == "handshake" else "the client closed the stream"
    gateway.until_marked(tag, f"cancelled: {told}")
    pipe.put(called(era, "nap", {}, "next"))
    assert pipe.take()["id"] == "next"


@pytest.mark.parametrize("era", ERAS)
def test_a_cancel_right_behind_its_request_is_not_lost(
    pipes: Callable[[str], Pipe], gateway: Gateway, era: str, fresh: Callable[[], str]
) -> None:
    """X1: though the two travel on connections of their own."""
    pipe, tag = pipes(era), fresh()
    wanted = json.dumps(called(era, "linger", {"tag": tag}, "gone"))
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "gone"}}
    pipe.put(f"{wanted}\n{json.dumps(cancel)}".encode())
    pipe.put(called(era, "nap", {"sleep_s": 1.0}, "next"))
    assert pipe.take()["id"] == "next"
    marks = gateway.marks(tag)
    assert not marks or marks[-1].startswith("cancelled: ")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("how", ["closed", "killed", "told to stop"])
def test_the_calls_of_a_client_that_leaves_end(
    pipes: Callable[[str], Pipe], gateway: Gateway, era: str, how: str, fresh: Callable[[], str]
) -> None:
    """X1: on stdio the end of the client is the end of its calls, whichever way it went."""
    pipe, tag = pipes(era), fresh()
    pipe.put(called(era, "linger", {"tag": tag}))
    gateway.until_marked(tag, "started")
    if how == "closed":
        assert pipe.close() == 0
    else:
        pipe.process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGTERM)
    gateway.until_marked(tag, "cancelled: ")


@pytest.mark.parametrize("era", ERAS)
def test_answers_come_though_the_input_has_ended(pipes: Callable[[str], Pipe], era: str) -> None:
    """S3: whoever pipes requests in may still read their answers."""
    pipe = pipes(era)
    pipe.put(called(era, "nap", {"sleep_s": 0.2}))
    assert pipe.process.stdin is not None
    pipe.process.stdin.close()
    assert said(pipe.take()) == "slept"
    assert pipe.close() == 0


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_does_not_read_slows_nobody(
    pipes: Callable[[str], Pipe], gateway: Gateway, era: str, fresh: Callable[[], str]
) -> None:
    """P5: its tools run on, what it does not take is not piled up, and the last and the result still come."""
    pipe, tag = pipes(era), fresh()
    pipe.put(called(era, "flood", {"n": 30_000, "tag": tag, "size": 900}, progressToken="t"))
    gateway.until_marked(tag, "")
    other = pipes(era)
    assert said(other.ask(called(era, "nap", {}, 2))) == "slept"
    numbers: list[float] = []
    while "id" not in (message := pipe.take()):
        numbers.append(message["params"]["progress"])
    assert numbers == sorted(set(numbers)) and numbers[-1] == 30_000
    assert said(message) == "reported 30000"


def test_a_large_result_passes_in_one_piece(pipes: Callable[[str], Pipe]) -> None:
    """P6: a pipe takes a line of any length, so the client is sent on no further round."""
    for era in ERAS:
        pipe = pipes(era)
        pipe.put(called(era, "big", {"size": 3_000_000, "reports": True}, progressToken="t"))
        while "id" not in (message := pipe.take()):
            assert message["method"] == "notifications/progress"
        assert len(said(message)) == 3_000_000


def test_garbage_gets_errors_and_the_next_request_its_answer(pipes: Callable[[str], Pipe]) -> None:
    """S1: whatever stands on a line, it is answered, and costs nothing else."""
    pipe = pipes("handshake")
    for wrong, code in {
        b"garbage": -32700,
        b"[]": -32600,
        b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}': -32600,
        b'{"jsonrpc": "2.0", "id": null, "method": "ping"}': -32600,
        b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": 7}}': -32602,
        b'{"jsonrpc": "2.0", "id": 9, "method": "no/such"}': -32601,
        b"x" * 5_000_000: -32700,
        b"\xff\xfe": -32700,
    }.items():
        pipe.put(wrong)
        assert pipe.take()["error"]["code"] == code, wrong[:60]
    assert pipe.ask(request("ping", id="fine"))["result"] == {}


def test_the_first_request_settles_the_era(pipes: Callable[[str], Pipe]) -> None:
    """T1: what belongs to the other era is refused with a code that a client can act on."""
    new = pipes(MODERN)
    assert new.ask(modern("server/discover"))["result"]["supportedVersions"] == [MODERN]
    refused = new.ask(request("initialize", hello({}), 2))["error"]
    assert (refused["code"], refused["data"]["requested"]) == (-32022, LATEST)
    old = pipes("handshake")
    assert old.ask(modern("server/discover", id=3))["error"]["code"] == -32600
    early = pipes("")
    answer = early.ask(request("tools/list", id=4))
    assert (answer["id"], answer["error"]["code"]) == (4, -32600)


def test_names_that_no_header_holds_are_passed_too(pipes: Callable[[str], Pipe]) -> None:
    """E5: the header is wrapped, and the error names what was asked for."""
    answer = pipes(MODERN).ask(call("zählt nicht"))
    assert "zählt nicht" in answer["error"]["message"]


def test_a_port_that_is_taken_is_left_to_its_owner(tmp_path: Path) -> None:
    """S1: another program's address is not ours; any free one will do."""
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        taken = owner.getsockname()[1]
        with hall(tmp_path, {"http": f"127.0.0.1:{taken}"}) as place:
            assert said(place.bridge().ask(call("nap"))) == "slept"
            assert f":{taken}/" not in place.address["mcp"]


def test_without_a_gateway_and_without_tools_it_says_what_to_do(tmp_path: Path) -> None:
    """S1: one line on stderr, nothing on stdout, exit 6."""
    config = tmp_path / "afoot.toml"
    config.write_text("idle_s = 'long'\n")
    done = connect(tmp_path, {"AFOOT_CONFIG": str(config)})
    assert done.returncode == 6 and done.stdout == b""
    assert done.stderr.count(b"\n") == 1 and b"idle_s" in done.stderr


def test_a_project_cannot_have_its_own_config_run(tmp_path: Path) -> None:
    """S1: a host starts the bridge in whatever folder it works in; what lies there is not run."""
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    (tmp_path / "afoot.toml").write_text('targets = ["trap.py"]\n')
    done = connect(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "none")})
    assert done.returncode == 6 and b"nothing to serve" in done.stderr
    assert not (tmp_path / "sprung").exists()


def test_a_gateway_that_is_named_must_be_there(tmp_path: Path) -> None:
    """S1: none is started in its place."""
    done = connect(tmp_path, {"AFOOT_URL": "http://127.0.0.1:9/mcp"})
    assert done.returncode == 6 and b"no gateway answers at http://127.0.0.1:9" in done.stderr
    done = connect(tmp_path, {"AFOOT_URL": "ftp://x"})
    assert done.returncode == 6 and b"is no address" in done.stderr


def test_a_gateway_can_be_named(gateway: Gateway, tmp_path: Path) -> None:
    """S3: with its token the bridge is known there; without one it is anybody."""
    token = (gateway.folder / "home" / "token").read_text()
    for given in ({"AFOOT_TOKEN": token}, dict[str, str]()):
        line = json.dumps(call("nap", {"tag": "named"})).encode()
        done = connect(tmp_path, {"AFOOT_URL": gateway.url, **given}, line)
        assert said(json.loads(done.stdout)) == "slept"
    assert {row.caller.partition(":")[0] for row in rows(gateway.store, "nap")} >= {"connect", "local"}
    done = connect(tmp_path, {"AFOOT_URL": gateway.url, "AFOOT_TOKEN": "wrong"})
    assert done.returncode == 6 and b"AFOOT_TOKEN" in done.stderr


@pytest.mark.parametrize("where", ["gateway", "nowhere"])
def test_it_ends_also_where_its_output_is_a_file(gateway: Gateway, tmp_path: Path, where: str) -> None:
    """X1: the end of its input is its end, with a gateway or without."""
    token = (gateway.folder / "home" / "token").read_text()
    url = gateway.url if where == "gateway" else "http://127.0.0.1:9/mcp"
    environment = {**os.environ, "AFOOT_HOME": str(tmp_path), "AFOOT_URL": url, "AFOOT_TOKEN": token}
    with (tmp_path / "out").open("wb") as out:
        command = Gateway(tmp_path).bridge()
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, timeout=20, env=environment)
    assert done.returncode == (0 if where == "gateway" else 6)


@pytest.mark.parametrize("token", ["", "Bearer ", "Bearer wrong", "Bearer mcp"])
def test_nobody_else_may_say_that_he_is_a_bridge(tmp_path: Path, token: str) -> None:
    """S3: only the operator's token proves it; that of /mcp does not."""
    name = "connect-" + "a" * 32
    with serving(tmp_path, {"mcp_token": "mcp"} if "mcp" in token else {}) as gateway:
        for message in (modern("tools/list"), request("initialize", hello({}))):
            version = MODERN if message["method"] == "tools/list" else LATEST
            with Http(gateway.url) as http:
                headers: dict[str, Any] = {"afoot_caller": name, "authorization": token or None}
                response = http.post(message, mcp_protocol_version=version, **headers)
                assert response.status == 403
                assert "afoot-caller" in json.loads(response.read())["error"]["message"]


def test_a_bridge_comes_in_where_a_token_is_needed(tmp_path: Path) -> None:
    """S1: the operator's token opens /mcp too."""
    with serving(tmp_path, {"mcp_token": "secret"}) as gateway:
        for era in ERAS:
            with Pipe(gateway, bridged=True) as pipe:
                if era == "handshake":
                    pipe.shake_hands()
                assert said(pipe.ask(called(era, "nap", {}))) == "slept"


def connect(
    folder: Path, environment: dict[str, str], line: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a bridge to its end, in a folder of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AFOOT_")}
    own = {"AFOOT_HOME": str(folder / "home"), "XDG_CONFIG_HOME": str(folder)}
    command = Gateway(folder).bridge()
    return subprocess.run(
        command, input=line, capture_output=True, timeout=20, cwd=folder, env={**kept, **own, **environment}
    )
