"""A docstring taken apart: what the tool does, and what each parameter means (Google, NumPy, reST)."""

import inspect
import re

from msgspec import Struct

_ARGS = {"args", "arguments", "parameters", "params", "other parameters", "keyword args", "keyword arguments"}
_OTHER = {
    "attributes", "example", "examples", "note", "notes", "raises", "references", "return", "returns",
    "see also", "todo", "warning", "warnings", "warns", "yield", "yields",
}  # fmt: skip
_HEADING = re.compile(r"^([A-Za-z][A-Za-z ]*):\s*$")
_UNDERLINE = re.compile(r"^-{3,}\s*$")
_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:(?:\s+(.*)|)$")
_NUMPY_ENTRY = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_REST = re.compile(r"^:(\w+)\s*([^:]*):\s*(.*)$")
_REST_PARAMS = {"param", "parameter", "arg", "argument", "key", "keyword"}


class Docstring(Struct, frozen=True):
    """What an author wrote about a function. `description` is all but the sections."""

    description: str = ""
    parameters: dict[str, str] = {}


def parse(text: str | None) -> Docstring:
    """The parts of a docstring; what is not understood stays in the description."""
    if not text:
        return Docstring()
    prose: list[str] = []
    found: dict[str, list[str]] = {}
    for kind, block in _sections(inspect.cleandoc(text).splitlines()):
        if kind == "prose":
            prose += _rest(block, found)
        elif kind == "google":
            _google(block, found)
        elif kind == "numpy":
            _numpy(block, found)
    return Docstring(
        "\n".join(prose).strip(),
        {name: joined for name, said in found.items() if (joined := " ".join(said).strip())},
    )


def _sections(lines: list[str]) -> list[tuple[str, list[str]]]:
    """The docstring cut at its headings; a section that says nothing of parameters has the kind ''."""
    out: list[tuple[str, list[str]]] = [("prose", [])]
    skip = False
    for at, text in enumerate(lines):
        if skip:
            skip = False
            continue
        after = lines[at + 1] if at + 1 < len(lines) else ""
        title = text.strip().lower().rstrip(":")
        known = title in _ARGS or title in _OTHER
        if known and _UNDERLINE.match(after):
            out.append(("numpy" if title in _ARGS else "", []))
            skip = True
        elif known and _HEADING.match(text):
            out.append(("google" if title in _ARGS else "", []))
        else:
            # A Google section ends where the text returns to the margin.
            if out[-1][0] == "google" and text.strip() and not text[0].isspace():
                out.append(("prose", []))
            out[-1][1].append(text)
    return out


def _google(block: list[str], found: dict[str, list[str]]) -> None:
    first = next((text for text in block if text.strip()), "")
    margin = _indent(first)
    said: list[str] | None = None
    for text in block:
        entry = _ENTRY.match(text.strip()) if _indent(text) == margin else None
        if entry:
            said = found.setdefault(entry[1], [])
            said.append(entry[2] or "")
        elif said is not None and text.strip():
            said.append(text.strip())


def _numpy(block: list[str], found: dict[str, list[str]]) -> None:
    names: list[str] = []
    for text in block:
        entry = _NUMPY_ENTRY.match(text) if text and not text[0].isspace() else None
        if entry:
            names = [name.strip().lstrip("*") for name in entry[1].split(",")]
        elif text.strip():
            for name in names:
                found.setdefault(name, []).append(text.strip())


def _rest(block: list[str], found: dict[str, list[str]]) -> list[str]:
    """The lines that are no reST fields; the fields go to `found`."""
    prose: list[str] = []
    said: list[str] | None = None
    in_field = False
    for text in block:
        field = _REST.match(text)
        if field:
            words = field[2].split()
            said = found.setdefault(words[-1].lstrip("*"), []) if field[1] in _REST_PARAMS and words else None
            if said is not None:
                said.append(field[3])
            in_field = True
        elif in_field and text[:1].isspace():
            if said is not None:
                said.append(text.strip())
        else:
            in_field = False
            prose.append(text)
    return prose


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
