"""`covers_url` says whether a plugin runs at an address, by Chrome's match patterns (B2)."""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from msgspec import Struct

DEFAULT_PORTS = {"http": "80", "https": "443"}
MAX_STARS = 10  # in one path
_PATTERN = re.compile(
    r"(?P<scheme>[^:/]+)://(?P<host>\[[0-9a-fA-F:.]+\]|[^/:]+)(?::(?P<port>[^/]*))?(?P<path>/.*)"
)
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
_HOST = re.compile(rf"\*|(?:\*\.)?{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\]")
# Second-level labels under which anybody can register a domain: nobody owns *.co.uk.
_SHARED_SUFFIXES = {"ac", "co", "com", "edu", "go", "gov", "ne", "net", "nom", "or", "org"}


class MatchPattern(Struct, frozen=True):
    """A match pattern in its parts; `host` is lower case and may begin with `*.`."""

    scheme: str
    host: str
    port: str  # a number, or * for any
    path: str


def parse_pattern(text: str) -> MatchPattern:
    """Parse a match pattern; raises ValueError saying what is wrong with it."""
    if text == "<all_urls>":
        return MatchPattern("*", "*", "*", "/*")
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise ValueError("is no match pattern: write SCHEME://HOST/PATH, as https://shop.example/*")
    scheme = found["scheme"]
    host = found["host"].lower()
    path = found["path"]
    port = "*" if found["port"] is None else found["port"]
    if scheme not in ("http", "https", "*"):
        raise ValueError(f"has the scheme {scheme}: write http, https or * for both")
    if not _HOST.fullmatch(host):
        raise ValueError(
            f"has the host {host}: a * stands alone or before the first dot; write xn-- for others"
        )
    if port != "*" and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"has the port {port}: write a number, or * for any")
    if path.count("*") > MAX_STARS:
        raise ValueError(f"has more than {MAX_STARS} stars in its path")
    return MatchPattern(scheme, host, port, path)


def parse_narrow_pattern(text: str) -> MatchPattern:
    """Parse a pattern that names its site; raises ValueError if it is wrong or too broad."""
    pattern = parse_pattern(text)
    labels = pattern.host.removeprefix("*.").split(".")
    is_whole = pattern.host.startswith("*.") and labels != ["localhost"] and (
        len(labels) == 1 or (len(labels) == 2 and labels[0] in _SHARED_SUFFIXES and len(labels[1]) == 2)
    )  # fmt: skip
    if pattern.host == "*" or is_whole:
        raise ValueError("is too broad: name the site, as https://shop.example/* or https://*.shop.example/*")
    return pattern


def covers_url(matches: Sequence[str], excludes: Sequence[str], url: str) -> bool:
    """Whether a plugin with these patterns runs at this address."""
    is_matched = any(matches_url(parse_pattern(pattern), url) for pattern in matches)
    return is_matched and not any(matches_url(parse_pattern(pattern), url) for pattern in excludes)


def matches_url(pattern: MatchPattern, url: str) -> bool:
    """Whether an address, as a browser writes it, matches a pattern; its fragment does not count."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", str(parts.port or DEFAULT_PORTS.get(parts.scheme, ""))
    except ValueError:
        return False
    if parts.scheme not in DEFAULT_PORTS or pattern.scheme not in ("*", parts.scheme):
        return False
    if pattern.port not in ("*", port) or not _host_matches(
        pattern.host, f"[{host}]" if ":" in host else host
    ):
        return False
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # In Chrome, /orders/* also matches /orders.
    return pattern.path == f"{path}/*" or _glob_matches(pattern.path, path)


def _host_matches(wanted: str, host: str) -> bool:
    if wanted.startswith("*."):
        return host == wanted[2:] or host.endswith(wanted[1:])
    return wanted in ("*", host)


def _glob_matches(wanted: str, text: str) -> bool:
    """Whether a text matches, each star standing for any characters; in linear time, without a regex."""
    first, *rest = wanted.split("*")
    if not rest:
        return text == wanted
    if not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return text.endswith(rest[-1]) and len(text) - len(rest[-1]) >= at
