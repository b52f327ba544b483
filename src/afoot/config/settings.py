"""`Settings` has every setting with its default; `load_settings` reads them from file, environment and flags.

It says of each setting where its value came from. A wrong one is a `ConfigError` with file, line and key.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from afoot.config import toml
from afoot.config.tables import (
    BUILT_IN_SERVERS,
    CHOICES,
    TRACE_ID,
    AccessSettings,
    BrowserSettings,
    ClusterSettings,
    ConnectionSettings,
    Hook,
    InvalidSetting,
    IsolationSettings,
    OtelSettings,
    QuotaSettings,
    RetentionSettings,
    Server,
    ToolSettings,
    convert_table,
    convert_value,
    expand_home,
    nearest_hint,
)
from afoot.core.redaction import RedactionRules
from afoot.errors import CallerError

__all__ = [
    "BrowserSettings", "ConfigError", "Hook", "LoadedSettings", "OtelSettings", "Server",
    "Settings", "ToolSettings", "find_config", "home", "load_settings",
]  # fmt: skip

# Variables that begin with AFOOT_ and are no settings.
OTHER_VARIABLES = ("AFOOT_HOME", "AFOOT_CONFIG", "AFOOT_URL", "AFOOT_TOKEN", "AFOOT_REPORTS")
_TABLES = {"servers": Server, "tools": ToolSettings, "quota": QuotaSettings}
_SINGLE: dict[
    str,
    type[
        BrowserSettings
        | OtelSettings
        | IsolationSettings
        | RedactionRules
        | RetentionSettings
        | AccessSettings
        | ConnectionSettings
        | ClusterSettings
    ],
] = {
    "redact": RedactionRules,
    "retain": RetentionSettings,
    "access": AccessSettings,
    "connections": ConnectionSettings,
    "browser": BrowserSettings,
    "otel": OtelSettings,
    "isolation": IsolationSettings,
    "cluster": ClusterSettings,
}
# Headers that prove who somebody is. A tool that saw them could act in the name of its caller.
CREDENTIAL_HEADERS = frozenset((
    "authorization", "proxy-authorization", "cookie", "set-cookie", "afoot-caller", "mcp-session-id",
))  # fmt: skip
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_MORE_THAN_NOTHING = ("keepalive_s", "notice_s", "stuck_s", "max_attempts")
_HEADER = re.compile(r"(\[\[?)(.+?)\]\]?\s*(?:#.*)?")


class ConfigError(CallerError):
    """A setting is wrong; the message names file, line and key."""

    def __init__(
        self, message: str, *, file: Path | None = None, line: int | None = None, key: str = ""
    ) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.key = key


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings in force. A duration ends in `_s`, a size in `_bytes`."""

    http: str = "127.0.0.1:23668"
    store: str = ""  # empty: the state folder's calls.db; ":memory:" keeps nothing
    targets: list[str] = []

    idle_s: float = 30.0
    ceiling_s: float = 300.0
    answer_s: float = 600.0
    queue_limit_s: float = 60.0
    start_limit_s: float = 60.0
    cancel_grace_s: float = 5.0
    max_idle_s: float | None = None
    max_ceiling_s: float | None = None
    server_concurrency: int = 0
    drain_s: float = 10.0
    caller_limits: dict[str, float] = {}  # by the name of the client, what it waits at most (H5)
    caller_limit_s: float | None = None
    linger_s: float = 600.0
    task_after_s: float = 60.0  # a call that takes longer, or usually does, becomes a task; 0: none (H3, H7)
    task_ttl_s: float = 86_400.0  # after its end

    approval: str = ""  # auto, ask; empty: as each tool is
    policy: str = ""  # or "careful"
    ask_by: str = ""  # caller, operator, both; empty: the caller if it can be asked
    unanswerable: str = "refuse"  # or "wait"
    max_attempts: int = 3
    restart_limit: int = 3

    progress_hz: float = 20.0
    data_hz: float = 200.0
    notice_s: float = 15.0
    sse_after_s: float = 5.0
    keepalive_s: float = 15.0
    stuck_s: float = 120.0
    lifecycle: str = "off"
    app: str = "own"  # or "all", "off": the calls that hosts which render MCP Apps show live

    max_body_bytes: int = 4 * 1024 * 1024
    max_arguments_bytes: int = 1024 * 1024
    max_result_bytes: int = 32 * 1024 * 1024
    max_message_chars: int = 1000
    max_data_bytes: int = 64 * 1024
    max_questions: int = 100
    max_unread_bytes: int = 64 * 1024 * 1024

    history: str = "best-effort"  # or "required"
    durable: str = "normal"  # or "full"
    record_wire: bool = False
    redact: RedactionRules = RedactionRules()
    retain: RetentionSettings = RetentionSettings()
    mcp_token: str = ""
    allow_origins: list[str] = []
    allow_hosts: list[str] = []
    tool_headers: list[str] = []  # headers of a caller's HTTP request that tools may see
    access: AccessSettings = AccessSettings()
    connections: ConnectionSettings = ConnectionSettings()

    mcp_servers: list[str] = []  # files with the servers of other hosts
    hooks: list[Hook] = []
    browser: BrowserSettings = BrowserSettings()
    otel: OtelSettings = OtelSettings()
    metrics: bool = True  # whether there is `/metrics`
    isolation: IsolationSettings = IsolationSettings()
    cluster: ClusterSettings = ClusterSettings()
    quota: dict[str, QuotaSettings] = {}  # by caller, or a pattern of them
    servers: dict[str, Server] = {}
    tools: dict[str, ToolSettings] = {}


CHOICES[Settings] = {
    "lifecycle": ("off", "stages"),
    "app": ("own", "all", "off"),
    "history": ("best-effort", "required"),
    "durable": ("normal", "full"),
    "approval": ("", "auto", "ask"),
    "policy": ("", "careful"),
    "ask_by": ("", "caller", "operator", "both"),
    "unanswerable": ("refuse", "wait"),
}


class LoadedSettings(Struct, frozen=True):
    """Settings, and for each key where its value came from."""

    settings: Settings
    origin: dict[str, str]
    file: Path | None = None


def load_settings(
    file: Path | None = None, flags: Mapping[str, object] | None = None, *, upward: bool = True
) -> LoadedSettings:
    """Settings from defaults, the config file, the environment and flags, the later over the earlier."""
    values: dict[str, object] = {}
    origin = dict.fromkeys(Settings.__struct_fields__, "default")
    found = file or find_config(upward=upward)
    if found is not None:
        for key, value in _placed(_read(found), found.absolute().parent).items():
            values[key] = value
            origin[key] = str(found)
    for key, value in _environment().items():
        values[key] = value
        origin[key] = f"AFOOT_{key.upper()}"
    for key, value in (flags or {}).items():
        before = values.get(key)
        is_table = isinstance(before, dict) and isinstance(value, dict)  # a flag changes what it names of one
        values[key] = {**before, **value} if is_table else value
        origin[key] = "flag"
    return LoadedSettings(_build(values, origin, found), origin, found)


def make_settings(values: Mapping[str, object]) -> Settings:
    """Settings from these values alone: no file, no environment; raises ConfigError."""
    return _build(dict(values), dict.fromkeys(values, "argument"), None)


def find_config(*, upward: bool = True) -> Path | None:
    """The config file that counts: AFOOT_CONFIG, the nearest afoot.toml upward, the user's config folder.

    A gateway that a host starts in somebody's project does not look `upward`: it runs nothing from there.
    """
    if named := os.environ.get("AFOOT_CONFIG"):
        return Path(named)
    here = Path.cwd()
    for folder in (here, *here.parents) if upward else ():
        if (folder / "afoot.toml").is_file():
            return folder / "afoot.toml"
    user = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "afoot" / "afoot.toml"
    return user if user.is_file() else None


def home() -> Path:
    """The state folder: history, keys, and the address of the running gateway."""
    if named := os.environ.get("AFOOT_HOME"):
        return Path(named)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "afoot"


def _read(file: Path) -> dict[str, object]:
    try:
        return toml.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"config {file} cannot be read: {error.strerror}", file=file) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        line = getattr(error, "lineno", None) or _line_in(str(error))
        raise ConfigError(f"config {file}: {error}", file=file, line=line) from None


def _placed(values: dict[str, object], folder: Path) -> dict[str, object]:
    """The values with paths of files made absolute: they are relative to the config file."""

    def placed(text: str) -> str:
        is_file = text.endswith((".py", ".json", ".jsonc", ".toml")) or ".py:" in text
        return str(folder / expand_home(text)) if is_file and "://" not in text else text

    browser = values.get("browser")
    if isinstance(browser, dict) and isinstance(plugins := browser.get("plugins"), list):
        browser["plugins"] = [str(folder / expand_home(one)) for one in plugins if isinstance(one, str)]
    for key in ("targets", "mcp_servers"):
        named = values.get(key)
        if isinstance(named, list):
            values[key] = [placed(one) if isinstance(one, str) else one for one in named]
    hooks = values.get("hooks")
    for table in hooks if isinstance(hooks, list) else ():
        if isinstance(table, dict) and isinstance(python := table.get("python"), str):
            table["python"] = placed(python)
    servers = values.get("servers")
    for table in servers.values() if isinstance(servers, dict) else ():
        if isinstance(table, dict) and isinstance(cwd := table.get("cwd"), str) and "${" not in cwd:
            table["cwd"] = str(folder / expand_home(cwd))
        if isinstance(table, dict) and isinstance(module := table.get("module"), str):
            table["module"] = placed(module)
    return values


def _line_in(text: str) -> int | None:
    found = re.search(r"at line (\d+)", text)
    return int(found[1]) if found else None


def _environment() -> dict[str, object]:
    found: dict[str, object] = {}
    for name, text in os.environ.items():
        key = name.removeprefix("AFOOT_").lower()
        if not name.startswith("AFOOT_") or name in OTHER_VARIABLES:
            continue
        if key in Settings.__struct_fields__:
            is_list = isinstance(getattr(Settings(), key), list)
            found[key] = [part for part in text.split(",") if part] if is_list else text
        elif near := get_close_matches(key, _variables(), n=1, cutoff=0.75):
            # A variable that resembles no setting may be somebody else's: clusters name some after services.
            raise ConfigError(f"unknown variable {name}; nearest: AFOOT_{near[0].upper()}", key=name)
    return found


def _variables() -> list[str]:
    return [*Settings.__struct_fields__, *(name.removeprefix("AFOOT_").lower() for name in OTHER_VARIABLES)]


def _build(values: dict[str, object], origin: Mapping[str, str], file: Path | None) -> Settings:
    made: dict[str, Any] = {}
    for key, value in values.items():
        try:
            made[key] = _fit(key, value)
        except InvalidSetting as misfit:
            raise _explained(misfit, origin[key], file) from None
    settings = Settings(**made)
    for name, server in settings.servers.items():
        # A table without a way adds to a server that comes from elsewhere.
        if (
            not server.way()
            and name not in BUILT_IN_SERVERS
            and not settings.mcp_servers
            and not settings.targets
        ):
            missing = InvalidSetting(("servers", name), "needs one of command, url, module")
            raise _explained(missing, origin["servers"], file)
    return settings


def _fit(key: str, value: object) -> object:
    if key not in Settings.__struct_fields__:
        raise InvalidSetting((key,), f"unknown{nearest_hint(key, Settings.__struct_fields__)}")
    if key in _TABLES:
        if not isinstance(value, dict):
            raise InvalidSetting((key,), f"must be tables: [{key}.NAME]")
        return {name: convert_table(_TABLES[key], one, (key, name)) for name, one in value.items()}
    if key == "cluster" and isinstance(value, str):
        value = {"redis": value}  # AFOOT_CLUSTER has the address alone, as a container is told it
    if key in _SINGLE:
        found = convert_table(_SINGLE[key], value, (key,))
        if isinstance(found, OtelSettings):
            _check_trace_url(found.trace_url)
        return found
    if key == "hooks":
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise InvalidSetting((key,), "must be tables: [[hooks]]")
        return [convert_table(Hook, one, (key, str(number))) for number, one in enumerate(value)]
    found = convert_value(Settings, key, value)
    if key in _MORE_THAN_NOTHING and not found:
        raise InvalidSetting((key,), "must be more than 0")
    if key == "tool_headers":
        return _header_names(msgspec.convert(found, list[str]))
    return found


def _check_trace_url(url: str) -> None:
    """Check the address of a trace, which becomes a link; raises InvalidSetting."""
    if url and not (url.startswith(("http://", "https://")) and TRACE_ID in url):
        raise InvalidSetting(
            ("otel", "trace_url"), f"must begin with http:// or https:// and have {TRACE_ID} in it"
        )


def _header_names(names: list[str]) -> list[str]:
    """Names of headers in lower case; raises InvalidSetting for one that lets its sender in somewhere."""
    for name in names:
        if _HEADER_NAME.fullmatch(name) is None:
            raise InvalidSetting(("tool_headers",), f"{name!r} is no name of a header")
        if name.lower() in CREDENTIAL_HEADERS:
            raise InvalidSetting(("tool_headers",), f"{name} never reaches a tool; ctx.caller says who calls")
    return [name.lower() for name in names]


def _explained(misfit: InvalidSetting, origin: str, file: Path | None) -> ConfigError:
    """The error that says what is wrong, where it stands, and what may have been meant."""
    key = ".".join(misfit.path)
    line = None
    if file is not None and origin == str(file):
        line = line_of(file.read_text(encoding="utf-8"), misfit.path)
    where = origin if line is None else f"{origin}, line {line}"
    if len(misfit.path) == 1 and misfit.message.startswith("unknown"):
        hint = misfit.message.removeprefix("unknown")
        text = f"unknown setting {key!r} ({where}){hint}; `afoot init FOLDER` writes them all into a file"
    else:
        text = f"setting {key} ({where}): {misfit.message}"
    return ConfigError(text, file=file if line else None, line=line, key=key)


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """The line of a TOML text where a key stands, or the table that it is missing in."""
    best: tuple[int, int] | None = None
    table: tuple[str, ...] = ()
    seen: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        key, equals, _ = line.partition("=")
        if header := _HEADER.fullmatch(line):
            table = here = _keys(header[2])
            if header[1] == "[[":
                seen[table] = seen.get(table, -1) + 1
                table = here = (*table, str(seen[table]))
        elif equals and key and "#" not in key:
            here = (*table, *_keys(key))
        else:
            continue
        if here and path[: len(here)] == here and (best is None or len(here) > best[0]):
            best = len(here), number
    return None if best is None else best[1]


def _keys(text: str) -> tuple[str, ...]:
    """`servers."my files"` as its parts."""
    try:
        found: object = toml.loads(f"{text} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    keys: list[str] = []
    while isinstance(found, dict) and found:
        key = next(iter(found))
        keys.append(str(key))
        found = found[key]
    return tuple(keys)
