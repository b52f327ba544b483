"""Where in a TOML text a key stands, for messages."""

import re
import tomllib

_HEADER = re.compile(r"^\s*(\[\[?)(.+?)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([^=#]+?)\s*=")


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """The line of a TOML text where a key stands, or the table that it is missing in."""
    best: tuple[int, int] | None = None
    table: tuple[str, ...] = ()
    seen: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = here = _keys(header[2])
            if header[1] == "[[":
                seen[table] = seen.get(table, -1) + 1
                table = here = (*table, str(seen[table]))
        elif key := _KEY.match(line):
            here = (*table, *_keys(key[1]))
        else:
            continue
        if here and path[: len(here)] == here and (best is None or len(here) > best[0]):
            best = len(here), number
    return None if best is None else best[1]


def _keys(text: str) -> tuple[str, ...]:
    """`servers."my files"` as its parts."""
    try:
        found: object = tomllib.loads(f"{text} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    keys: list[str] = []
    while isinstance(found, dict) and found:
        key = next(iter(found))
        keys.append(str(key))
        found = found[key]
    return tuple(keys)
