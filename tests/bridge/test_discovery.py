"""Where a gateway would listen, and what is told of one that did not start."""

import socket
from pathlib import Path

import pytest

from afoot.bridge import discovery


@pytest.mark.parametrize("address", ["127.0.0.1:0", ":0", "nonsense", "127.0.0.1:port", "127.0.0.1:99999"])
def test_an_address_is_free_unless_it_is_taken(address: str) -> None:
    """S1: what is wrong with one, the gateway says itself."""
    assert discovery._is_free(address)


def test_a_taken_port_is_seen() -> None:
    """S1: whoever has it."""
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        assert not discovery._is_free(f"127.0.0.1:{owner.getsockname()[1]}")


def test_the_last_words_of_a_gateway_are_told(tmp_path: Path) -> None:
    """E3: of this one, not of the one before."""
    log = tmp_path / "gateway.log"
    assert "it said nothing" in discovery._last_log_line(log, 0)
    log.write_text("afoot: an old story\n")
    begun = discovery._rotate_log(log)
    with log.open("a") as out:
        out.write("WARNING afoot: hm\nafoot: nothing to serve\n\n")
    assert discovery._last_log_line(log, begun) == "nothing to serve"


def test_a_long_log_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """House: one old one is kept."""
    monkeypatch.setattr(discovery, "MAX_LOG_BYTES", 5)
    log = tmp_path / "gateway.log"
    log.write_text("123456")
    assert discovery._rotate_log(log) == 0 and not log.exists()
    assert (tmp_path / "gateway.log.1").read_text() == "123456"
