"""The sockets of a gateway: which addresses are open, and which need tokens."""

from pathlib import Path

import pytest

from afoot.config.settings import Settings
from afoot.config.tables import AccessSettings
from afoot.errors import CallerError
from afoot.serve.http_server import listeners
from tests.e2e.access.test_off_loopback import certified


def opened(settings: Settings) -> listeners.Listeners:
    """The sockets of a gateway that has tokens, closed again."""
    found = listeners.open_listeners(settings, True)
    found.outer.close()
    if found.inner is not None:
        found.inner.close()
    return found


def test_who_listens_everywhere_is_known_by_a_name(tmp_path: Path) -> None:
    """S2: clients are sent to where they can come, for their tokens too."""
    made = certified(tmp_path)
    access = AccessSettings(tls_cert=made["tls_cert"], tls_key=made["tls_key"])
    found = opened(Settings(http="0.0.0.0:0", allow_hosts=["gate.example:8443", "b.example"], access=access))
    assert found.public == "https://gate.example:8443" and found.is_closed
    assert {"gate.example:8443", "b.example"} <= found.hosts
    named = opened(Settings(http="[::]:0", access=AccessSettings(public_url="https://gate.example/")))
    assert named.public == "https://gate.example" and named.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("http", ["127.0.0.1:0", "localhost:0", "[::1]:0", ":0"])
def test_loopback_by_each_of_its_names_is_open(http: str) -> None:
    """S1: and is its own address."""
    found = opened(Settings(http=http))
    assert not found.is_closed and found.inner is None and found.url == found.public


@pytest.mark.parametrize("http", ["0.0.0.0:0", "[::]:0", "0:0", "[::ffff:127.0.0.1]:0", "LOCALHOST:0"])
def test_what_is_not_surely_loopback_needs_more(http: str) -> None:
    """S2: whatever it is called."""
    with pytest.raises(CallerError, match="before others may reach it"):
        opened(Settings(http=http))
