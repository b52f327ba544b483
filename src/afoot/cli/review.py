"""An approval decided in a terminal: what is to run, and run, skip, instead or always."""

import json
from typing import Any

import msgspec

from afoot.cli.ending import USAGE, Stop
from afoot.cli.form import Ask, Declined, Say
from afoot.engine.review import CONNECTION, EVER, LONGEST_S, harmless

MENU = "r)un, s)kip, i)nstead (reject and say what to do), a)lways: "
SCOPES = {"t": "tool", "e": "arguments", "s": "server"}
LINES, WIDE = 100, 500  # of arguments on the screen
SHORT = 60  # characters of arguments that the question itself shows well enough


class Case(msgspec.Struct, frozen=True):
    """What is to be approved; the arguments are JSON, or nothing where they are only in the message."""

    message: str
    why: str = ""
    arguments: bytes = b""
    caller: str = ""


def case_of(asked: dict[str, Any]) -> Case:
    """The case that a question of the API puts."""
    known = asked.get("arguments")
    arguments = b"" if known is None else json.dumps(known, ensure_ascii=False).encode()
    return Case(asked["message"], asked.get("why", ""), arguments, asked.get("caller", ""))


def decide(case: Case, ask: Ask, say: Say) -> dict[str, Any]:
    """What a person decides; raises Declined."""
    for line in _told(case):
        say(line)
    while True:
        match _typed(ask, MENU):
            case "r" | "run":
                return {"decision": "run"}
            case "s" | "skip":
                return {"decision": "skip"}
            case "i" | "instead" | "reject":
                return {"decision": "reject", "instead": _said(ask, "what to do instead: ")}
            case "a" | "always":
                return {"decision": "always", "scope": _scope(ask, say), "for": _lasting(ask, say)}
            case _:
                say("  type r, s, i or a")


def lasting(text: str) -> str | float:
    """How long something is allowed: connection, ever, or seconds; raises ValueError."""
    if text in (CONNECTION, EVER):
        return text
    found = float(text)
    if not 0 < found <= LONGEST_S:
        raise ValueError
    return found


def lasting_option(text: str, words: tuple[str, ...] = (CONNECTION, EVER)) -> str | float:
    """The same, of --for, where these words are taken; raises Stop."""
    try:
        found = lasting(text)
    except ValueError:
        found = ""
    if found in words or isinstance(found, float):
        return found
    raise Stop(USAGE, f"--for: {', '.join(words)}, or a number of seconds, not {text!r}")


def _told(case: Case) -> list[str]:
    whose = f"called by {harmless(case.caller)}; " if case.caller else ""
    lines = [f"  {whose}{harmless(case.why)}"] if case.why or whose else []
    shown = msgspec.json.format(case.arguments, indent=2).decode(errors="replace") if case.arguments else ""
    if len(shown) <= SHORT:
        return lines
    found = shown.split("\n")
    lines += [f"  {harmless(line[:WIDE])}{'…' if len(line) > WIDE else ''}" for line in found[:LINES]]
    if len(found) > LINES:
        lines.append(f"  … ({len(found)} lines in all)")
    return lines


def _typed(ask: Ask, prompt: str) -> str:
    return _said(ask, prompt).lower()


def _said(ask: Ask, prompt: str) -> str:
    text = ask(prompt)
    if text is None:
        raise Declined
    return text.strip()


def _scope(ask: Ask, say: Say) -> str:
    while True:
        typed = _typed(ask, "always what: t)his tool, e)xactly these arguments, s)erver [t]: ") or "t"
        found = SCOPES.get(typed, typed)
        if found in SCOPES.values():
            return found
        say("  type t, e or s")


def _lasting(ask: Ask, say: Say) -> str | float:
    while True:
        typed = _typed(ask, "for how long: c)onnection, e)ver, or seconds [c]: ") or "c"
        try:
            return lasting({"c": CONNECTION, "e": EVER}.get(typed, typed))
        except ValueError:
            say("  type c, e or a number of seconds")
