"""What a gateway must have before others may reach it."""

import pytest

from afoot.core.access import Access, is_closed, lacking, wrong

TLS = Access(tls_cert="cert.pem", tls_key="key.pem")
PROXY = Access(public_url="https://gate.example")
ISSUER = Access(issuer="https://login.example")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_needs_nothing_and_is_open(host: str) -> None:
    """S1: as long as nobody else can come in."""
    assert lacking(host, Access(), False, []) == ""
    assert not is_closed(host, Access(), "")


@pytest.mark.parametrize(
    ("access", "is_known", "hosts", "missing"),
    [
        (Access(), False, [], "afoot tokens add"),
        (TLS, False, [], "afoot tokens add"),
        (Access(), True, [], "access.tls_cert"),
        (ISSUER, False, [], "access.tls_cert"),
        (TLS, True, [], "allow_hosts"),
        (TLS, True, ["gate.example"], ""),
        (PROXY, True, [], ""),
    ],
)
def test_off_loopback_it_says_what_is_missing(
    access: Access, is_known: bool, hosts: list[str], missing: str
) -> None:
    """S2: proof of who calls, then TLS or a proxy that has it, then a name."""
    told = lacking("0.0.0.0", access, is_known, hosts)
    assert missing in told and bool(told) is bool(missing)


def test_an_address_of_its_own_is_a_name() -> None:
    """S2: only where it listens everywhere must it be told what it is called."""
    assert lacking("192.0.2.7", TLS, True, []) == ""


def test_a_proxy_in_front_of_loopback_closes_it_too() -> None:
    """S2: whoever comes through it comes from anywhere."""
    assert "afoot tokens add" in lacking("127.0.0.1", PROXY, False, [])
    assert lacking("127.0.0.1", PROXY, True, []) == ""
    assert is_closed("127.0.0.1", PROXY, "")


def test_it_is_closed_where_somebody_says_so() -> None:
    """S1: by a token of its own, by a setting, or off loopback."""
    assert is_closed("127.0.0.1", Access(required=True), "")
    assert is_closed("127.0.0.1", Access(), "secret")
    assert is_closed("192.0.2.7", Access(), "")


@pytest.mark.parametrize(
    ("access", "named"),
    [
        (Access(tls_cert="cert.pem"), "access.tls_key"),
        (Access(public_url="http://gate.example"), "access.public_url"),
        (Access(issuer="login.example"), "access.issuer"),
        (Access(issuer="https://[login"), "access.issuer"),
        (Access(issuer="https://a.example", jwks_url="ftp://a.example"), "access.jwks_url"),
        (Access(audience="me"), "access.issuer"),
    ],
)
def test_what_is_wrong_in_the_table_is_named(access: Access, named: str) -> None:
    """S2: keys and tokens do not travel in the clear, but on this machine."""
    assert named in wrong(access)


def test_what_is_right_is_not_complained_of() -> None:
    """S2: http is good enough where it does not leave the machine."""
    for sound in (Access(), TLS, PROXY, ISSUER, Access(issuer="http://127.0.0.1:8080/realm")):
        assert wrong(sound) == ""
