"""A host's server as one of afoot's: the same command or address, its secrets in a file of their own."""

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from afoot import state
from afoot.config import Settings
from afoot.hosts import entry, secrets
from afoot.hosts.known import Host
from afoot.hosts.variables import deep, translate
from afoot.mcp_json import HTTP, as_server
from afoot.tables import BUILT_IN, Misfit, Server

# What a server has in a host's file and cannot have here; moving it without would change what it may do.
KEPT_BACK = {
    "envFile": "reads its variables from a file (envFile)",
    "headersHelper": "gets its headers from a command (headersHelper)",
    "authProviderType": "signs in with a provider of its host (authProviderType)",
    "sandbox": "runs in a sandbox of its host (sandbox)",
    "sandboxEnabled": "runs in a sandbox of its host (sandboxEnabled)",
    "enabled_tools": "offers only some of its tools (enabled_tools)",
    "disabled_tools": "hides some of its tools (disabled_tools)",
    "includeTools": "offers only some of its tools (includeTools)",
    "excludeTools": "hides some of its tools (excludeTools)",
    "disabledTools": "hides some of its tools (disabledTools)",
}
# What is taken along, or says nothing that is needed here.
TAKEN = set(
    "command args env cwd url serverUrl httpUrl headers http_headers env_http_headers bearer_token_env_var"
    " env_vars type transport disabled enabled startup_timeout_sec tool_timeout_sec auth oauth"
    " source name description version gallery".split()
)
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Adopted(Struct, frozen=True):
    """A server as it will stand in afoot.toml, its secrets by name, and what of it has no place there."""

    table: dict[str, object]
    secrets: dict[str, str]
    dropped: list[str] = []


class CannotAdopt(Exception):
    """Why a server stays with its host."""


class Origin(Struct, frozen=True):
    """Where a server is taken from; `folder` is the project's, whose servers are started there."""

    host: Host
    file: Path
    folder: Path | None = None


def adopt(origin: Origin, server: str, value: object, known: Mapping[str, str]) -> Adopted:
    """A host's server for afoot.toml, under the name `server`; raises CannotAdopt with the reason.

    `known` are the secrets that there are.
    """
    if not isinstance(value, dict):
        raise CannotAdopt("it is not a table")
    given = _given(origin, value)
    _check(origin.host, given)
    hiding = _Hiding(server, known)
    try:
        made = as_server(
            server, deep(given, lambda key, text: _plain(origin, hiding, key, text)), origin.file
        )
    except Misfit as error:
        where = ".".join(error.path[1:])
        raise CannotAdopt(f"{where}: {error.message}" if where else error.message) from None
    table = to_builtins(hiding.server(_settled(origin, given, made)))
    dropped = set(given) - TAKEN - ({"timeout"} if origin.host.timeout_in_s else set())
    return Adopted(table, hiding.found, sorted(dropped))


def name_for(server: str, host: Host, taken: Mapping[str, object]) -> str:
    """A name for a server that is free, and fits where tools are called SERVER__TOOL."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", server).strip("-_") or host.name
    names = [plain, f"{plain}-{host.name}", *(f"{plain}-{host.name}-{number}" for number in range(2, 1000))]
    return next(name for name in names if name not in taken and name not in BUILT_IN)


class _Hiding:
    """The secrets of one server, on their way into the file."""

    def __init__(self, name: str, known: Mapping[str, str]) -> None:
        self.name, self.known = name, dict(known)
        self.found: dict[str, str] = {}

    def secret(self, key: str, value: str) -> str:
        """The reference that stands for a secret from now on."""
        name = secrets.name_for(self.name, key, value, self.known)
        self.known[name] = self.found[name] = value
        return secrets.reference(name)

    def value(self, key: str, text: str) -> str:
        """A value that may be a secret: all of them, unless they name a variable."""
        return text if not text or "${" in text else self.secret(key, text)

    def server(self, made: Server) -> Server:
        """A server without its secrets."""
        return replace(
            made,
            env={key: self.value(key, text) for key, text in made.env.items()},
            headers={key: self.value(key, text) for key, text in made.headers.items()},
            client_secret=self.value("client_secret", made.client_secret),
        )


def _given(origin: Origin, value: Mapping[object, object]) -> dict[str, object]:
    """What a host's file says of a server, numbers among its variables as texts, its folder from the root."""
    given = {str(key): one for key, one in value.items() if one is not None}
    env, folder = given.get("env"), given.get("cwd")
    if isinstance(env, dict):
        is_number = {
            key: isinstance(one, int | float) and not isinstance(one, bool) for key, one in env.items()
        }
        given["env"] = {key: str(one) if is_number[key] else one for key, one in env.items()}
    if origin.folder is not None and isinstance(folder, str) and "${" not in folder:
        given["cwd"] = str(origin.folder / folder)
    return given


def _check(host: Host, given: dict[str, object]) -> None:
    address = str(given.get("url") or given.get("serverUrl") or given.get("httpUrl") or "")
    if entry.is_ours(given) or urlsplit(address).netloc in _gateways():
        raise CannotAdopt("it is afoot itself")
    for key, reason in KEPT_BACK.items():
        if given.get(key):
            raise CannotAdopt(f"it {reason}")
    is_told = given.get("type", given.get("transport")) in HTTP or "httpUrl" in given
    is_old = urlsplit(address).path.rstrip("/").endswith("/sse") or (host.name == "gemini" and address)
    if is_old and not is_told:
        raise CannotAdopt("it speaks the old SSE transport, which afoot does not")


def _gateways() -> set[str]:
    """Where this machine's gateway is, or would be."""
    running = state.running()
    usual = Settings().http
    here = urlsplit(running.mcp).netloc if running is not None else usual
    return {usual, here} | {f"localhost:{one.rpartition(':')[2]}" for one in (usual, here)}


def _plain(origin: Origin, hiding: _Hiding, key: str, text: str) -> str:
    """A text as afoot will read it; where a host knows no variables, `${` is kept from being one."""
    if not origin.host.expands:
        return hiding.secret(key, text) if "${" in text else text
    return translate(text, origin.host.expands, origin.folder)


def _settled(origin: Origin, given: dict[str, object], made: Server) -> Server:
    """With what its host did for it: the folder it starts in, signing in, its limit for a call."""
    if made.command and origin.folder is not None and not given.get("cwd"):
        made = replace(made, cwd=str(origin.folder))
    is_signed = any(key.lower() == "authorization" for key in made.headers)
    if made.url and not is_signed and urlsplit(made.url).hostname not in LOOPBACK:
        made = replace(made, auth="oauth")
    seconds, limit = given.get("tool_timeout_sec"), given.get("timeout")
    if origin.host.timeout_in_s and isinstance(limit, int | float):
        seconds = limit * origin.host.timeout_in_s
    return (
        replace(made, ceiling_s=float(seconds)) if isinstance(seconds, int | float) and seconds > 0 else made
    )
