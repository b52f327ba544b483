"""Afoot out of a host's file again, and adopted servers back into it: what would change, planned."""

from pathlib import Path

from afoot.hosts import file, record, secrets, toml_text
from afoot.hosts.document import EMPTY, Document
from afoot.hosts.entry import NAME, is_ours, program
from afoot.hosts.file import FileError
from afoot.hosts.json_text import EditError
from afoot.hosts.plan import Change, Move, Plan, Wish
from afoot.hosts.record import Moved, Record, digest


def plan(wish: Wish) -> Plan:
    """What would change; raises FileError if a file cannot be read."""
    before = file.read(wish.file)
    done = record.read(wish.file)
    made = Plan(wish.host, wish.scope, Change(wish.file, before, before), previous=done)
    if before is None:
        made.notes.append(f"{wish.file} is not there; nothing to undo")
        made.previous = None
    elif done is not None and done.after == digest(before) and _is_way_back(done):
        made.change = Change(wish.file, before, _original(done))
        made.moved = [Move(one.name, one.server) for one in done.moved]
    else:
        document = Document(wish.host, wish.file, before)
        made.change = Change(wish.file, before, _restored(made, document, done))
    if done is not None and before is not None:
        _clear_config(made, done)
    return made


def _is_way_back(done: Record) -> bool:
    if done.is_new_file:
        return not done.moved
    return bool(done.before) and bool(done.backup) and digest(_text(Path(done.backup))) == done.before


def _original(done: Record) -> str | None:
    return None if done.is_new_file else _text(Path(done.backup))


def _text(path: Path) -> str | None:
    try:
        return file.read(path)
    except FileError:
        return None


def _restored(made: Plan, document: Document, done: Record | None) -> str | None:
    """The text without what was added, and with what was taken out; other edits stay."""
    found = document.servers().get(NAME)
    if found is None:
        made.notes.append(f"there is no entry {NAME} in {document.file}")
    elif is_ours(found):
        document, _ = document.take(NAME)
    else:
        what = program(found) or "something else"
        made.left[NAME] = f"it is not ours ({what})"
    if done is None:
        made.notes.append("there is no record of adopted servers: only the entry itself can be undone")
        return document.text
    for moved in reversed(done.moved):
        if moved.name in document.servers():
            made.left[moved.name] = "there is one of that name again, which stays as it is"
            continue
        document = document.put_back(moved.name, moved.taken)
        made.moved.insert(0, Move(moved.name, moved.server))
    if done.is_new_table:
        document = document.without_table()
    is_empty = document.text.strip() in ("", EMPTY.strip())
    return None if done.is_new_file and is_empty else document.text


def _clear_config(made: Plan, done: Record) -> None:
    """Take out of afoot.toml what came from this host, unless it was changed or another host has it too."""
    if not done.moved:
        return
    path = Path(done.config)
    before = file.read(path)
    text = before or ""
    others = {
        one.server
        for key, other in record.every().items()
        if key != str(made.change.file)
        for one in other.moved
    }
    for moved in reversed(done.moved):
        if moved.is_ours and moved.server not in others:
            text = _without(made, text, moved, path)
    named = {name for moved in done.moved for name in moved.secrets}
    made.removed = sorted(name for name in named if secrets.reference(name) not in text)
    is_ours = before is None or (done.is_new_config and not text.strip())
    made.config = Change(path, before, None if is_ours else text)


def _without(made: Plan, text: str, moved: Moved, path: Path) -> str:
    try:
        found = toml_text.read(text).get("servers", {})
        table = found.get(moved.server) if isinstance(found, dict) else None
        if table is None or table == moved.table:
            return text if table is None else toml_text.take(text, ("servers",), moved.server).text
    except toml_text.TomlError as error:
        raise FileError(f"{path}, {error}; nothing was changed") from None
    except EditError:
        pass
    made.left[f"servers.{moved.server}"] = f"it was changed in {path}; remove it there"
    return text
