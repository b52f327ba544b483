"""`masked_diff` shows the change of a file to a person, without secrets."""

import json
import re
from collections.abc import Iterable, Set
from difflib import unified_diff
from typing import Any

from afoot.core.redaction import Redactor
from afoot.hosts import secrets_file
from afoot.hosts.plan import FileChange, InstallPlan

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
    found = {*secrets_file.read_all().values(), *plan.added.values()}
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
