"""`read_host_file` reads the servers in the config file of another host: mcpServers and its variants (U2)."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from afoot.config import jsonc, toml
from afoot.config.settings import ConfigError
from afoot.config.tables import InvalidSetting, Server, convert_table, expand_home

# The keys under which hosts keep their servers: Claude, Cursor, Windsurf, Gemini; VS Code; Zed; Codex.
CONTAINERS = (("mcpServers",), ("servers",), ("mcp", "servers"), ("context_servers",), ("mcp_servers",))
URLS = ("url", "serverUrl", "httpUrl")
HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")
# Keys that hosts know and afoot does not: a note says so, so that nobody relies on them.
UNSUPPORTED_KEYS = {
    "autoApprove": "set approval in afoot.toml",
    "alwaysAllow": "set approval in afoot.toml",
    "trust": "set approval in afoot.toml",
    "disabledTools": 'set approval = "off" for those tools in afoot.toml',
    "excludeTools": 'set approval = "off" for those tools in afoot.toml',
    "includeTools": 'set approval = "off" for the other tools in afoot.toml',
    "disabled_tools": 'set approval = "off" for those tools in afoot.toml',
    "enabled_tools": 'set approval = "off" for the other tools in afoot.toml',
    "envFile": "put its variables into env",
    "headersHelper": "put the headers into headers",
}
# The types of values that are put together here, before their parts are checked.
_SHAPES: dict[str, type] = {
    "args": list, "env_vars": list,
    "env": dict, "headers": dict, "http_headers": dict, "env_http_headers": dict,
}  # fmt: skip
_OURS = ("command", "args", "env", "cwd", "headers")
# A reference to a secret of afoot. The file may come from a cloned project, and its servers are strangers'.
SECRET_BEGINS = b"${secret:"
_DOLLAR = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")


class HostServers(Struct, frozen=True):
    """The servers of a file, the reasons why some cannot be used, and notes on omitted settings."""

    servers: dict[str, Server] = {}
    unusable: dict[str, str] = {}
    notes: list[str] = []


def read_host_file(path: Path, folder: Path | None = None) -> HostServers:
    """The servers of a host's file; of its projects those that `folder` (or the current one) belongs to.

    Raises ConfigError with file and line.
    """
    entries, notes = _entries(_parsed(path), path, folder or Path.cwd())
    found = HostServers({}, {}, notes)
    for name, entry in entries.items():
        if is_afoot_connect(entry):
            continue
        try:
            server = as_server(name, entry, path)
        except InvalidSetting as misfit:
            where = ".".join(misfit.path[1:])
            found.unusable[name] = f"{where}: {misfit.message}" if where else misfit.message
            continue
        if SECRET_BEGINS in msgspec.json.encode(server):
            found.unusable[name] = (
                "it names a secret of afoot, which only afoot.toml may: write its table there"
            )
            continue
        found.servers[name] = server
        found.notes.extend(_ignored(name, entry))
    return found


def is_afoot_connect(entry: object) -> bool:
    """Whether an entry is `afoot connect`: as a server of a gateway it would call the gateway."""
    if not isinstance(entry, dict):
        return False
    command, args = entry.get("command"), entry.get("args") or []
    if not isinstance(command, str) or not isinstance(args, list) or "connect" not in args:
        return False
    return Path(command).stem == "afoot" or args[:2] == ["-m", "afoot"]


def resolve_cwd(server: Server, path: Path) -> Server:
    """The server with its folder made absolute: it is relative to the file."""
    if not server.cwd or server.cwd.startswith("${"):
        return server
    return replace(server, cwd=str(path.absolute().parent / expand_home(server.cwd)))


def _parsed(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        parsed = toml.loads(text) if path.suffix == ".toml" else jsonc.loads(text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", file=path) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: {error}", file=path) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}", file=path) from None
    except jsonc.JsoncError as error:
        raise ConfigError(f"{path}, {error}", file=path, line=error.line) from None
    if not isinstance(parsed, dict):
        raise ConfigError(f"{path}: must be an object with mcpServers", file=path)
    return parsed


def _entries(parsed: dict[str, Any], path: Path, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """All entries of servers, and notes; the entries of the nearest project count for most."""
    notes: list[str] = []
    entries: dict[str, Any] = {}
    left_out = 0
    projects = parsed.get("projects")
    for name, project in sorted(projects.items(), reverse=True) if isinstance(projects, dict) else ():
        own: object = project.get("mcpServers") if isinstance(project, dict) else None
        if isinstance(own, dict):
            if folder.is_relative_to(name):
                entries = {**own, **entries}
            else:
                left_out += len(own)
    known = False
    for keys in CONTAINERS:
        found = _at(parsed, keys)
        known = known or found is not None
        if isinstance(found, dict):
            entries = {**found, **entries}
        elif found is not None:
            raise ConfigError(f"{path}: {'.'.join(keys)} must be an object", file=path)
    if not known and not isinstance(projects, dict):
        raise ConfigError(f"{path}: no servers in it; they stand under mcpServers, or servers", file=path)
    if left_out:
        notes.append(f"{left_out} server{'s' * (left_out != 1)} of other projects left out")
    return entries, notes


def _at(parsed: object, keys: tuple[str, ...]) -> object:
    for key in keys:
        parsed = parsed.get(key) if isinstance(parsed, dict) else None
    return parsed


def as_server(name: str, entry: object, path: Path) -> Server:
    """One entry as a server; raises InvalidSetting."""
    if not isinstance(entry, dict):
        raise InvalidSetting((name,), "must be an object")
    for key, shape in _SHAPES.items():
        if entry.get(key) not in (None, "", [], {}) and not isinstance(entry[key], shape):
            raise InvalidSetting((name, key), "must be a list" if shape is list else "must be an object")
    _check_transport(name, entry)
    given = {key: entry[key] for key in _OURS if entry.get(key) not in (None, "", [], {})}
    if isinstance(given.get("command"), dict):  # an older Zed
        inner: dict[str, Any] = given.pop("command")
        given.update({"command": inner.get("path", ""), "args": inner.get("args") or []})
        given.update({"env": inner["env"]} if inner.get("env") else {})
    if isinstance(given.get("command"), list):
        words: list[Any] = given.pop("command")
        given.update({"command": words[0] if words else "", "args": [*words[1:], *given.get("args", [])]})
    url = next((entry[key] for key in reversed(URLS) if entry.get(key)), None)
    if url is not None:
        given["url"] = url
    _add_codex(entry, given)
    _add_oauth(entry, given)
    if entry.get("disabled") is True or entry.get("enabled") is False:
        given["disabled"] = True
    if path.absolute().parent.name == ".gemini":
        given = {key: _braced(value) for key, value in given.items()}
    given = {key: _plain_variables(name, key, value) for key, value in given.items()}
    server = convert_table(Server, given, (name,))
    if not server.way():
        raise InvalidSetting((name,), "has neither a command nor a url")
    return resolve_cwd(server, path)


def _check_transport(name: str, entry: dict[str, Any]) -> None:
    kind = entry.get("type") or entry.get("transport") or ""
    if kind == "sse":
        text = "speaks the old HTTP+SSE transport, which is not spoken here; try its Streamable HTTP address"
        raise InvalidSetting((name,), text)
    if kind not in ("", "stdio", *HTTP):
        raise InvalidSetting((name, "type"), f"unknown transport {kind!r}")
    if not any(entry.get(key) for key in ("command", *URLS)) and "settings" in entry:
        raise InvalidSetting((name,), "is started by an extension of its host, and only there")


def _add_codex(entry: dict[str, Any], given: dict[str, Any]) -> None:
    """Codex names variables where others hold values."""
    headers = dict[str, Any](entry.get("http_headers") or {})
    if isinstance(variable := entry.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    headers |= {key: f"${{{value}}}" for key, value in (entry.get("env_http_headers") or {}).items()}
    if headers:
        given["headers"] = {**given.get("headers", {}), **headers}
    passed = {one: f"${{{one}}}" for one in entry.get("env_vars") or [] if isinstance(one, str)}
    if passed:
        given["env"] = {**passed, **given.get("env", {})}
    if isinstance(seconds := entry.get("startup_timeout_sec"), int | float):
        given["start_s"] = seconds


def _add_oauth(entry: dict[str, Any], given: dict[str, Any]) -> None:
    """Claude Code has `oauth`, Cursor has `auth`: a client that was registered by hand."""
    told = entry.get("oauth") or entry.get("auth")
    if not isinstance(told, dict) or "url" not in given:
        return
    given["auth"] = "oauth"
    for key, names in {
        "client_id": ("clientId", "CLIENT_ID"),
        "client_secret": ("clientSecret", "CLIENT_SECRET"),
        "scopes": ("scopes",),
    }.items():
        value = next((told[one] for one in names if told.get(one)), None)
        if value is not None:
            given[key] = value
    if isinstance(given.get("scopes"), str):
        given["scopes"] = given["scopes"].split()


def _braced(value: Any) -> Any:
    """Gemini takes `$VAR` for `${VAR}`."""
    if isinstance(value, dict):
        return {key: _braced(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_braced(one) for one in value]
    return _DOLLAR.sub(r"${\1}", value) if isinstance(value, str) else value


def _plain_variables(name: str, key: str, value: Any) -> Any:
    """The value with `${env:X}` as `${X}`; raises InvalidSetting for a variable that only the host knows."""
    if isinstance(value, dict):
        return {inner: _plain_variables(name, f"{key}.{inner}", one) for inner, one in value.items()}
    if isinstance(value, list):
        return [_plain_variables(name, key, one) for one in value]
    if not isinstance(value, str):
        return value

    def changed(found: re.Match[str]) -> str:
        kind, _, rest = found[1].partition(":")
        if kind == "env" and rest:
            return f"${{{rest}}}"
        if kind == "userHome":
            return str(Path.home())
        if kind in ("pathSeparator", "/"):
            return "/"
        if kind == "input":
            raise InvalidSetting(
                (name, key), f"{found[0]} is asked for by its host; write it as ${{VARIABLE}} instead"
            )
        if kind in ("command", "config") or kind.startswith("workspaceFolder"):
            raise InvalidSetting((name, key), f"{found[0]} is known only to its host; write the value itself")
        return found[0]

    return _VARIABLE.sub(changed, value)


def _ignored(name: str, entry: dict[str, Any]) -> Iterator[str]:
    for key, instead in UNSUPPORTED_KEYS.items():
        if entry.get(key):
            yield f"{name}: {key} is not taken over; {instead}"
