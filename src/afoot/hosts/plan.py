"""`InstallPlan` is all that changes for one host: it is planned as a whole, shown, and then written.

`InstallRecord` says what was done to a host's file, so that it can be undone after other edits; the
records are in hosts.json in the state folder. `masked_diff` shows a change to a person, without secrets.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Set
from difflib import unified_diff
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from afoot.config.client_limits import stored_client_limits
from afoot.config.settings import home
from afoot.core.redaction import Redactor
from afoot.errors import CallerError
from afoot.hosts import files, secrets
from afoot.hosts.edit_json import RemovedText
from afoot.hosts.known_hosts import Host

MASK = "***"
MAX_LINE_CHARS = 200
MIN_SECRET_CHARS = 8  # a secret of this length is masked anywhere, a shorter one only as a whole value
_NAMED_SECRET = re.compile(
    r"""(?<!\$\{)((?:token(?!_env_var)|secret|passw(?:or)?d|api[-_]?key|authorization|credential)[\w.-]*["']?\s*[:=]\s*["']?)"""
    r"""(?!(?:Bearer |Basic )?\$)((?:Bearer |Basic )?)[^"'\s,}&]+""",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(r"(://[^\s:/@\"']+:)[^\s@/\"']+(?=@)")
OWN_VARIABLES = ("AFOOT_HOME", "AFOOT_CONFIG")  # of our entry: folders and files, which are no secrets
_SECRET_TABLES = ("env", "headers", "http_headers", "oauth", "auth")


class FileChange(Struct, frozen=True):
    """The text of a file before and after; None: no file."""

    file: Path
    before: str | None
    after: str | None
    mode: int = 0o644

    @property
    def is_change(self) -> bool:
        """Whether the text changes."""
        return self.before != self.after


class ServerMove(Struct, frozen=True):
    """A server that is adopted or restored; `dropped` are the keys that afoot.toml cannot have."""

    name: str
    server: str
    secrets: list[str] = []
    dropped: list[str] = []


class MovedServer(Struct):
    """A server that was moved behind afoot: its text in the host's file, and its table in afoot.toml."""

    name: str
    taken: RemovedText
    server: str
    table: dict[str, object]
    secrets: list[str] = []
    is_ours: bool = True  # False: afoot.toml had it before any host was adopted


class InstallRecord(Struct):
    """The changes that were made to one host's file."""

    host: str
    config: str = ""  # the afoot.toml that got its servers
    is_new_config: bool = False
    is_new_file: bool = False
    is_new_table: bool = False
    moved: list[MovedServer] = []
    # While the file still has the digest `after`, `backup` (with the digest `before`) undoes everything.
    backup: str = ""
    before: str = ""
    after: str = ""


class InstallRequest(Struct, frozen=True):
    """The person's request: the host, the scope, and the afoot.toml."""

    host: Host
    scope: str
    folder: Path
    config: Path | None = None

    @property
    def file(self) -> Path:
        """The host's file; raises CallerError if the host has none for this scope.

        A project may come from a stranger, and a link in it may lead to a file that is not the project's.
        """
        found = self.host.file(self.scope, self.folder)
        if found is None:
            raise CallerError(f"{self.host.title} has no file for a project; leave out --scope project")
        if self.scope == "project" and not found.resolve().is_relative_to(self.folder.resolve()):
            raise CallerError(f"{found} is a link that leads out of the project; nothing was changed")
        return found


class InstallPlan(Struct):
    """All changes for one host, and all that a person should know about them."""

    host: Host
    scope: str
    change: FileChange  # the host's file
    config: FileChange | None = None  # afoot.toml
    record: InstallRecord | None = None
    previous: InstallRecord | None = None
    added: dict[str, str] = {}  # secrets
    removed: list[str] = []
    moved: list[ServerMove] = []  # adopted or restored
    left: dict[str, str] = {}  # the reason for each server that stays with its host
    notes: list[str] = []
    backups: list[Path] = []
    limit_s: float | None = None  # how long the host waits for a call from now on

    def changes(self) -> list[FileChange]:
        """The files that change."""
        return [one for one in (self.change, self.config) if one is not None and one.is_change]

    def apply_install(self) -> None:
        """Write an installation. The host's file comes last: until then all its servers work as before."""
        if self.changes():
            self._write_install()
        if self.limit_s is not None:  # also where a person has changed it since
            stored_client_limits().learn_from_install(self.host.client, self.limit_s)

    def _write_install(self) -> None:
        secrets.update(self.added)
        write_record(self.change.file, self.record)
        try:
            if self.config is not None and self.config.is_change:
                self._write_change(self.config)
            backup = self._write_change(self.change) if self.change.is_change else None
        except files.FileError:
            self._roll_back()
            raise
        if self.record is not None and backup is not None and not self.record.backup:
            self.record.backup = str(backup)
            write_record(self.change.file, self.record)

    def apply_undo(self) -> None:
        """Write an undo. The host's file comes first: from then on all its servers work as before."""
        if self.change.is_change:
            self._write_change(self.change)
        if self.config is not None and self.config.is_change:
            self._write_change(self.config)
        secrets.update({}, self.removed)
        if self.previous is not None:
            write_record(self.change.file, None)
        if self.host.client and not any(one.host == self.host.name for one in read_records().values()):
            stored_client_limits().forget_install(self.host.client)

    def _write_change(self, change: FileChange) -> Path | None:
        if change.after is None:
            backup = files.remove(change.file, change.before or "")
        else:
            backup = files.replace(change.file, change.before, change.after, mode=change.mode)
        self.backups += [backup] if backup is not None else []
        return backup

    def _roll_back(self) -> None:
        """Undo the earlier writes after a file could not be written."""
        config = self.config
        if config is not None and config.after is not None and files.read(config.file) == config.after:
            if config.before is None:
                files.remove(config.file, config.after)
            elif config.is_change:
                files.replace(config.file, config.after, config.before)
        secrets.update({}, self.added)
        write_record(self.change.file, self.previous)


def read_record(path: Path) -> InstallRecord | None:
    """The record of a host's file, if there is one."""
    return read_records().get(str(path))


def read_records() -> dict[str, InstallRecord]:
    """All records, by file; raises FileError if hosts.json is damaged."""
    try:
        return msgspec.json.decode(files.read(_records_file()) or "{}", type=dict[str, InstallRecord])
    except msgspec.DecodeError as error:
        # It may contain the only text of a moved server, so it is never overwritten.
        raise files.FileError(f"{_records_file()}: {error}; mend it or move it away") from None


def write_record(path: Path, record: InstallRecord | None) -> None:
    """Write the record of a file; None deletes it."""
    before, known = files.read(_records_file()), read_records()
    kept = {key: one for key, one in known.items() if key != str(path)}
    if record is not None:
        kept[str(path)] = record
    after = msgspec.json.format(msgspec.json.encode(kept)).decode() + "\n"
    if after != before:
        _records_file().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.replace(_records_file(), before, after, mode=0o600, keeps_backup=False)


def digest(text: str | None) -> str:
    """The SHA-256 of a text; empty for no text."""
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def masked_diff(change: FileChange, hidden: Iterable[str]) -> str:
    """A change as a unified diff; values in `hidden` and values of secret-like keys are masked."""
    name = str(change.file)
    lines = unified_diff(
        _split_lines(change.before), _split_lines(change.after),
        name if change.before is not None else "/dev/null", name if change.after is not None else "/dev/null",
        lineterm="",
    )  # fmt: skip
    known = sorted({one for one in hidden if one}, key=len, reverse=True)
    return "\n".join(_cut_line(_mask_line(line, known)) for line in lines)


def secret_values(plan: InstallPlan, servers: Iterable[object]) -> set[str]:
    """All values that must not be shown: variables and headers of servers, and our own secrets."""
    found = {*secrets.read_all().values(), *plan.added.values()}
    for server in servers:
        inside = [server.get(key) for key in _SECRET_TABLES] if isinstance(server, dict) else []
        tables = [inner for inner in inside if isinstance(inner, dict)]
        found |= {str(one) for table in tables for key, one in table.items() if key not in OWN_VARIABLES}
        found |= _secrets_in_command(server) if isinstance(server, dict) else set()
    return {one for one in found if not re.fullmatch(r"\$\{[^}]*\}", one)}


def _secrets_in_command(server: dict[str, Any]) -> Set[str]:
    """The secrets in the words and the address of a server's entry."""
    redactor = Redactor()
    words = [server.get("command"), server.get("args"), server.get("url")]
    flat = [one for word in words for one in (word if isinstance(word, list) else [word])]
    redactor.add_words([one for one in flat if isinstance(one, str)])
    return redactor.known


def _records_file() -> Path:
    return home() / "hosts.json"


def _split_lines(text: str | None) -> list[str]:
    return [line.removesuffix("\r") for line in (text or "").removesuffix("\n").split("\n")] if text else []


def _mask_line(line: str, known: list[str]) -> str:
    if line.startswith(("---", "+++", "@@")):
        return line
    for value in known:
        for form in {json.dumps(value), json.dumps(value, ensure_ascii=False), f"'{value}'"}:
            line = line.replace(form, f'"{MASK}"')
        if len(value) >= MIN_SECRET_CHARS:
            line = line.replace(value, MASK)
    line = _URL_PASSWORD.sub(rf"\1{MASK}", line)
    return _NAMED_SECRET.sub(lambda match: f"{match[1]}{match[2]}{MASK}", line)


def _cut_line(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else f"{line[: MAX_LINE_CHARS - 1]}…"
