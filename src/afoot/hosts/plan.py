"""What is going to be done to files: planned whole, shown, and then written or not."""

from pathlib import Path

from msgspec import Struct

from afoot.errors import CallerError
from afoot.hosts import file, record, secrets
from afoot.hosts.known import Host
from afoot.hosts.record import Record


class Change(Struct, frozen=True):
    """A file's text before and after; None where there is no file."""

    file: Path
    before: str | None
    after: str | None
    mode: int = 0o644

    @property
    def is_one(self) -> bool:
        """Whether anything changes."""
        return self.before != self.after


class Move(Struct, frozen=True):
    """A server that goes behind afoot or comes back; what of it had no place there."""

    name: str
    server: str
    secrets: list[str] = []
    dropped: list[str] = []


class Plan(Struct):
    """All that is going to be done for one host, and all that a person should know about it."""

    host: Host
    scope: str
    change: Change  # the host's file
    config: Change | None = None  # afoot.toml
    record: Record | None = None
    previous: Record | None = None
    added: dict[str, str] = {}  # secrets
    removed: list[str] = []
    moved: list[Move] = []  # adopted, or put back
    left: dict[str, str] = {}  # servers that stay where they are, and why
    notes: list[str] = []
    backups: list[Path] = []

    def changes(self) -> list[Change]:
        """The files that change."""
        return [one for one in (self.change, self.config) if one is not None and one.is_one]


class Wish(Struct, frozen=True):
    """What a person asked for: which file of which host, and which afoot.toml."""

    host: Host
    scope: str
    folder: Path
    config: Path | None = None

    @property
    def file(self) -> Path:
        """The host's file; raises CallerError if it has none for this scope."""
        found = self.host.file(self.scope, self.folder)
        if found is None:
            raise CallerError(f"{self.host.title} has no file for a project; leave out --scope project")
        return found


def put_in(plan: Plan) -> None:
    """Write what was planned, the host's file last: until then all its servers are where they were."""
    if not plan.changes():
        return
    secrets.change(plan.added)
    record.write(plan.change.file, plan.record)
    try:
        if plan.config is not None and plan.config.is_one:
            _write(plan, plan.config)
        backup = _write(plan, plan.change) if plan.change.is_one else None
    except file.FileError:
        _take_back(plan)
        raise
    if plan.record is not None and backup is not None and not plan.record.backup:
        plan.record.backup = str(backup)
        record.write(plan.change.file, plan.record)


def take_out(plan: Plan) -> None:
    """Write what was planned, the host's file first: from then on all its servers are where they were."""
    if plan.change.is_one:
        _write(plan, plan.change)
    if plan.config is not None and plan.config.is_one:
        _write(plan, plan.config)
    secrets.change({}, plan.removed)
    if plan.previous is not None:
        record.write(plan.change.file, None)


def _write(plan: Plan, change: Change) -> Path | None:
    if change.after is None:
        backup = file.remove(change.file, change.before or "")
    else:
        backup = file.replace(change.file, change.before, change.after, mode=change.mode)
    plan.backups += [backup] if backup is not None else []
    return backup


def _take_back(plan: Plan) -> None:
    """A file could not be written: what was written before it is undone."""
    config = plan.config
    if config is not None and config.after is not None and file.read(config.file) == config.after:
        if config.before is None:
            file.remove(config.file, config.after)
        elif config.is_one:
            file.replace(config.file, config.after, config.before)
    secrets.change({}, plan.added)
    record.write(plan.change.file, plan.previous)
