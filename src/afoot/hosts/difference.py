"""The difference that a change makes, as people read it: unified, its secrets masked."""

import json
import re
from collections.abc import Iterable
from difflib import unified_diff

from afoot.hosts import secrets
from afoot.hosts.plan import Change, Plan

MASK = "***"
WIDEST = 200
LONG = 8  # a secret this long is masked wherever it stands, not only as a whole value

_NAMED = re.compile(
    r"""(?<!\$\{)((?:token(?!_env_var)|secret|passw(?:or)?d|api[-_]?key|authorization|credential)[\w.-]*["']?\s*[:=]\s*["']?)"""
    r"""(?!(?:Bearer |Basic )?\$)((?:Bearer |Basic )?)[^"'\s,}&]+""",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(://[^\s:/@\"']+:)[^\s@/\"']+(?=@)")
_HIDING = ("env", "headers", "http_headers", "oauth", "auth")


def shown(change: Change, hidden: Iterable[str]) -> str:
    """A change as a unified difference, without what is in `hidden` and what a key gives away as secret."""
    name = str(change.file)
    lines = unified_diff(
        _lines(change.before), _lines(change.after),
        name if change.before is not None else "/dev/null", name if change.after is not None else "/dev/null",
        lineterm="",
    )  # fmt: skip
    known = sorted({one for one in hidden if one}, key=len, reverse=True)
    return "\n".join(_cut(_masked(line, known)) for line in lines)


def hidden(plan: Plan, servers: Iterable[object]) -> set[str]:
    """All that must not be shown: what servers have as variables and headers, and our own secrets."""
    found = {*secrets.every().values(), *plan.added.values()}
    for server in servers:
        inside = [server.get(key) for key in _HIDING] if isinstance(server, dict) else []
        found |= {str(one) for inner in inside if isinstance(inner, dict) for one in inner.values()}
    return {one for one in found if not re.fullmatch(r"\$\{[^}]*\}", one)}


def _lines(text: str | None) -> list[str]:
    return [line.removesuffix("\r") for line in (text or "").removesuffix("\n").split("\n")] if text else []


def _masked(line: str, known: list[str]) -> str:
    if line.startswith(("---", "+++", "@@")):
        return line
    for value in known:
        for form in {json.dumps(value), json.dumps(value, ensure_ascii=False), f"'{value}'"}:
            line = line.replace(form, f'"{MASK}"')
        if len(value) >= LONG:
            line = line.replace(value, MASK)
    line = _LOGIN.sub(rf"\1{MASK}", line)
    return _NAMED.sub(lambda match: f"{match[1]}{match[2]}{MASK}", line)


def _cut(line: str) -> str:
    return line if len(line) <= WIDEST else f"{line[: WIDEST - 1]}…"
