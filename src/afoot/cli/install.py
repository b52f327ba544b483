"""`afoot install`: the entry that a host needs to start afoot, put into its file or taken out again."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from afoot.cli.ending import USAGE, Stop

if TYPE_CHECKING:
    from afoot.hosts.check import Check
    from afoot.hosts.plan import Plan, Wish

STATES = {
    "absent": "no file yet",
    "missing": "without afoot",
    "ours": "has afoot",
    "gone": "has afoot, but {command} is not there",
    "foreign": "has an afoot that is not ours ({command})",
    "unreadable": "cannot be read",
}


@dataclass(frozen=True)
class Options:
    """What to do with the host's file."""

    adopt: Annotated[bool, Parameter(help="also move the host's own servers behind afoot")] = False
    undo: Annotated[bool, Parameter(help="take out what was put in, and put adopted servers back")] = False
    dry_run: Annotated[bool, Parameter(help="print what would change, and write nothing")] = False
    scope: Annotated[Literal["user", "project"], Parameter(help="whose file: user, or project")] = "user"
    config: Annotated[Path | None, Parameter(help="the afoot.toml for adopted servers")] = None
    json: Annotated[bool, Parameter(help="print one JSON object")] = False


def install(host: str = "", /, *, options: Annotated[Options, Parameter(name="*")] = Options()) -> int:  # noqa: B008
    """Let a host start afoot; without HOST, list them all.

    Args:
        host: claude-code, claude-desktop, cursor, vscode, windsurf, zed, codex or gemini
    """
    from afoot.hosts import install as putting
    from afoot.hosts import undo as taking
    from afoot.hosts.known import find
    from afoot.hosts.plan import Wish, put_in, take_out

    if not host:
        return _list(options)
    if options.undo and options.adopt:
        raise Stop(USAGE, "--undo also undoes --adopt; give only --undo")
    config = options.config.absolute() if options.config is not None else None
    wish = Wish(find(host), options.scope, Path.cwd(), config)
    plan = taking.plan(wish) if options.undo else putting.plan(wish, is_adopting=options.adopt)
    difference = _difference(plan, wish)
    if not options.dry_run:
        (take_out if options.undo else put_in)(plan)
    if options.json:
        _print_object(plan, difference, options)
    else:
        _print_words(plan, difference, options)
    return 0


def _difference(plan: "Plan", wish: "Wish") -> str:
    from afoot.hosts.difference import hidden, shown
    from afoot.hosts.document import Document

    texts = [text for text in (plan.change.before, plan.change.after) if text is not None]
    servers = [one for text in texts for one in Document(wish.host, wish.file, text).servers().values()]
    known = hidden(plan, servers)
    return "\n".join(shown(change, known) for change in plan.changes())


def _print_words(plan: "Plan", difference: str, options: Options) -> None:
    from afoot.observe.terminal import clean

    if difference:
        print(clean(difference, keep="\n\t"))
    for line in _words(plan, options):
        print(clean(line, keep="\n"), file=sys.stderr)


def _words(plan: "Plan", options: Options) -> list[str]:
    """What a person is told beside the difference."""
    lines = [_moved(one.name, one.server, options) for one in plan.moved]
    lines += [f"  {', '.join(one.dropped)} of {one.name} not taken over" for one in plan.moved if one.dropped]
    lines += [f"left {name}: {reason}" for name, reason in plan.left.items()]
    lines += [f"note: {note}" for note in plan.notes]
    lines += [f"copy of what was there: {path}" for path in plan.backups]
    if plan.added and not options.dry_run:
        from afoot.hosts.secrets import place

        lines.append(f"secrets moved to {place()}; the copies still hold them")
    if not plan.changes():
        return [*lines, f"nothing to do: {plan.change.file} stays as it is"]
    if options.dry_run:
        return [*lines, "dry run: nothing was written"]
    done = "out of" if options.undo else "in"
    return [*lines, f"afoot is {done} {plan.change.file}", f"next: {_next(plan, options)}"]


def _next(plan: "Plan", options: Options) -> str:
    """What the person has to do for the host to see it."""
    return (options.undo and plan.host.after_undo) or plan.host.restart


def _moved(name: str, server: str, options: Options) -> str:
    if options.undo:
        return f"put {name} back"
    return f"adopted {name}" if name == server else f"adopted {name} as {server}"


def _print_object(plan: "Plan", difference: str, options: Options) -> None:
    import msgspec

    told = {
        "host": plan.host.name,
        "scope": plan.scope,
        "file": str(plan.change.file),
        "changed": [str(change.file) for change in plan.changes()],
        "dry_run": options.dry_run,
        "put_back" if options.undo else "adopted": plan.moved,
        "left": plan.left,
        "notes": plan.notes,
        "copies": [str(path) for path in plan.backups],
        "restart": _next(plan, options) if plan.changes() else "",
        "difference": difference,
    }
    print(msgspec.json.encode(told).decode())


def _list(options: Options) -> int:
    from afoot.hosts.check import survey

    if options.adopt or options.undo:
        raise Stop(USAGE, "name a host; `afoot install` lists them")
    found = survey()
    if options.json:
        import msgspec

        print(msgspec.json.encode({"hosts": [_object(one) for one in found]}).decode())
        return 0
    for one in found:
        print(f"{one.host:<15} {_state(one)}\n{'':<15} {one.file}")
    return 0


def _state(one: "Check") -> str:
    words = STATES[one.state].format(command=one.command or "no command")
    others = f"; {len(one.servers)} other server{'s' * (len(one.servers) != 1)}" if one.servers else ""
    return f"{words}{others}{' (project)' if one.scope == 'project' else ''}"


def _object(one: "Check") -> dict[str, object]:
    return {key: getattr(one, key) for key in one.__struct_fields__} | {"file": str(one.file)}
