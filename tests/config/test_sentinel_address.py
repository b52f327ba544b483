"""Addresses of Sentinels: which parts they have, and which are refused."""

import pytest

from afoot.config.redactor import make_redactor
from afoot.config.sentinel_address import SentinelAddress, read_sentinel_address
from afoot.config.settings import make_settings


@pytest.mark.parametrize(
    ("rest", "address"),
    [
        ("one/facts", SentinelAddress((("one", 26379),), "facts")),
        ("one:1,two:2/facts/3", SentinelAddress((("one", 1), ("two", 2)), "facts", 3)),
        ("[::1]:5/facts", SentinelAddress((("::1", 5),), "facts")),
        ("[::1]/facts", SentinelAddress((("::1", 26379),), "facts")),
        ("one:1,[fe80::2]:2/facts", SentinelAddress((("one", 1), ("fe80::2", 2)), "facts")),
        (
            "ann:p%40ss@one:1,[::1]:2/facts",
            SentinelAddress((("one", 1), ("::1", 2)), "facts", 0, "ann", "p@ss"),
        ),
        (":pass@one/facts", SentinelAddress((("one", 26379),), "facts", 0, "", "pass")),
        (
            "one/facts?sentinel_password=p%26q",
            SentinelAddress((("one", 26379),), "facts", sentinel_password="p&q"),
        ),
        (
            "a:b@one/facts/1?sentinel_username=c&sentinel_password=d",
            SentinelAddress((("one", 26379),), "facts", 1, "a", "b", "c", "d"),
        ),
    ],
)
def test_an_address_has_these_parts(rest: str, address: SentinelAddress) -> None:
    """D5: hosts of all kinds, a login at the server, and another one at the Sentinels."""
    assert read_sentinel_address(f"redis+sentinel://{rest}") == address


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("ann:hidden@one", "the name of the service is missing"),
        ("ann:hidden@one/", "the name of the service is missing"),
        ("ann:hidden@/facts", "must be given as"),
        ("ann:hidden@one,/facts", "must be given as"),
        ("ann:hidden@::1:26379/facts", "must be given as"),
        ("ann:hidden@[::1/facts", "must be given as"),
        ("ann:hidden@[one]:1/facts", "must be given as"),
        ("ann:hidden@[::1]1/facts", "must be given as"),
        ("ann:hidden@one:/facts", "must be given as"),
        ("ann:hidden@one:0/facts", "from 1 to 65535"),
        ("ann:hidden@one:65536/facts", "from 1 to 65535"),
        ("ann:hidden@one:x/facts", "from 1 to 65535"),
        ("ann:hidden@one/facts/x", "must be a number"),
        ("ann:hidden@one/facts?ssl_ca_certs=x&sentinel_password=hidden", "takes no options but"),
    ],
)
def test_other_addresses_are_refused(rest: str, told: str) -> None:
    """D5, S7: the sentence says what is wrong, and has no password."""
    with pytest.raises(ValueError, match=told) as refused:
        read_sentinel_address(f"redis+sentinel://{rest}")
    assert "hidden" not in str(refused.value)


def test_docket_reads_the_same_addresses_in_the_same_way() -> None:
    """D5: the queue of the workers is at the server that the history is at."""
    from docket._redis_sentinel import parse_sentinel_url

    url = "redis+sentinel://a:p%40s@one:1,[::1]:2/facts/1?sentinel_username=c&sentinel_password=d%26e"
    address, read = read_sentinel_address(url), parse_sentinel_url(url)
    assert (tuple(read.sentinels), read.service_name, read.db) == (
        address.hosts,
        address.service,
        address.database,
    )
    assert read.connection_kwargs == {"username": address.username, "password": address.password}
    login = {"username": address.sentinel_username, "password": address.sentinel_password}
    assert read.sentinel_kwargs == login


def test_no_password_of_an_address_is_shown() -> None:
    """S7: neither that of the server nor that of the Sentinels, also with IPv6 addresses among the hosts."""
    url = "redis+sentinel://ann:first-secret@one:1,[::1]:2/facts?sentinel_password=second-secret"
    redactor = make_redactor(make_settings({"cluster": {"redis": url}}), {})
    shown = redactor.text(f"connecting to {url}, with first-secret and second-secret")
    assert "first-secret" not in shown and "second-secret" not in shown
