"""`plan_undo` plans how afoot is removed from a host's file, and how adopted servers are restored there.

If nobody has changed the file since, its backup is restored. Otherwise only our own changes are undone,
by the record.
"""

from pathlib import Path

from afoot.hosts import edit_toml, files, records, secrets_file
from afoot.hosts.document import EMPTY_JSON, ENTRY_NAME, HostDocument, entry_command, is_ours
from afoot.hosts.edit_json import EditError
from afoot.hosts.files import FileError
from afoot.hosts.plan import FileChange, InstallPlan, InstallRequest, ServerMove
from afoot.hosts.records import InstallRecord, MovedServer, digest


def plan_undo(request: InstallRequest) -> InstallPlan:
    """Plan the undo; raises FileError if a file cannot be read."""
    before = files.read(request.file)
    recorded = records.read_record(request.file)
    plan = InstallPlan(
        request.host, request.scope, FileChange(request.file, before, before), previous=recorded
    )
    if before is None:
        plan.notes.append(f"{request.file} is not there; nothing to undo")
        plan.previous = None
    elif recorded is not None and recorded.after == digest(before) and _can_restore_backup(recorded):
        plan.change = FileChange(request.file, before, _original_text(recorded))
        plan.moved = [ServerMove(one.name, one.server) for one in recorded.moved]
    else:
        document = HostDocument(request.host, request.file, before)
        plan.change = FileChange(request.file, before, _restored_text(plan, document, recorded))
    if recorded is not None and before is not None:
        _plan_config(plan, recorded)
    return plan


def _can_restore_backup(recorded: InstallRecord) -> bool:
    if recorded.is_new_file:
        return not recorded.moved
    return (
        bool(recorded.before)
        and bool(recorded.backup)
        and digest(_read_or_none(Path(recorded.backup))) == recorded.before
    )


def _original_text(recorded: InstallRecord) -> str | None:
    return None if recorded.is_new_file else _read_or_none(Path(recorded.backup))


def _read_or_none(path: Path) -> str | None:
    try:
        return files.read(path)
    except FileError:
        return None


def _restored_text(plan: InstallPlan, document: HostDocument, recorded: InstallRecord | None) -> str | None:
    """The text without our entry and with the adopted servers; edits by others stay."""
    found = document.servers().get(ENTRY_NAME)
    if found is None:
        plan.notes.append(f"there is no entry {ENTRY_NAME} in {document.file}")
    elif is_ours(found):
        document, _ = document.remove(ENTRY_NAME)
    else:
        what = entry_command(found) or "something else"
        plan.left[ENTRY_NAME] = f"it is not ours ({what})"
    if recorded is None:
        plan.notes.append("there is no record of adopted servers: only the entry itself can be undone")
        return document.text
    for moved in reversed(recorded.moved):
        if moved.name in document.servers():
            plan.left[moved.name] = "there is one of that name again, which stays as it is"
            continue
        document = document.reinsert(moved.name, moved.taken)
        plan.moved.insert(0, ServerMove(moved.name, moved.server))
    if recorded.is_new_table:
        document = document.without_table()
    is_empty = document.text.strip() in ("", EMPTY_JSON.strip())
    return None if recorded.is_new_file and is_empty else document.text


def _plan_config(plan: InstallPlan, recorded: InstallRecord) -> None:
    """Remove this host's servers from afoot.toml, unless they were changed or came from another host too."""
    if not recorded.moved:
        return
    path = Path(recorded.config)
    before = files.read(path)
    text = before or ""
    others = {
        one.server
        for key, other in records.read_records().items()
        if key != str(plan.change.file)
        for one in other.moved
    }
    for moved in reversed(recorded.moved):
        if moved.is_ours and moved.server not in others:
            text = _without_server(plan, text, moved, path)
    named = {name for moved in recorded.moved for name in moved.secrets}
    plan.removed = sorted(name for name in named if secrets_file.reference(name) not in text)
    is_removed = before is None or (recorded.is_new_config and not text.strip())
    plan.config = FileChange(path, before, None if is_removed else text)


def _without_server(plan: InstallPlan, text: str, moved: MovedServer, path: Path) -> str:
    try:
        found = edit_toml.read(text).get("servers", {})
        table = found.get(moved.server) if isinstance(found, dict) else None
        if table is None or table == moved.table:
            return text if table is None else edit_toml.remove(text, ("servers",), moved.server).text
    except edit_toml.TomlError as error:
        raise FileError(f"{path}, {error}; nothing was changed") from None
    except EditError:
        pass
    plan.left[f"servers.{moved.server}"] = f"it was changed in {path}; remove it there"
    return text
