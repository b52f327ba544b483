"""`InstallPlan` is all that changes for one host: it is planned as a whole, shown, and then written."""

from pathlib import Path

from msgspec import Struct

from afoot.config.client_limits import stored_client_limits
from afoot.errors import CallerError
from afoot.hosts import files, secrets_file
from afoot.hosts.known_hosts import Host
from afoot.hosts.records import InstallRecord, read_records, write_record


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
        secrets_file.update(self.added)
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
        secrets_file.update({}, self.removed)
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
        secrets_file.update({}, self.added)
        write_record(self.change.file, self.previous)
