"""`afoot install` adds afoot to a host, or removes it."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from afoot.cli.client import USAGE, CliError

if TYPE_CHECKING:
    from afoot.hosts.plan import InstallPlan, InstallRequest
    from afoot.hosts.survey import HostCheck


STATE_WORDS = {
    "absent": "no file yet",
    "missing": "without afoot",
    "ours": "has afoot",
    "gone": "has afoot, but {command} is not there",
    "foreign": "has an afoot that is not ours ({command})",
    "unreadable": "cannot be read",
}


@dataclass(frozen=True)
class InstallOptions:
    """The options of `afoot install`."""

    adopt: Annotated[bool, Parameter(help="move the host's own servers behind afoot, too")] = False
    undo: Annotated[bool, Parameter(help="remove afoot from the host, and restore adopted servers")] = False
    dry_run: Annotated[bool, Parameter(help="print what would change and write nothing")] = False
    scope: Annotated[
        Literal["user", "project"], Parameter(help="which file to change: the user's or the project's")
    ] = "user"
    config: Annotated[Path | None, Parameter(help="the afoot.toml for adopted servers")] = None
    json: Annotated[bool, Parameter(help="print one JSON object")] = False


def install(
    host: str = "",
    /,
    *,
    options: Annotated[InstallOptions, Parameter(name="*")] = InstallOptions(),  # noqa: B008
) -> int:
    """Add afoot to a host. Without HOST, list all hosts.

    Args:
        host: claude-code, claude-desktop, cursor, vscode, windsurf, zed, codex, gemini, qwen or cline
    """
    from afoot.hosts.install import plan_install
    from afoot.hosts.known_hosts import find_host
    from afoot.hosts.plan import InstallRequest
    from afoot.hosts.undo import plan_undo

    if not host:
        return _list_hosts(options)
    if options.undo and options.adopt:
        raise CliError(USAGE, "--undo also undoes --adopt; give only --undo")
    config = options.config.absolute() if options.config is not None else None
    request = InstallRequest(find_host(host), options.scope, Path.cwd(), config)
    plan = plan_undo(request) if options.undo else plan_install(request, is_adopting=options.adopt)
    difference = _difference(plan, request)
    if not options.dry_run:
        if options.undo:
            plan.apply_undo()
        else:
            plan.apply_install()
    if options.json:
        _print_json(plan, difference, options)
    else:
        _print_text(plan, difference, options)
    return 0


def _difference(plan: "InstallPlan", request: "InstallRequest") -> str:
    from afoot.hosts.document import HostDocument
    from afoot.hosts.masked_diff import masked_diff, secret_values

    texts = [text for text in (plan.change.before, plan.change.after) if text is not None]
    servers = [
        one for text in texts for one in HostDocument(request.host, request.file, text).servers().values()
    ]
    known = secret_values(plan, servers)
    return "\n".join(masked_diff(change, known) for change in plan.changes())


def _print_text(plan: "InstallPlan", difference: str, options: InstallOptions) -> None:
    from afoot.cli.terminal.text import clean

    if difference:
        print(clean(difference, keep="\n\t"))
    for line in _result_lines(plan, options):
        print(clean(line, keep="\n"), file=sys.stderr)


def _result_lines(plan: "InstallPlan", options: InstallOptions) -> list[str]:
    """The lines for a person after the difference."""
    lines = [_moved_line(one.name, one.server, options) for one in plan.moved]
    lines += [f"  {', '.join(one.dropped)} of {one.name} not taken over" for one in plan.moved if one.dropped]
    lines += [f"left {name}: {reason}" for name, reason in plan.left.items()]
    lines += [f"note: {note}" for note in plan.notes]
    lines += [f"copy of what was there: {path}" for path in plan.backups]
    if plan.added and not options.dry_run:
        from afoot.hosts import secrets_file

        lines.append(f"secrets moved to {secrets_file.path()}; the copies still hold them")
    if not plan.changes():
        return [*lines, f"nothing to do: {plan.change.file} stays as it is"]
    if options.dry_run:
        return [*lines, "dry run: nothing was written"]
    done = "out of" if options.undo else "in"
    lines.append(f"afoot is {done} {plan.change.file}")
    if not options.undo:
        lines.append(_state_folder_line())
    return [*lines, f"next: {_next_step(plan, options)}"]


def _state_folder_line() -> str:
    """The state folder of the host's gateway: commands in another folder would not see its calls."""
    from afoot.config.settings import home

    named = "AFOOT_HOME, in the entry" if os.environ.get("AFOOT_HOME") else "AFOOT_HOME is not set"
    return f"state folder: {home().absolute()} ({named})"


def _next_step(plan: "InstallPlan", options: InstallOptions) -> str:
    """The next step for the person, so that the host sees the change."""
    return (options.undo and plan.host.after_undo) or plan.host.restart


def _moved_line(name: str, server: str, options: InstallOptions) -> str:
    if options.undo:
        return f"put {name} back"
    return f"adopted {name}" if name == server else f"adopted {name} as {server}"


def _print_json(plan: "InstallPlan", difference: str, options: InstallOptions) -> None:
    import msgspec

    from afoot.config.settings import home

    result = {
        "host": plan.host.name,
        "scope": plan.scope,
        "file": str(plan.change.file),
        "changed": [str(change.file) for change in plan.changes()],
        "dry_run": options.dry_run,
        "put_back" if options.undo else "adopted": plan.moved,
        "left": plan.left,
        "notes": plan.notes,
        "copies": [str(path) for path in plan.backups],
        "state_folder": str(home().absolute()),
        "restart": _next_step(plan, options) if plan.changes() else "",
        "difference": difference,
    }
    print(msgspec.json.encode(result).decode())


def _list_hosts(options: InstallOptions) -> int:
    from afoot.hosts.survey import survey_hosts

    if options.adopt or options.undo:
        raise CliError(USAGE, "name a host; `afoot install` lists them")
    found = survey_hosts()
    if options.json:
        import msgspec

        print(msgspec.json.encode({"hosts": [_check_view(one) for one in found]}).decode())
        return 0
    for one in found:
        print(f"{one.host:<15} {_state_text(one)}\n{'':<15} {one.file}")
    return 0


def _state_text(one: "HostCheck") -> str:
    words = STATE_WORDS[one.state].format(command=one.command or "no command")
    others = f"; {len(one.servers)} other server{'s' * (len(one.servers) != 1)}" if one.servers else ""
    return f"{words}{others}{' (project)' if one.scope == 'project' else ''}"


def _check_view(one: "HostCheck") -> dict[str, object]:
    return {key: getattr(one, key) for key in one.__struct_fields__} | {"file": str(one.file)}
