"""`loads` reads TOML, and raises one error for every text that cannot be read."""

import tomllib


def loads(text: str) -> dict[str, object]:
    """The value of a text; raises TOMLDecodeError.

    tomllib itself also raises RecursionError, and ValueError for a number that Python does not convert.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deep") from None
    except ValueError:
        raise tomllib.TOMLDecodeError("a number has too many digits") from None
