"""Afoot into a host's file, and with `adopt` the host's servers behind it: what would change, planned."""

import os
from pathlib import Path

from msgspec import to_builtins
from msgspec.structs import replace

from afoot.hosts import file, record, secrets, toml_text
from afoot.hosts.adopt import Adopted, CannotAdopt, Origin, adopt, name_for
from afoot.hosts.document import Document
from afoot.hosts.entry import NAME, doubts, entry, is_ours, program
from afoot.hosts.file import FileError
from afoot.hosts.plan import Change, Move, Plan, Wish
from afoot.hosts.record import Moved, Record, digest
from afoot.tables import Misfit, Server, fit


def plan(wish: Wish, *, is_adopting: bool = False) -> Plan:
    """What would change; raises FileError if the host's file or afoot.toml cannot be read."""
    before = file.read(wish.file)
    document = Document(wish.host, wish.file, before or "")
    kept = record.read(wish.file) or Record(wish.host.name)
    kept.is_new_file |= before is None
    kept.is_new_table |= not document.has_table()
    wanted = entry(wish.host, wish.config)
    made = Plan(wish.host, wish.scope, Change(wish.file, before, before), record=kept)
    made.previous = record.read(wish.file)
    made.notes = doubts(str(wanted["command"]))
    if wish.scope == "project":
        made.notes.append(f"{wish.file.name} is a project's: others who use it need afoot at the same path")
    document = _entered(document, wanted)
    if is_adopting:
        document = _Adoption(made, wish).carried_out(document)
    made.change = Change(wish.file, before, document.text)
    _remember(made)
    return made


def config_file(named: Path | None) -> Path:
    """The user's afoot.toml, which gets the servers; it need not be there yet."""
    if named is not None:
        return named.absolute()
    if variable := os.environ.get("AFOOT_CONFIG"):
        return Path(variable).absolute()
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "afoot" / "afoot.toml"


def _entered(document: Document, wanted: dict[str, object]) -> Document:
    found = document.servers().get(NAME)
    if found is None:
        return document.put(NAME, wanted)
    if not is_ours(found) or not isinstance(found, dict):
        what = program(found) or "something else"
        raise FileError(f"{document.file} has a server {NAME} that is not ours ({what}): rename it first")
    env = found.get("env")
    known = {**env} if isinstance(env, dict) else {}
    values = {**wanted, "env": {**known, **_variables(wanted)}} if _variables(wanted) else wanted
    changed = {key: value for key, value in values.items() if found.get(key) != value and key != "type"}
    return document.updated(NAME, changed) if changed else document


def _variables(wanted: dict[str, object]) -> dict[str, object]:
    env = wanted.get("env")
    return {str(key): value for key, value in env.items()} if isinstance(env, dict) else {}


def _remember(made: Plan) -> None:
    """The way back: the copy of the first file, as long as nobody else wrote in between."""
    kept, previous, change = made.record, made.previous, made.change
    if kept is None:
        return
    if previous is None:
        kept.before = digest(change.before)
    elif previous.after != digest(change.before):
        kept.before = kept.backup = ""
        kept.is_new_file = change.before is None
    kept.after = digest(change.after)


class _Adoption:
    """The servers of one host on their way into afoot.toml."""

    def __init__(self, made: Plan, wish: Wish) -> None:
        self.made = made
        self.file = config_file(wish.config)
        self.before = file.read(self.file)
        self.text = self.before or ""
        self.secrets = secrets.every()
        folder = wish.folder.absolute() if wish.scope == "project" else None
        self.origin = Origin(wish.host, wish.file.absolute(), folder)

    def carried_out(self, document: Document) -> Document:
        """The host's file without the servers that afoot.toml has got."""
        for name, value in document.servers().items():
            if name == NAME:
                continue
            if not document.can_move(name):
                self.made.left[name] = "it is not written as a table of its own"
                continue
            try:
                document = self._moved(document, name, value)
            except CannotAdopt as error:
                self.made.left[name] = str(error)
        self.made.config = Change(self.file, self.before, self.text, mode=0o600)
        if self.before is None and not self.text:
            self.made.config = None
        return document

    def _moved(self, document: Document, name: str, value: object) -> Document:
        tables = self._tables()
        server = name_for(name, self.origin.host, {})
        found = adopt(self.origin, server, value, self.secrets)
        is_new = server not in tables or not self._is_same(tables[server], found)
        if is_new:
            server = name_for(name, self.origin.host, tables)
            found = adopt(self.origin, server, value, self.secrets)
            self._add(server, found)
        document, taken = document.take(name)
        is_ours = is_new or any(
            one.server == server for other in record.every().values() for one in other.moved
        )
        moved = Moved(name, taken, server, found.table, sorted(found.secrets), is_ours)
        assert self.made.record is not None
        self.made.record.moved.append(moved)
        self.made.record.config = str(self.file)
        self.made.record.is_new_config |= self.before is None
        self.made.moved.append(Move(name, server, moved.secrets, found.dropped))
        return document

    def _tables(self) -> dict[str, object]:
        try:
            found = toml_text.read(self.text).get("servers", {})
        except toml_text.TomlError as error:
            raise FileError(f"{self.file}, {error}; nothing was changed") from None
        return {str(key): one for key, one in found.items()} if isinstance(found, dict) else {}

    def _add(self, server: str, found: Adopted) -> None:
        try:
            self.text = toml_text.put(self.text, ("servers",), server, found.table)
        except ValueError as error:
            raise FileError(f"{self.file}: {error}; nothing was changed") from None
        new = {key: value for key, value in found.secrets.items() if key not in self.secrets}
        self.made.added |= new
        self.secrets |= new

    def _is_same(self, table: object, found: Adopted) -> bool:
        """Whether a server is there already, put there by another host."""
        known = {**self.secrets, **found.secrets}
        try:
            return _filled(fit(Server, table, ("servers",)), known) == _filled(
                fit(Server, found.table, ("servers",)), known
            )
        except Misfit:
            return False


def _filled(server: Server, known: dict[str, str]) -> object:
    return to_builtins(
        replace(
            server,
            env={key: secrets.filled(text, known) for key, text in server.env.items()},
            headers={key: secrets.filled(text, known) for key, text in server.headers.items()},
            client_secret=secrets.filled(server.client_secret, known),
        )
    )
