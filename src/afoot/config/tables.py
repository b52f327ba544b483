"""The tables of a config file as types; `convert_table` makes them and checks each value.

`missing_for_listening` says what `[access]` must hold before a gateway may listen off loopback (S2).
"""

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from afoot.config.sentinel_address import SENTINEL_SCHEME, read_sentinel_address
from afoot.core.redaction import RedactionRules

LIMITS = ("idle_s", "ceiling_s", "answer_s", "queue_s", "grace_s", "start_s")
HOOK_EVENTS = (
    "before_call", "before_question", "after_call", "on_progress", "on_question", "on_recovery", "on_end",
)  # fmt: skip
TRANSPORTS = ("command", "url", "module")  # how a server is reached: exactly one of them
LOCAL_SERVER = "local"  # the server whose tools are Python functions
BROWSER_SERVER = "browser"  # the server whose tools are in browser tabs
BUILT_IN_SERVERS = {LOCAL_SERVER: "your own functions", BROWSER_SERVER: "the tabs of browsers"}
ISOLATION = ("isolate", "cpu_s", "memory_bytes", "open_files", "processes")  # the keys for a single tool
LOOPBACK = ("127.0.0.1", "::1", "localhost")
EVERYWHERE = ("0.0.0.0", "::")

# How the address of a Redis or Valkey begins: one server, or the service of a Sentinel.
REDIS_SCHEMES = ("redis", "rediss", "unix", SENTINEL_SCHEME)
REDIS_ADDRESSES = (  # in words
    "redis://, rediss:// or unix:// (each with user, password, database and TLS options where it has them),"
    " or redis+sentinel:// without TLS"
)

_CLUSTER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://")
_LABEL = re.compile(r"[A-Za-z0-9_-]{0,64}")
_VARIABLE = re.compile(r"\$\{((?:secret:)?[A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

T = TypeVar("T", bound=Struct)


class InvalidSetting(Exception):
    """A key or a value is wrong; `path` says where it stands."""

    def __init__(self, path: tuple[str, ...], message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


class Server(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An MCP server: how it is reached, how far it is trusted, and its limits."""

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
    auth_hosts: list[str] = []  # where a login may go besides, although the host is in a private network
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
        """The limits that this table sets."""
        return _limits(self)

    def way(self) -> str:
        """The key that says how it is reached; empty for a table that only adds to a server."""
        return next((way for way in TRANSPORTS if getattr(self, way)), "")

    def expanded(self, environment: Mapping[str, str]) -> "Server":
        """Replace `${VAR}` and `${VAR:-default}`; raises KeyError with the name of a missing variable.

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
    """The settings of the tools that a name or a pattern means."""

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
    worker: str = ""  # the label of the workers that run them
    isolate: bool | None = None
    cpu_s: float | None = None
    memory_bytes: int | None = None
    open_files: int | None = None
    processes: int | None = None

    def limits(self) -> dict[str, float]:
        """The limits that this table sets."""
        return _limits(self)

    def isolation(self) -> dict[str, float]:
        """The limits of a child process that this table sets."""
        return {name: value for name in ISOLATION if (value := getattr(self, name)) is not None}


class BrowserSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Browser tabs as tools: how they are reached besides the extension, and which plugins run in them."""

    cdp: str = ""  # the address of a browser's debugging port
    plugins: list[str] = []  # folders
    link_grace_s: float = 5.0
    tools_per_origin: int = 64


TRACE_ID = "{trace_id}"  # in the address of a trace, in the place of its id


class OtelSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Telemetry by OpenTelemetry: whether there is any, its address, and the name of the service (V3)."""

    enabled: bool | None = None  # None: yes if an address is set, here or in the standard variables
    endpoint: str = ""
    headers: dict[str, str] = {}
    service_name: str = ""
    trace_url: str = ""  # of the page of a trace, with {trace_id} in the place of its id


class QuotaSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The quota of each caller that a name or a pattern means; 0: no limit (G2)."""

    calls: int = 0
    cpu_s: float = 0.0
    per_s: float = 60.0  # in which `calls` and `cpu_s` count
    concurrent: int = 0  # more at once are refused
    concurrency: int = 0  # more at once wait in the queue (C8)
    sessions: int = 0  # of the handshake era; the one idle longest makes room for more


class RetentionSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The limits for calls that are kept: by age, by count, by size; 0: none. The oldest go first (H6)."""

    days: float = 0.0
    calls: int = 0
    bytes: int = 2 * 1024**3


class ConnectionSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The table `[connections]`: the bounds that hold before it is known who a peer is (S5)."""

    head_bytes: int = 64 * 1024  # request line and fields
    head_fields: int = 100
    head_s: float = 10.0  # for the whole head, and before it for the TLS handshake
    body_rate_bytes: int = 1024  # a second, the least; 0: any
    unused_s: float = 5.0  # how long a connection is kept after a response
    per_peer: int = 2048  # connections of one address, on loopback of one user; 0: any number


class ClusterSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The table `[cluster]`: the Redis or Valkey by which several gateways and workers are one (D1)."""

    redis: str = ""  # its address; empty: this gateway is alone
    name: str = "afoot"  # of the cluster: several may share one server
    lease_s: float = 10.0  # a gateway that was not heard for so long may be dead, and others take its calls


class Hook(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A command or a Python function that is run when something happens to a call (K1)."""

    on: str = ""
    command: str | list[str] = ""
    python: str = ""  # "package.module:function"
    tools: str = "*"
    required: bool = False
    timeout_s: float = 5.0

    def words(self) -> list[str]:
        """The command, as a list."""
        return shlex.split(self.command) if isinstance(self.command, str) else list(self.command)


class IsolationSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Child processes for isolated tools. A limit of 0 is none."""

    enabled: bool = True  # False: isolated tools run in this process, as others do
    cpu_s: float = 300.0
    memory_bytes: int = 2 * 1024 * 1024 * 1024
    open_files: int = 1024
    processes: int = 64
    warm: int = 1  # children kept ready for each module of isolated tools
    nice: int = 10
    spare: int = 1  # processors that no child uses, if there are others: reports of all other calls need one


class AccessSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The table `[access]`: how callers prove who they are, and the public address and certificate."""

    required: bool = False  # a token is needed on `/mcp` also where it could be open
    local: str = "owner"  # whose programs on this machine need no token: the gateway's user's, or everyone's
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
    RedactionRules: {},
    RetentionSettings: {},
    QuotaSettings: {},
    OtelSettings: {},
    IsolationSettings: {},
    ClusterSettings: {},
    AccessSettings: {"local": ("owner", "everyone")},
    Hook: {"on": HOOK_EVENTS},
}


def is_label(text: str) -> bool:
    """Whether a text may be the label of workers; the empty one stands for none."""
    return _LABEL.fullmatch(text) is not None


def convert_table(kind: type[T], given: object, path: tuple[str, ...]) -> T:
    """Convert a table to this type; raises InvalidSetting for the first key or value that is wrong."""
    if not isinstance(given, dict):
        raise InvalidSetting(path, "must be a table")
    for key, value in given.items():
        if key not in kind.__struct_fields__:
            raise InvalidSetting((*path, key), f"unknown{nearest_hint(key, kind.__struct_fields__)}")
        convert_value(kind, key, value, path)
    made = msgspec.convert(given, kind, strict=False)
    if isinstance(made, Server):
        _check_server(made, path)
    if isinstance(made, Hook):
        _check_hook(made, path)
    if isinstance(made, RedactionRules):
        _check_rules(made, path)
    if isinstance(made, ConnectionSettings):
        _check_connections(made, path)
    if isinstance(made, ClusterSettings):
        _check_cluster(made, path)
    if isinstance(made, ToolSettings) and not is_label(made.worker):
        raise InvalidSetting((*path, "worker"), "must be at most 64 letters, digits, _ and -")
    return made


def convert_value(kind: type[Struct], key: str, value: object, path: tuple[str, ...] = ()) -> object:
    """Convert one value to the type of its key; raises InvalidSetting."""
    try:
        found: object = getattr(msgspec.convert({key: value}, kind, strict=False), key)
    except msgspec.ValidationError as error:
        what = str(error).partition(" - at `$.")[0]
        raise InvalidSetting((*path, key, *_inner(kind, key, value)), what.lower()) from None
    offered = CHOICES.get(kind, {}).get(key)
    if offered is not None and found not in offered:
        words = ", ".join(word or '""' for word in offered)
        raise InvalidSetting(
            (*path, key), f"must be one of {words}, not {found!r}{nearest_hint(str(found), offered)}"
        )
    for inner, number in found.items() if isinstance(found, dict) else [("", found)]:
        if isinstance(number, int | float) and not number >= 0:
            raise InvalidSetting((*path, key, *([inner] if inner else ())), "must not be negative")
    return found


def nearest_hint(name: str, known: Iterable[str]) -> str:
    """A hint at the names that may have been meant."""
    found = get_close_matches(name, [one for one in known if one], n=3, cutoff=0.5)
    return f"; nearest: {', '.join(found)}" if found else ""


def access_problem(access: AccessSettings) -> str:
    """The error of the table, without regard to other settings; empty if there is none."""
    if bool(access.tls_cert) != bool(access.tls_key):
        return "access.tls_cert and access.tls_key: one needs the other"
    for name in ("public_url", "issuer", "jwks_url"):
        if (url := getattr(access, name)) and not is_secure_url(url):
            return (
                f"access.{name}: must be an https:// address, or an http:// one of this machine, not {url!r}"
            )
    if (access.audience or access.jwks_url) and not access.issuer:
        return "access.issuer: is needed where access.audience or access.jwks_url is set"
    return ""


def missing_for_listening(host: str, access: AccessSettings, is_known: bool, hosts: Sequence[str]) -> str:
    """The settings that are missing before it may listen at this host; empty if none are.

    `is_known`: there are tokens that callers can prove themselves with.
    """
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


def requires_token(host: str, access: AccessSettings, mcp_token: str) -> bool:
    """Whether `/mcp` answers only callers with a valid token."""
    return bool(access.required or mcp_token or access.public_url or host not in LOOPBACK)


def expand_home(path: str) -> str:
    """Replace a leading `~` by the home folder; for a user who does not exist, it stays as in a shell."""
    try:
        return os.path.expanduser(path)
    except ValueError:  # a character that no name of a user has
        return path


def is_secure_url(url: str) -> bool:
    """Whether nobody in between can change what an address sends: it has TLS, or is on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK))


def _check_server(server: Server, path: tuple[str, ...]) -> None:
    given = [way for way in TRANSPORTS if getattr(server, way)]
    if len(given) > 1:
        raise InvalidSetting(
            (*path, given[1]), f"a server has exactly one of {', '.join(TRANSPORTS)}, not {len(given)}"
        )
    if (
        given and len(path) > 1 and path[-1] in BUILT_IN_SERVERS
    ):  # a host's file may: it gets another name here
        told = f"{path[-1]} means {BUILT_IN_SERVERS[path[-1]]}; name the server otherwise"
        raise InvalidSetting((*path, given[0]), told)
    if server.url and "${" not in server.url and not server.url.startswith(("http://", "https://")):
        raise InvalidSetting((*path, "url"), f"must begin with http:// or https://, not {server.url!r}")
    if server.module and ":" not in server.module and not server.module.endswith(".py"):
        raise InvalidSetting((*path, "module"), 'must be "file.py", "file.py:name" or "package.module:name"')
    for key, way in {"args": "command", "cwd": "command", "headers": "url", "auth": "url"}.items():
        if getattr(server, key) and not getattr(server, way):
            raise InvalidSetting((*path, key), f"goes with {way}, which is missing")


def _check_connections(made: ConnectionSettings, path: tuple[str, ...]) -> None:
    """Check that no bound is 0: there would be no bound, or no request could come in."""
    for key in ("head_bytes", "head_fields", "head_s", "unused_s"):
        if not getattr(made, key):
            raise InvalidSetting((*path, key), "must be more than 0")


def _check_cluster(made: ClusterSettings, path: tuple[str, ...]) -> None:
    scheme = _SCHEME.match(made.redis)
    if made.redis and (scheme is None or scheme[1] not in REDIS_SCHEMES):
        told = "the address has no scheme" if scheme is None else f"{scheme[1]}:// is not supported"
        raise InvalidSetting((*path, "redis"), f"{told}; use {REDIS_ADDRESSES}")
    if made.redis.startswith(f"{SENTINEL_SCHEME}://"):
        try:
            read_sentinel_address(made.redis)
        except ValueError as error:
            raise InvalidSetting((*path, "redis"), f"{error}; use {REDIS_ADDRESSES}") from None
    if not made.lease_s:
        raise InvalidSetting((*path, "lease_s"), "must be more than 0")
    if not _CLUSTER_NAME.fullmatch(made.name):
        raise InvalidSetting((*path, "name"), "must be 1 to 64 of A-Z a-z 0-9 _ . -")


def _check_hook(hook: Hook, path: tuple[str, ...]) -> None:
    if not hook.on:
        raise InvalidSetting(path, f"`on` is missing: one of {', '.join(HOOK_EVENTS)}")
    if bool(hook.command) == bool(hook.python):
        raise InvalidSetting(path, "a hook has exactly one of command, python")
    if hook.required and hook.on != "before_call":
        raise InvalidSetting(
            (*path, "required"), "only a before_call hook can be required: others come too late"
        )
    if hook.python and ":" not in hook.python:
        raise InvalidSetting((*path, "python"), 'must be "package.module:function"')


def _check_rules(rules: RedactionRules, path: tuple[str, ...]) -> None:
    for one in rules.values:
        try:
            re.compile(one)
        except re.error as error:
            raise InvalidSetting((*path, "values"), f"{one!r} is no regular expression: {error}") from None


def _limits(table: Struct) -> dict[str, float]:
    return {name: value for name in LIMITS if (value := getattr(table, name)) is not None}


def _value(found: re.Match[str], environment: Mapping[str, str]) -> str:
    """An empty variable counts as missing where there is a default, as in a shell."""
    name, default = found[1], found[2]
    return environment[name] if default is None else environment.get(name) or default


def _inner(kind: type[Struct], key: str, value: object) -> tuple[str, ...]:
    """The entry of a table that does not fit."""
    for name, one in value.items() if isinstance(value, dict) else ():
        try:
            msgspec.convert({key: {name: one}}, kind, strict=False)
        except msgspec.ValidationError:
            return (str(name),)
    return ()
