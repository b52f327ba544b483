"""Who may reach a gateway from where: the table `[access]`, and what it must have off loopback (S2)."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from msgspec import Struct

LOOPBACK = ("127.0.0.1", "::1", "localhost")
EVERYWHERE = ("0.0.0.0", "::")


class Access(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How callers prove who they are, and under which name and certificate the gateway is reached."""

    required: bool = False  # a token is needed on `/mcp` also where it could be open
    public_url: str = ""  # as a proxy in front has it
    tls_cert: str = ""
    tls_key: str = ""
    issuer: str = ""  # whose JWTs count
    audience: str = ""  # empty: the address of `/mcp`
    jwks_url: str = ""  # empty: as the issuer publishes it
    scope_prefix: str = "afoot:"

    @property
    def has_tls(self) -> bool:
        """Whether the gateway itself speaks TLS."""
        return bool(self.tls_cert and self.tls_key)


def wrong(access: Access) -> str:
    """What is wrong with the table by itself; nothing if it is sound."""
    if bool(access.tls_cert) != bool(access.tls_key):
        return "access.tls_cert and access.tls_key: one needs the other"
    for name in ("public_url", "issuer", "jwks_url"):
        if (url := getattr(access, name)) and not is_sound(url):
            return (
                f"access.{name}: must be an https:// address, or an http:// one of this machine, not {url!r}"
            )
    if (access.audience or access.jwks_url) and not access.issuer:
        return "access.issuer: is needed where access.audience or access.jwks_url is set"
    return ""


def lacking(host: str, access: Access, is_known: bool, hosts: Sequence[str]) -> str:
    """What must be set before it may listen at this host; nothing if it may. `is_known`: there are tokens."""
    if host in LOOPBACK and not access.public_url:
        return ""
    if not is_known and not access.issuer:
        return "a way for callers to prove themselves: `afoot tokens add NAME`, or access.issuer"
    if host in LOOPBACK:
        return ""  # behind a proxy of this machine
    if not access.has_tls and not access.public_url:
        return "access.tls_cert and access.tls_key, or access.public_url if a proxy in front has them"
    if host in EVERYWHERE and not access.public_url and not hosts:
        return "the name it is reached by, in allow_hosts or access.public_url"
    return ""


def is_closed(host: str, access: Access, mcp_token: str) -> bool:
    """Whether `/mcp` answers only those who have proved who they are."""
    return bool(access.required or mcp_token or access.public_url or host not in LOOPBACK)


def is_sound(url: str) -> bool:
    """Whether nobody in between can change what stands at an address: TLS, or on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK))
