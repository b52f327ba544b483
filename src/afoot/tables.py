"""The tables of a config file: servers, tools and hooks, each value checked where it stands."""

import re
import shlex
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from afoot.core.isolation import ISOLATION, Isolation
from afoot.core.redact import Rules

LIMITS = ("idle_s", "ceiling_s", "answer_s", "queue_s", "grace_s", "start_s")
WAYS = ("command", "url", "module")  # how a server is reached: exactly one of them
OWN = "local"  # the server that Python functions are
BROWSER = "browser"  # the server that tabs are
BUILT_IN = {OWN: "your own functions", BROWSER: "the tabs of browsers"}

_VARIABLE = re.compile(r"\$\{((?:secret:)?[A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

T = TypeVar("T", bound=Struct)


class Misfit(Exception):
    """A key or a value that cannot be; `path` is where it stands."""

    def __init__(self, path: tuple[str, ...], message: str) -> None:
        super().__init__(message)
        self.path, self.message = path, message


class Server(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Somebody's MCP server: how it is reached, how far it is trusted, and its limits."""

    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    module: str = ""  # "package.module:server", an object in this process
    auth: str = ""  # or "oauth"
    scopes: list[str] = []
    client_id: str = ""
    client_secret: str = ""
    era: str = "auto"
    per_caller: bool = False  # a connection for each caller, for servers that keep state
    trust_annotations: bool = False
    approval: str = ""
    disabled: bool = False
    concurrency: int = 0
    read_only: list[str] = []  # tools that are safe to repeat, whatever they say
    idempotent: list[str] = []
    idle_s: float | None = None
    ceiling_s: float | None = None
    answer_s: float | None = None
    queue_s: float | None = None
    grace_s: float | None = None
    start_s: float | None = None

    def limits(self) -> dict[str, float]:
        """The limits that are given."""
        return _limits(self)

    def way(self) -> str:
        """How it is reached: command, url or module; nothing for a table that only adds to a server."""
        return next((way for way in WAYS if getattr(self, way)), "")

    def expanded(self, environment: Mapping[str, str]) -> "Server":
        """With `${VAR}` and `${VAR:-default}` replaced; raises KeyError with the name of a missing one.

        `${secret:NAME}` is the variable `secret:NAME`.
        """

        def filled(text: str) -> str:
            return _VARIABLE.sub(lambda found: _value(found, environment), text)

        return replace(
            self,
            command=filled(self.command),
            args=[filled(one) for one in self.args],
            env={key: filled(value) for key, value in self.env.items()},
            cwd=filled(self.cwd),
            url=filled(self.url),
            headers={key: filled(value) for key, value in self.headers.items()},
            client_secret=filled(self.client_secret),
        )


class ToolSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is set for the tools that a name or a pattern means."""

    idle_s: float | None = None
    ceiling_s: float | None = None
    answer_s: float | None = None
    queue_s: float | None = None
    grace_s: float | None = None
    start_s: float | None = None
    approval: str = ""
    read_only: bool | None = None
    idempotent: bool | None = None
    concurrency: int | None = None
    lifecycle: str = ""
    task: str = ""
    on_disconnect: str = ""
    join: str = ""
    isolate: bool | None = None
    cpu_s: float | None = None
    memory_bytes: int | None = None
    open_files: int | None = None
    processes: int | None = None

    def limits(self) -> dict[str, float]:
        """The limits that are given."""
        return _limits(self)

    def isolation(self) -> dict[str, float]:
        """What is given of what a call may use in a child process."""
        return {name: value for name in ISOLATION if (value := getattr(self, name)) is not None}


class BrowserSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Browser tabs as tools: how they are reached besides the extension, and which plugins run in them."""

    cdp: str = ""  # the address of a browser's debugging port
    plugins: list[str] = []  # folders
    link_grace_s: float = 5.0
    tools_per_origin: int = 64


class OtelSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Telemetry by OpenTelemetry: whether there is any, where it goes, and in whose name (V3)."""

    enabled: bool | None = None  # None: if it is said where it goes, here or in the standard variables
    endpoint: str = ""
    headers: dict[str, str] = {}
    service_name: str = ""


class QuotaSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What each of the callers that a name or a pattern means may use; 0: without end (G2)."""

    calls: int = 0
    cpu_s: float = 0.0
    per_s: float = 60.0  # in which `calls` and `cpu_s` count
    concurrent: int = 0  # more at once are refused
    concurrency: int = 0  # more at once wait in the queue (C8)


class Retain(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How long calls are kept: by age, by count, by size; 0: without end. The oldest go first (H6)."""

    days: float = 0.0
    calls: int = 0
    bytes: int = 2 * 1024**3


class Hook(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is run when something happens to a call: a command, or a Python function (K1)."""

    on: str = ""
    command: str | list[str] = ""
    python: str = ""  # "package.module:function"
    tools: str = "*"
    required: bool = False
    timeout_s: float = 5.0

    def words(self) -> list[str]:
        """The command, as a list."""
        return shlex.split(self.command) if isinstance(self.command, str) else list(self.command)


CHOICES: dict[type[Struct], dict[str, tuple[str, ...]]] = {
    Server: {
        "auth": ("", "oauth"),
        "era": ("auto", "2025-11-25", "2026-07-28"),
        "approval": ("", "auto", "ask", "off"),
    },
    ToolSettings: {
        "approval": ("", "auto", "ask", "off"),
        "lifecycle": ("", "off", "stages"),
        "task": ("", "forbidden", "optional", "required"),
        "on_disconnect": ("", "cancel", "detach"),
        "join": ("", "off", "same-arguments"),
    },
    BrowserSettings: {},
    Rules: {},
    Retain: {},
    QuotaSettings: {},
    OtelSettings: {},
    Isolation: {},
    Hook: {"on": ("before_call", "after_call", "on_progress", "on_question", "on_end")},
}


def fit(kind: type[T], given: object, path: tuple[str, ...]) -> T:
    """A table as this type; raises Misfit for the first key or value that is wrong."""
    if not isinstance(given, dict):
        raise Misfit(path, "must be a table")
    for key, value in given.items():
        if key not in kind.__struct_fields__:
            raise Misfit((*path, key), f"unknown{nearest(key, kind.__struct_fields__)}")
        fit_value(kind, key, value, path)
    made = msgspec.convert(given, kind, strict=False)
    if isinstance(made, Server):
        _check_server(made, path)
    if isinstance(made, Hook):
        _check_hook(made, path)
    if isinstance(made, Rules):
        _check_rules(made, path)
    return made


def fit_value(kind: type[Struct], key: str, value: object, path: tuple[str, ...] = ()) -> object:
    """One value as its type says; raises Misfit."""
    try:
        found: object = getattr(msgspec.convert({key: value}, kind, strict=False), key)
    except msgspec.ValidationError as error:
        what = str(error).partition(" - at `$.")[0]
        raise Misfit((*path, key, *_inner(kind, key, value)), what.lower()) from None
    offered = CHOICES.get(kind, {}).get(key)
    if offered is not None and found not in offered:
        words = ", ".join(word or '""' for word in offered)
        raise Misfit((*path, key), f"must be one of {words}, not {found!r}{nearest(str(found), offered)}")
    for inner, number in found.items() if isinstance(found, dict) else [("", found)]:
        if isinstance(number, int | float) and not number >= 0:
            raise Misfit((*path, key, *([inner] if inner else ())), "must not be negative")
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at what may have been meant."""
    found = get_close_matches(name, [one for one in known if one], n=3, cutoff=0.5)
    return f"; nearest: {', '.join(found)}" if found else ""


def _check_server(server: Server, path: tuple[str, ...]) -> None:
    given = [way for way in WAYS if getattr(server, way)]
    if len(given) > 1:
        raise Misfit((*path, given[1]), f"a server has exactly one of {', '.join(WAYS)}, not {len(given)}")
    if given and len(path) > 1 and path[-1] in BUILT_IN:  # a host's file may: it gets another name here
        told = f"{path[-1]} means {BUILT_IN[path[-1]]}; name the server otherwise"
        raise Misfit((*path, given[0]), told)
    if server.url and "${" not in server.url and not server.url.startswith(("http://", "https://")):
        raise Misfit((*path, "url"), f"must begin with http:// or https://, not {server.url!r}")
    if server.module and ":" not in server.module:
        raise Misfit((*path, "module"), 'must be "package.module:name"')
    for key, way in {"args": "command", "cwd": "command", "headers": "url", "auth": "url"}.items():
        if getattr(server, key) and not getattr(server, way):
            raise Misfit((*path, key), f"goes with {way}, which is missing")


def _check_hook(hook: Hook, path: tuple[str, ...]) -> None:
    if not hook.on:
        raise Misfit(path, "`on` is missing: before_call, after_call, on_progress, on_question or on_end")
    if bool(hook.command) == bool(hook.python):
        raise Misfit(path, "a hook has exactly one of command, python")
    if hook.required and hook.on != "before_call":
        raise Misfit((*path, "required"), "only a before_call hook can be required: others come too late")
    if hook.python and ":" not in hook.python:
        raise Misfit((*path, "python"), 'must be "package.module:function"')


def _check_rules(rules: Rules, path: tuple[str, ...]) -> None:
    for one in rules.values:
        try:
            re.compile(one)
        except re.error as error:
            raise Misfit((*path, "values"), f"{one!r} is no regular expression: {error}") from None


def _limits(table: Struct) -> dict[str, float]:
    return {name: value for name in LIMITS if (value := getattr(table, name)) is not None}


def _value(found: re.Match[str], environment: Mapping[str, str]) -> str:
    """An empty variable counts as missing where there is a default, as in a shell."""
    name, default = found[1], found[2]
    return environment[name] if default is None else environment.get(name) or default


def _inner(kind: type[Struct], key: str, value: object) -> tuple[str, ...]:
    """Which entry of a table does not fit."""
    for name, one in value.items() if isinstance(value, dict) else ():
        try:
            msgspec.convert({key: {name: one}}, kind, strict=False)
        except msgspec.ValidationError:
            return (str(name),)
    return ()
