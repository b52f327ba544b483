"""`loads` reads TOML, and raises one error for every text that cannot be read."""

import tomllib
from typing import Final

MAX_DEPTH: Final = 100  # of tables and lists in each other; whoever walks a value may call itself as often


def loads(text: str) -> dict[str, object]:
    """The value of a text; raises TOMLDecodeError.

    tomllib itself also raises RecursionError, and ValueError for a number that Python does not convert. A key
    with dots can make tables that are nested deeper than any function can walk.
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deep") from None
    except ValueError:
        raise tomllib.TOMLDecodeError("a number has too many digits") from None
    if _is_deep(found):
        raise tomllib.TOMLDecodeError("nested too deep")
    return found


def _is_deep(value: object) -> bool:
    """Whether tables and lists are nested deeper than `MAX_DEPTH`. Each round is one level."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [one for whole in level for one in _parts(whole)]
        if not level:
            return False
    return True


def _parts(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []
