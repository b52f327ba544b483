"""`adopt_server` turns a host's server into one of afoot.toml.

Its command or address stays the same, its variables are translated, and its secrets go into a file of their
own. Nothing is written here.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from afoot.config import state_folder
from afoot.config.mcp_json import HTTP, as_server
from afoot.config.settings import Settings
from afoot.config.tables import InvalidSetting, Server
from afoot.hosts import secrets_file
from afoot.hosts.document import (
    is_ours,
)
from afoot.hosts.known_hosts import Host

# Keys of a host's server that afoot does not support; without them the server would behave differently.
NOT_ADOPTABLE = {
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
# Keys that are taken over, or that are not needed in afoot.toml.
KNOWN_KEYS = set(
    "command args env cwd url serverUrl httpUrl headers http_headers env_http_headers bearer_token_env_var"
    " env_vars type transport disabled enabled startup_timeout_sec tool_timeout_sec auth oauth"
    " source name description version gallery".split()
)
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SHELL_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_WORKSPACE_FOLDER = re.compile(r"\$\{workspaceFolder(Basename)?\}")


class AdoptedServer(Struct, frozen=True):
    """A server for afoot.toml: its table, its secrets by name, and the keys that are dropped."""

    table: dict[str, object]
    secrets: dict[str, str]
    dropped: list[str] = []


class ServerOrigin(Struct, frozen=True):
    """The host and file of a server; `folder` is the project's, in which its servers are started."""

    host: Host
    file: Path
    folder: Path | None = None


class CannotAdopt(Exception):
    """The server stays with its host; the message says why."""


class _SecretCollector:
    """Collects the secrets of one server and replaces them by references."""

    def __init__(self, name: str, known: Mapping[str, str]) -> None:
        self.name = name
        self.known = dict(known)
        self.found: dict[str, str] = {}

    def secret(self, key: str, value: str) -> str:
        """Add a secret; returns the reference to it."""
        name = secrets_file.free_name(self.name, key, value, self.known)
        self.known[name] = self.found[name] = value
        return secrets_file.reference(name)

    def value(self, key: str, text: str) -> str:
        """A value of `env` or `headers`: every value is a secret, unless it names a variable."""
        return text if not text or "${" in text else self.secret(key, text)

    def server(self, adopted: Server) -> Server:
        """The server with references instead of its secrets."""
        return replace(
            adopted,
            env={key: self.value(key, text) for key, text in adopted.env.items()},
            headers={key: self.value(key, text) for key, text in adopted.headers.items()},
            client_secret=self.value("client_secret", adopted.client_secret),
        )


def adopt_server(origin: ServerOrigin, server: str, value: object, known: Mapping[str, str]) -> AdoptedServer:
    """A host's server as one of afoot.toml, under the name `server`; raises CannotAdopt with the reason.

    `known` are the secrets that exist already.
    """
    if not isinstance(value, dict):
        raise CannotAdopt("it is not a table")
    given = _normalized(origin, value)
    _check_adoptable(origin.host, given)
    collector = _SecretCollector(server, known)
    try:
        adopted = as_server(
            server,
            map_strings(given, lambda key, text: _translate_text(origin, collector, key, text)),
            origin.file,
        )
    except InvalidSetting as error:
        where = ".".join(error.path[1:])
        raise CannotAdopt(f"{where}: {error.message}" if where else error.message) from None
    table = to_builtins(collector.server(_with_host_settings(origin, given, adopted)))
    dropped = set(given) - KNOWN_KEYS - ({"timeout"} if origin.host.timeout_in_s else set())
    return AdoptedServer(table, collector.found, sorted(dropped))


def translate_variables(text: str, style: str, folder: Path | None) -> str:
    """A text with `${VAR}` for a host's `$VAR`, and with the project's folder filled in."""
    if style == "shell":
        return _SHELL_VARIABLE.sub(r"${\1}", text)
    if style == "editor" and folder is not None:
        return _WORKSPACE_FOLDER.sub(lambda found: folder.name if found[1] else str(folder), text)
    return text


def map_strings(value: object, change: Callable[[str, str], str], key: str = "") -> object:
    """A value with every string in it changed by `change(key, text)`; `key` is the nearest key above."""
    if isinstance(value, dict):
        return {name: map_strings(one, change, str(name)) for name, one in value.items()}
    if isinstance(value, list):
        return [map_strings(one, change, f"{key}_{number}") for number, one in enumerate(value, 1)]
    return change(key, value) if isinstance(value, str) else value


def _normalized(origin: ServerOrigin, value: Mapping[object, object]) -> dict[str, object]:
    """A host's entry with numbers in `env` as text, and with an absolute `cwd`."""
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


def _check_adoptable(host: Host, given: dict[str, object]) -> None:
    address = str(given.get("url") or given.get("serverUrl") or given.get("httpUrl") or "")
    if is_ours(given) or urlsplit(address).netloc in _gateway_addresses():
        raise CannotAdopt("it is afoot itself")
    for key, reason in NOT_ADOPTABLE.items():
        if given.get(key):
            raise CannotAdopt(f"it {reason}")
    is_told = given.get("type", given.get("transport")) in HTTP or "httpUrl" in given
    is_old = urlsplit(address).path.rstrip("/").endswith("/sse") or (host.name == "gemini" and address)
    if is_old and not is_told:
        raise CannotAdopt("it speaks the old SSE transport, which afoot does not")


def _gateway_addresses() -> set[str]:
    """The addresses on which this machine's gateway listens or would listen."""
    running = state_folder.running_gateway()
    usual = Settings().http
    here = urlsplit(running.mcp).netloc if running is not None else usual
    return {usual, here} | {f"localhost:{one.rpartition(':')[2]}" for one in (usual, here)}


def _translate_text(origin: ServerOrigin, collector: _SecretCollector, key: str, text: str) -> str:
    """A text as afoot reads it; if the host expands no variables, a text with `${` becomes a secret.

    Raises CannotAdopt for a reference to a secret of afoot: a project's file may not name those of others.
    """
    if not origin.host.expands:
        return collector.secret(key, text) if "${" in text else text
    translated = translate_variables(text, origin.host.expands, origin.folder)
    # The folder of a project, which may be in it now, has a name that a stranger may have chosen.
    if any(secrets_file.REFERENCE_BEGINS in one for one in (text, translated)):
        raise CannotAdopt(f"{key}: it names a secret of afoot")
    return translated


def _with_host_settings(origin: ServerOrigin, given: dict[str, object], adopted: Server) -> Server:
    """The server with the settings that its host applied: working folder, OAuth, time limit of a call."""
    if adopted.command and origin.folder is not None and not given.get("cwd"):
        adopted = replace(adopted, cwd=str(origin.folder))
    is_signed = any(key.lower() == "authorization" for key in adopted.headers)
    if adopted.url and not is_signed and urlsplit(adopted.url).hostname not in LOOPBACK:
        adopted = replace(adopted, auth="oauth")
    seconds, limit = given.get("tool_timeout_sec"), given.get("timeout")
    if origin.host.timeout_in_s and isinstance(limit, int | float):
        seconds = limit * origin.host.timeout_in_s
    return (
        replace(adopted, ceiling_s=float(seconds))
        if isinstance(seconds, int | float) and seconds > 0
        else adopted
    )
