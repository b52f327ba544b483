"""`plan_install` plans how afoot gets into a host's file, and how the host's servers move behind afoot.

Nothing is written here.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import to_builtins
from msgspec.structs import replace

from afoot.config.tables import BUILT_IN_SERVERS, InvalidSetting, Server, convert_table
from afoot.hosts import edit_toml, files, records, secrets_file
from afoot.hosts.adopt_server import AdoptedServer, CannotAdopt, ServerOrigin, adopt_server
from afoot.hosts.document import (
    ENTRY_NAME,
    HostDocument,
    afoot_entry,
    entry_command,
    is_ours,
    path_warnings,
)
from afoot.hosts.files import FileError
from afoot.hosts.known_hosts import Host
from afoot.hosts.plan import FileChange, InstallPlan, InstallRequest, ServerMove
from afoot.hosts.records import InstallRecord, MovedServer, digest


def plan_install(request: InstallRequest, *, is_adopting: bool = False) -> InstallPlan:
    """Plan the installation; raises FileError if the host's file or afoot.toml cannot be read."""
    before = files.read(request.file)
    document = HostDocument(request.host, request.file, before or "")
    kept = records.read_record(request.file) or InstallRecord(request.host.name)
    kept.is_new_file |= before is None
    kept.is_new_table |= not document.has_table()
    wanted = afoot_entry(request.host, request.config)
    plan = InstallPlan(request.host, request.scope, FileChange(request.file, before, before), record=kept)
    plan.previous = records.read_record(request.file)
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
        self.secrets = secrets_file.read_all()
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
            one.server == server for other in records.read_records().values() for one in other.moved
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
            env={key: secrets_file.fill(text, known) for key, text in server.env.items()},
            headers={key: secrets_file.fill(text, known) for key, text in server.headers.items()},
            client_secret=secrets_file.fill(server.client_secret, known),
        )
    )


def free_server_name(server: str, host: Host, taken: Mapping[str, object]) -> str:
    """A free name for a server that is valid in tool names (SERVER__TOOL)."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", server).strip("-_") or host.name
    names = [plain, f"{plain}-{host.name}", *(f"{plain}-{host.name}-{number}" for number in range(2, 1000))]
    return next(name for name in names if name not in taken and name not in BUILT_IN_SERVERS)
