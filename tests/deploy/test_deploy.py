"""The files of `deploy/`: what they name exists, and the parts that can be run without a registry are run."""

import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from ssl import create_default_context
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from afoot.cli import COMMANDS
from afoot.config.settings import load_settings
from tests.cluster.redis_server import RedisServer, redis_server
from tests.e2e.gateway import Gateway, until
from tests.e2e.raw_client import Http, Message, call, request
from tests.serve.api_client import Api

DEPLOY = Path(__file__).parents[2] / "deploy"
HOST = "afoot.example.org"
ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def read(name: str) -> str:
    """The text of one file."""
    return (DEPLOY / name).read_text()


def compose() -> dict[str, Any]:
    """The services of compose.yaml."""
    return dict(yaml.safe_load(read("compose.yaml"))["services"])


def check_command(words: list[str]) -> None:
    """Fail unless this is a command of afoot with options that it has."""
    assert words[0] in COMMANDS, words
    told = subprocess.run(
        [sys.executable, "-m", "afoot", words[0], "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    for word in words[1:]:
        assert not word.startswith("--") or f" {word} " in told, f"{words[0]} has no {word}"


def test_the_settings_are_those_that_a_gateway_reads() -> None:
    """D1: no key that does not exist, and what a gateway off loopback needs."""
    found = load_settings(DEPLOY / "afoot.toml").settings
    assert found.http == "0.0.0.0:23668" and found.history == "required"
    assert (found.access.public_url, found.cluster.name) == (f"https://{HOST}", "production")


def test_compose_has_what_a_cluster_needs() -> None:
    """D1: every volume and file is there, every command exists, and a stop waits longer than the drain."""
    services = compose()
    assert set(services) == {"valkey", "gateway1", "gateway2", "worker1", "worker2", "balancer"}
    volumes = yaml.safe_load(read("compose.yaml"))["volumes"]
    drain_s = load_settings(DEPLOY / "afoot.toml").settings.drain_s
    for name, service in services.items():
        assert ("build" in service) == name.startswith(("gateway", "worker"))
        assert "/" not in service["image"].split(":")[0] or service["image"].startswith("valkey/valkey:")
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            is_file = source.startswith("./") and source != "./afoot.pem"  # the certificate is the operator's
            assert (DEPLOY / source).is_file() if is_file else source in (*volumes, "./afoot.pem"), volume
        if "build" in service:
            check_command(service["command"])
            assert float(service["stop_grace_period"].removesuffix("s")) > drain_s
            assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    used = {name for service in services.values() for name in service["volumes"] if not name.startswith("./")}
    assert {name.partition(":")[0] for name in used} == set(volumes)


def test_valkey_keeps_what_it_is_told(tmp_path: Path) -> None:
    """D5: the options of compose.yaml are none that afoot warns about; a server takes them."""
    words = [word for word in compose()["valkey"]["command"] if word != "valkey-server"]
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    assert program is not None, "redis-server is missing; scripts/test installs it"
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert options["--appendonly"] == "yes" and options["--maxmemory-policy"] == "noeviction"
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    own = [program, *words, "--port", str(port), "--dir", str(tmp_path), "--daemonize", "no"]
    with subprocess.Popen(own, stdout=subprocess.DEVNULL) as server:
        try:
            until(lambda: _answers(port), "the server to listen")
        finally:
            server.terminate()


def _answers(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_image_is_built_from_files_that_are_there() -> None:
    """U1: exact versions, a user of its own, and one plain base image."""
    text = read("Containerfile")
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert set(bases) == {"python:3.13-slim"}
    copied = [
        word for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE) for word in line.split()
    ]
    assert copied and all((DEPLOY.parent / one).exists() for one in copied)
    assert "--constraint constraints.txt" in text
    assert text.rindex("USER afoot") < text.index("ENTRYPOINT")
    [command] = re.findall(r"^CMD (.+)$", text, re.MULTILINE)
    check_command(json.loads(command))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_are_accepted_by_systemd(unit: Path, tmp_path: Path) -> None:
    """D1: no unknown setting, and a program that exists; only its place is another one here."""
    text = unit.read_text()
    [command] = re.findall(r"^ExecStart=/opt/afoot/bin/afoot (.+)$", text, re.MULTILINE)
    check_command(shlex.split(command))
    drain_s = load_settings(DEPLOY / "afoot.toml").settings.drain_s
    [stop_s] = re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
    assert float(stop_s) > drain_s
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is missing")
    file = tmp_path / unit.name
    file.write_text(text.replace("/opt/afoot/bin/afoot", shutil.which("true") or "/bin/true"))
    done = subprocess.run(
        [verify, "verify", "--man=no", str(file)], capture_output=True, text=True, timeout=60
    )
    told = [line for line in (done.stdout + done.stderr).splitlines() if unit.name in line]
    assert told == [] and len(UNITS) == 2


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis for the gateways behind the load balancer."""
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


def certificate(folder: Path) -> Path:
    """A certificate for the public name, with its key, as HAProxy reads it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "afoot.pem"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return file


@contextmanager
def balancer(folder: Path, gateways: list[Gateway]) -> Iterator[int]:
    """HAProxy with the config of `deploy/`, for these gateways; gives its port."""
    program = shutil.which("haproxy")
    assert program is not None, "haproxy is missing; scripts/test installs it"
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    text = read("haproxy.cfg")
    assert text.count("bind :8443") == 1 and text.count("/etc/haproxy/afoot.pem") == 1
    text = text.replace("bind :8443", f"bind 127.0.0.1:{port}")
    text = text.replace("/etc/haproxy/afoot.pem", str(certificate(folder)))
    for number, gateway in enumerate(gateways, 1):
        address = gateway.url.split("/")[2]
        assert text.count(f"gateway{number}:23668") == 2
        text = text.replace(f"gateway{number}:23668", address)
    file = folder / "haproxy.cfg"
    file.write_text(text)
    checked = subprocess.run([program, "-c", "-f", str(file)], capture_output=True, text=True, timeout=30)
    assert checked.returncode == 0 and "[WARNING]" not in checked.stderr, checked.stderr
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "-db", "-f", str(file)], stdout=log, stderr=log)
        try:
            until(lambda: process.poll() is not None or _answers(port), "the load balancer to listen")
            assert process.poll() is None, (folder / "log").read_text()
            yield port
        finally:
            process.terminate()
            process.wait(10)


class Secure(Http):
    """A connection by the public name, with a token."""

    def __init__(self, port: int, folder: Path, token: str) -> None:
        super().__init__(f"http://127.0.0.1:{port}/mcp")
        self._token = token
        context = create_default_context(cafile=str(folder / "afoot.pem"))
        self._connection.sock = context.wrap_socket(self.socket, server_hostname=HOST)

    def _headers(self, body: Message | bytes) -> dict[str, str | None]:
        return {**super()._headers(body), "host": HOST, "authorization": f"Bearer {self._token}"}

    def get(self, path: str) -> int:
        """The status of a GET."""
        self._connection.request("GET", path, headers={"host": HOST})
        response = self.take()
        response.read()
        return response.status


def test_calls_and_sessions_work_through_the_load_balancer(redis: RedisServer, tmp_path: Path) -> None:
    """D1, D6, V8: sessions stay, a cancel comes at once, and nobody notices that a gateway is drained."""
    gateways = list[Gateway]()
    for number in (1, 2):
        folder = tmp_path / f"gateway{number}"
        folder.mkdir()
        text = read("afoot.toml").replace("redis://valkey:6379/0", redis.url)
        (folder / "afoot.toml").write_text(re.sub(r"^http = .*$", "", text, flags=re.MULTILINE))
        gateways.append(Gateway(folder, {"config": folder / "afoot.toml", "drain_s": 0.2}))
    secret = _token(gateways)
    try:
        for one in gateways:
            one.start()
        with balancer(tmp_path, gateways) as port:

            def connect() -> Secure:
                return Secure(port, tmp_path, secret)

            until(lambda: status(connect(), "/readyz") == 200, "a gateway to be ready")
            assert status(connect(), "/metrics") == 404
            with connect() as session:
                session.shake_hands()
                for _ in range(4):
                    assert added(session.ask(request("tools/call", ADD))) == 3
                    with connect() as other:
                        assert added(other.ask(call("add", {"a": 1, "b": 2}))) == 3
                until(lambda: [len(calls(one)) for one in gateways] == [8, 8], "the calls at both")
                with connect() as impatient:
                    impatient.put(call("linger", {"tag": "left"}, progressToken="t"))
                    until(lambda: marks(gateways), "the tool to run")
                until(lambda: any("cancelled: " in mark for mark in marks(gateways)), "the cancel", 5)
                drained = Api(gateways[0])
                own = drained.get("/api/cluster").body["id"]
                assert drained.post(f"/api/cluster/{own}/drain", {}).status == 200
                for _ in range(4):  # also before its state has been asked again
                    with connect() as other:
                        assert added(other.ask(call("add", {"a": 1, "b": 2}))) == 3
                    assert added(session.ask(request("tools/call", ADD))) == 3
                log = tmp_path / "log"
                until(lambda: "mcp/gateway1 is DOWN" in log.read_text(), "it to be left out")
                assert added(session.ask(request("tools/call", ADD))) == 3
    finally:
        for one in gateways:
            one.stop()


def status(connection: Secure, path: str) -> int:
    """The status of one GET."""
    with connection:
        return connection.get(path)


def added(answer: Message) -> object:
    """The sum in the answer to a call."""
    assert "result" in answer, answer
    return answer["result"]["structuredContent"]["sum"]


def marks(gateways: list[Gateway]) -> list[str]:
    """The marks of the call whose caller has left."""
    return [mark for one in gateways for mark in one.marks("left")]


def calls(gateway: Gateway) -> list[Any]:
    """The calls that a gateway lists."""
    return list(Api(gateway).get("/api/calls?limit=500").body["calls"])


def _token(gateways: list[Gateway]) -> str:
    """A token that both gateways know, as the page says: the file of one is copied to the other."""
    command = [sys.executable, "-m", "afoot", "tokens", "add", "ada", "--scope", "call,watch"]
    made = subprocess.run(
        command, env=gateways[0].environment, capture_output=True, text=True, timeout=30, check=True
    )
    home = gateways[1].folder / "home"
    home.mkdir(mode=0o700)
    shutil.copy(gateways[0].folder / "home" / "tokens.json", home)
    return made.stdout.strip()
