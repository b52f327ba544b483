"""`plan_install` plans how afoot gets into a host's file, and how the host's servers move behind afoot.

`survey_hosts` says which hosts have afoot already. `adopt_server` turns a host's server into one of
afoot.toml: the same command or address, its variables translated, its secrets in a file of their own.
Nothing is written here.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from afoot.config import state_folder
from afoot.config.mcp_json import HTTP, as_server
from afoot.config.settings import Settings
from afoot.config.tables import BUILT_IN_SERVERS, InvalidSetting, Server, convert_table
from afoot.hosts import edit_toml, files, secrets
from afoot.hosts import plan as record
from afoot.hosts.document import (
    ENTRY_NAME,
    HostDocument,
    afoot_entry,
    can_start,
    entry_command,
    is_ours,
    path_warnings,
)
from afoot.hosts.files import FileError
from afoot.hosts.known_hosts import HOSTS, Host
from afoot.hosts.plan import (
    FileChange,
    InstallPlan,
    InstallRecord,
    InstallRequest,
    MovedServer,
    ServerMove,
    digest,
)

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


class HostCheck(Struct, frozen=True):
    """The state of one file of one host.

    `state`: absent (no file), missing (no entry), ours, gone (ours, but its program does not exist), foreign
    (an entry `afoot` that starts something else), unreadable.
    """

    host: str
    title: str
    scope: str
    file: Path
    state: str
    command: str = ""  # of the entry
    problem: str = ""  # of an unreadable file
    servers: list[str] = []  # the host's other servers


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
        name = secrets.free_name(self.name, key, value, self.known)
        self.known[name] = self.found[name] = value
        return secrets.reference(name)

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


def check_hosts(folder: Path | None = None) -> list[HostCheck]:
    """The host files that exist; project files are looked for in `folder`, by default the current one."""
    return [one for one in survey_hosts(folder) if one.state != "absent"]


def survey_hosts(folder: Path | None = None) -> list[HostCheck]:
    """Every host with its user's file, whether it exists or not, and the project files that exist."""
    found = list[HostCheck]()
    for host in HOSTS.values():
        found.append(_check_file(host.name, "user", host.user()))
        own = host.file("project", folder or Path.cwd())
        # In the home folder, a project's file may be the user's file.
        if own is not None and own.is_file() and own != host.user():
            found.append(_check_file(host.name, "project", own))
    return found


def _check_file(name: str, scope: str, path: Path) -> HostCheck:
    host = HOSTS[name]
    try:
        text = files.read(path)
        servers = HostDocument(host, path, text or "").servers()
    except FileError as error:
        return HostCheck(name, host.title, scope, path, "unreadable", problem=str(error))
    entry = servers.get(ENTRY_NAME)
    others = [one for one in servers if one != ENTRY_NAME]
    if text is None or entry is None:
        state = "absent" if text is None else "missing"
    elif is_ours(entry):
        state = "ours" if can_start(entry_command(entry)) else "gone"
    else:
        state = "foreign"
    return HostCheck(name, host.title, scope, path, state, entry_command(entry), servers=others)


def plan_install(request: InstallRequest, *, is_adopting: bool = False) -> InstallPlan:
    """Plan the installation; raises FileError if the host's file or afoot.toml cannot be read."""
    before = files.read(request.file)
    document = HostDocument(request.host, request.file, before or "")
    kept = record.read_record(request.file) or InstallRecord(request.host.name)
    kept.is_new_file |= before is None
    kept.is_new_table |= not document.has_table()
    wanted = afoot_entry(request.host, request.config)
    plan = InstallPlan(request.host, request.scope, FileChange(request.file, before, before), record=kept)
    plan.previous = record.read_record(request.file)
    plan.notes = path_warnings(str(wanted["command"]))
    if request.scope == "project":
        plan.notes.append(
            f"{request.file.name} is a project's: others who use it need afoot at the same path"
        )
    plan.notes += request.host.notes
    document = _with_entry(document, wanted)
    if is_adopting:
        document = _Adoption(plan, request).run(document)
    plan.change = FileChange(request.file, before, document.text)
    plan.limit_s = request.host.call_limit_s(document.servers().get(ENTRY_NAME))
    _record_way_back(plan)
    return plan


def config_file(named: Path | None) -> Path:
    """The user's afoot.toml, which gets the adopted servers; it may not exist yet."""
    if named is not None:
        return named.absolute()
    if variable := os.environ.get("AFOOT_CONFIG"):
        return Path(variable).absolute()
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "afoot" / "afoot.toml"


def _with_entry(document: HostDocument, wanted: dict[str, object]) -> HostDocument:
    found = document.servers().get(ENTRY_NAME)
    if found is None:
        return document.insert(ENTRY_NAME, wanted)
    if not is_ours(found) or not isinstance(found, dict):
        what = entry_command(found) or "something else"
        raise FileError(
            f"{document.file} has a server {ENTRY_NAME} that is not ours ({what}): rename it first"
        )
    env = found.get("env")
    known = {**env} if isinstance(env, dict) else {}
    values = {**wanted, "env": {**known, **_env_of(wanted)}} if _env_of(wanted) else wanted
    # A person may have chosen other options than ours.
    chosen = {"type", *(key for key in document.host.options if key in found)}
    changed = {key: value for key, value in values.items() if found.get(key) != value and key not in chosen}
    return document.updated(ENTRY_NAME, changed) if changed else document


def _env_of(wanted: dict[str, object]) -> dict[str, object]:
    env = wanted.get("env")
    return {str(key): value for key, value in env.items()} if isinstance(env, dict) else {}


def _record_way_back(plan: InstallPlan) -> None:
    """Record how to undo: the backup restores the file as long as nobody else has changed it."""
    kept = plan.record
    previous = plan.previous
    change = plan.change
    if kept is None:
        return
    if previous is None:
        kept.before = digest(change.before)
    elif previous.after != digest(change.before):
        kept.before = kept.backup = ""
        kept.is_new_file = change.before is None
    kept.after = digest(change.after)


class _Adoption:
    """Moves the servers of one host into afoot.toml, as a part of a plan."""

    def __init__(self, plan: InstallPlan, request: InstallRequest) -> None:
        self.plan = plan
        self.file = config_file(request.config)
        self.before = files.read(self.file)
        self.text = self.before or ""
        self.secrets = secrets.read_all()
        folder = request.folder.absolute() if request.scope == "project" else None
        self.origin = ServerOrigin(request.host, request.file.absolute(), folder)

    def run(self, document: HostDocument) -> HostDocument:
        """The host's file without the servers that moved into afoot.toml."""
        for name, value in document.servers().items():
            if name == ENTRY_NAME:
                continue
            if not document.can_move(name):
                self.plan.left[name] = "it is not written as a table of its own"
                continue
            try:
                document = self._move(document, name, value)
            except CannotAdopt as error:
                self.plan.left[name] = str(error)
        self.plan.config = FileChange(self.file, self.before, self.text, mode=0o600)
        if self.before is None and not self.text:
            self.plan.config = None
        return document

    def _move(self, document: HostDocument, name: str, value: object) -> HostDocument:
        tables = self._server_tables()
        server = free_server_name(name, self.origin.host, {})
        found = adopt_server(self.origin, server, value, self.secrets)
        is_new = server not in tables or not self._is_same(tables[server], found)
        if is_new:
            server = free_server_name(name, self.origin.host, tables)
            found = adopt_server(self.origin, server, value, self.secrets)
            self._add(server, found)
        document, taken = document.remove(name)
        is_ours = is_new or any(
            one.server == server for other in record.read_records().values() for one in other.moved
        )
        moved = MovedServer(name, taken, server, found.table, sorted(found.secrets), is_ours)
        assert self.plan.record is not None
        self.plan.record.moved.append(moved)
        self.plan.record.config = str(self.file)
        self.plan.record.is_new_config |= self.before is None
        self.plan.moved.append(ServerMove(name, server, moved.secrets, found.dropped))
        return document

    def _server_tables(self) -> dict[str, object]:
        try:
            found = edit_toml.read(self.text).get("servers", {})
        except edit_toml.TomlError as error:
            raise FileError(f"{self.file}, {error}; nothing was changed") from None
        return {str(key): one for key, one in found.items()} if isinstance(found, dict) else {}

    def _add(self, server: str, found: AdoptedServer) -> None:
        try:
            self.text = edit_toml.insert(self.text, ("servers",), server, found.table)
        except ValueError as error:
            raise FileError(f"{self.file}: {error}; nothing was changed") from None
        new = {key: value for key, value in found.secrets.items() if key not in self.secrets}
        self.plan.added |= new
        self.secrets |= new

    def _is_same(self, table: object, found: AdoptedServer) -> bool:
        """Whether afoot.toml has the same server already, adopted from another host."""
        known = {**self.secrets, **found.secrets}
        try:
            return _with_secrets_filled(
                convert_table(Server, table, ("servers",)), known
            ) == _with_secrets_filled(convert_table(Server, found.table, ("servers",)), known)
        except InvalidSetting:
            return False


def _with_secrets_filled(server: Server, known: dict[str, str]) -> object:
    return to_builtins(
        replace(
            server,
            env={key: secrets.fill(text, known) for key, text in server.env.items()},
            headers={key: secrets.fill(text, known) for key, text in server.headers.items()},
            client_secret=secrets.fill(server.client_secret, known),
        )
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


def free_server_name(server: str, host: Host, taken: Mapping[str, object]) -> str:
    """A free name for a server that is valid in tool names (SERVER__TOOL)."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", server).strip("-_") or host.name
    names = [plain, f"{plain}-{host.name}", *(f"{plain}-{host.name}-{number}" for number in range(2, 1000))]
    return next(name for name in names if name not in taken and name not in BUILT_IN_SERVERS)


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
    if any(secrets.REFERENCE_BEGINS in one for one in (text, translated)):
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
