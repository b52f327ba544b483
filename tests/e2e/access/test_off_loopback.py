"""Off loopback: what is needed before it starts, and how others and this machine's own then come in."""

import json
import ssl
import subprocess
import urllib.request
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.e2e.access.test_tokens import afoot, token
from tests.e2e.gateway_with_servers import Front
from tests.e2e.processes import free_port
from tests.e2e.raw_client import ACCEPT, MODERN, call

pytestmark = pytest.mark.timeout(120)  # each starts several gateways


class Elsewhere(Front):
    """A gateway that listens everywhere."""

    port = 0

    def command(self, *surface: str) -> list[str]:
        """The command, with another address."""
        own = f"0.0.0.0:{self.port}"
        return super().command(*(own if part == "127.0.0.1:0" else part for part in surface))


def refused(gateway: Front) -> str:
    """What a gateway says that does not start."""
    command = gateway.command("--http", "127.0.0.1:0", "--json")
    done = subprocess.run(
        command, env=gateway.environment, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2 and not done.stdout, done
    return done.stderr


def certified(folder: Path, hours: tuple[int, int] = (-1, 1)) -> dict[str, str]:
    """A certificate for this machine, good from so many hours ago to so many, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "gate")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now + timedelta(hours=hours[0]))
        .not_valid_after(now + timedelta(hours=hours[1]))
        .add_extension(names, critical=False).sign(key, hashes.SHA256())
    )  # fmt: skip
    cert, secret = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain
    secret.write_bytes(key.private_bytes(*form))
    return {"tls_cert": str(cert), "tls_key": str(secret)}


def test_off_loopback_it_does_not_start_unless_everything_is_there(tmp_path: Path) -> None:
    """S2: one thing after the other is named, and what to do about it."""
    gateway = Elsewhere(tmp_path / "bare", {})
    assert "afoot tokens add NAME" in refused(gateway)
    token(gateway, "ada")
    assert "access.tls_cert" in refused(gateway)
    secured = Elsewhere(tmp_path / "bare", {}, {"access": certified(tmp_path)})
    assert "allow_hosts" in refused(secured)
    broken = Elsewhere(
        tmp_path / "bare", {}, {"allow_hosts": "g", "access": {"tls_cert": __file__, "tls_key": __file__}}
    )
    assert "cannot be used" in refused(broken)


def test_off_loopback_it_speaks_tls_and_its_own_commands_still_work(tmp_path: Path) -> None:
    """S2: others come by TLS and with a token; this machine's own commands and bridges as ever."""
    port = free_port()
    known = {"access": certified(tmp_path), "allow_hosts": f"127.0.0.1:{port}"}
    gateway = Elsewhere(tmp_path, {}, known)
    gateway.port = port
    secret = token(gateway, "ada")
    gateway.start()
    try:
        assert afoot(gateway, "call", "add", "a=1", "b=2").returncode == 0
        outer = json.loads(afoot(gateway, "status", "--json").stdout)["public"]
        assert outer == f"https://127.0.0.1:{port}"
        body = json.dumps(call("add", {"a": 1, "b": 2})).encode()
        sent = {
            "authorization": f"Bearer {secret}", "content-type": "application/json", "accept": ACCEPT,
            "mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "add",
        }  # fmt: skip
        request = urllib.request.Request(f"{outer}/mcp", body, sent)
        trusting = ssl.create_default_context(cafile=tmp_path / "cert.pem")
        with urllib.request.urlopen(request, context=trusting) as answer:
            assert json.load(answer)["result"]["structuredContent"] == {"sum": 3}
        with urllib.request.urlopen(f"{outer}/healthz", context=trusting) as answer:
            told = json.load(answer)
        assert (told["status"], told["counted"], told["problems"], told["public"]) == ("ok", {}, [], None)
    finally:
        gateway.stop()
