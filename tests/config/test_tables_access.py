"""What a gateway must have before others may reach it."""

import pytest

from afoot.config.tables import AccessSettings, access_problem, missing_for_listening, requires_token

TLS = AccessSettings(tls_cert="cert.pem", tls_key="key.pem")
PROXY = AccessSettings(public_url="https://gate.example")
ISSUER = AccessSettings(issuer="https://login.example")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_needs_nothing_and_is_open(host: str) -> None:
    """S1: as long as nobody else can come in."""
    assert missing_for_listening(host, AccessSettings(), False, []) == ""
    assert not requires_token(host, AccessSettings(), "")


@pytest.mark.parametrize(
    ("access", "is_known", "hosts", "missing"),
    [
        (AccessSettings(), False, [], "afoot tokens add"),
        (TLS, False, [], "afoot tokens add"),
        (AccessSettings(), True, [], "access.tls_cert"),
        (ISSUER, False, [], "access.tls_cert"),
        (TLS, True, [], "allow_hosts"),
        (TLS, True, ["gate.example"], ""),
        (PROXY, True, [], ""),
    ],
)
def test_off_loopback_it_says_what_is_missing(
    access: AccessSettings, is_known: bool, hosts: list[str], missing: str
) -> None:
    """S2: proof of who calls, then TLS or a proxy that has it, then a name."""
    told = missing_for_listening("0.0.0.0", access, is_known, hosts)
    assert missing in told and bool(told) is bool(missing)


def test_an_address_of_its_own_is_a_name() -> None:
    """S2: only where it listens everywhere must it be told what it is called."""
    assert missing_for_listening("192.0.2.7", TLS, True, []) == ""


def test_a_proxy_in_front_of_loopback_closes_it_too() -> None:
    """S2: whoever comes through it comes from anywhere."""
    assert "afoot tokens add" in missing_for_listening("127.0.0.1", PROXY, False, [])
    assert missing_for_listening("127.0.0.1", PROXY, True, []) == ""
    assert requires_token("127.0.0.1", PROXY, "")


def test_it_is_closed_where_somebody_says_so() -> None:
    """S1: by a token of its own, by a setting, or off loopback."""
    assert requires_token("127.0.0.1", AccessSettings(required=True), "")
    assert requires_token("127.0.0.1", AccessSettings(), "secret")
    assert requires_token("192.0.2.7", AccessSettings(), "")


@pytest.mark.parametrize(
    ("access", "named"),
    [
        (AccessSettings(tls_cert="cert.pem"), "access.tls_key"),
        (AccessSettings(public_url="http://gate.example"), "access.public_url"),
        (AccessSettings(issuer="login.example"), "access.issuer"),
        (AccessSettings(issuer="https://[login"), "access.issuer"),
        (AccessSettings(issuer="https://a.example", jwks_url="ftp://a.example"), "access.jwks_url"),
        (AccessSettings(audience="me"), "access.issuer"),
    ],
)
def test_what_is_wrong_in_the_table_is_named(access: AccessSettings, named: str) -> None:
    """S2: keys and tokens do not travel in the clear, but on this machine."""
    assert named in access_problem(access)


def test_what_is_right_is_not_complained_of() -> None:
    """S2: http is good enough where it does not leave the machine."""
    for sound in (AccessSettings(), TLS, PROXY, ISSUER, AccessSettings(issuer="http://127.0.0.1:8080/realm")):
        assert access_problem(sound) == ""
