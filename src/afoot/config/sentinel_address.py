"""`read_sentinel_address` reads the address of a Redis behind Sentinels.

    redis+sentinel://USER:PASSWORD@HOST:PORT,[::1]:PORT/SERVICE/DATABASE?sentinel_username=U&sentinel_password=P

The part before `@` is the login of the server. Docket reads addresses in the same way.
"""

from urllib.parse import parse_qsl, unquote

from msgspec import Struct

SENTINEL_SCHEME = "redis+sentinel"
SENTINEL_PORT = 26379
OPTIONS = ("sentinel_username", "sentinel_password")


class SentinelAddress(Struct, frozen=True):
    """The Sentinels, the service that they watch, and how to log in at its server and at themselves."""

    hosts: tuple[tuple[str, int], ...]
    service: str
    database: int = 0
    username: str = ""
    password: str = ""
    sentinel_username: str = ""
    sentinel_password: str = ""


def read_sentinel_address(url: str) -> SentinelAddress:
    """The parts of an address; raises ValueError, whose text has no password."""
    rest, _, query = url.partition("://")[2].partition("?")
    netloc, _, path = rest.partition("/")
    login, _, places = netloc.rpartition("@")
    service, _, database = path.strip("/").partition("/")
    if not service:
        raise ValueError(f"the name of the service is missing: {SENTINEL_SCHEME}://HOST:PORT/SERVICE")
    if database and not (database.isascii() and database.isdecimal()):
        raise ValueError(f"the database of {SENTINEL_SCHEME}:// must be a number")
    user, _, password = login.partition(":")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := [name for name in options if name not in OPTIONS]:
        raise ValueError(f"{SENTINEL_SCHEME}:// takes no options but {' and '.join(OPTIONS)}: {unknown[0]}")
    return SentinelAddress(
        tuple(_host(place) for place in places.split(",")),
        service,
        int(database or 0),
        unquote(user),
        unquote(password),
        **options,
    )


def _host(place: str) -> tuple[str, int]:
    """The host and the port of one Sentinel; an IPv6 address stands in brackets."""
    if place.startswith("["):
        host, bracket, port = place[1:].partition("]")
        is_whole = bool(bracket) and ":" in host and (not port or port.startswith(":"))
        port = port[1:]
    else:
        host, colon, port = place.partition(":")
        is_whole = bool(port) or not colon
    if not host or not is_whole:
        raise ValueError("a Sentinel must be given as HOST, HOST:PORT or [IPV6]:PORT")
    if port and not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError("the port of a Sentinel must be a number from 1 to 65535")
    return host, int(port or SENTINEL_PORT)
