"""Arguments against the JSON schema of a tool that is not ours; jsonschema is spoken to here (E4)."""

from functools import lru_cache
from typing import Any

import jsonschema_rs
import msgspec
from msgspec import Raw

from afoot.errors import ToolError
from afoot.providers import schema as schemas


def check(schema: bytes, arguments: Raw) -> None:
    """The arguments must fit the tool's schema; raises ToolError.validation naming the fields (E4)."""
    validator = _validator(schema)
    try:
        given = msgspec.json.decode(arguments or b"{}", type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ToolError.validation(f"arguments: {error}") from None
    if validator is None or validator.is_valid(given):
        return
    # Models like to say null for what they leave out; what is required is missed all the same.
    said = {name: value for name, value in given.items() if value is not None}
    problems = [_problem(error) for error in validator.iter_errors(said)]
    if problems:
        raise ToolError.validation(schemas.listed(problems))


def is_fit(schema: bytes, value: object) -> bool:
    """Whether a value fits; one that nobody can check does."""
    validator = _validator(schema)
    return validator is None or validator.is_valid(value)


@lru_cache(maxsize=2048)
def _validator(schema: bytes) -> jsonschema_rs.Validator | None:
    """None for a schema that cannot be used: then the tool itself has to check. Nothing is fetched."""
    try:
        return jsonschema_rs.validator_for(msgspec.json.decode(schema), mask="the value", offline=True)
    except Exception:  # any schema may come, and the library raises many things
        return None


def _problem(error: jsonschema_rs.ValidationError) -> str:
    path = ["arguments", *map(str, error.instance_path)]
    missing = getattr(error.kind, "property", None)
    if isinstance(missing, str):
        return ".".join([*path, missing]) + ": missing"
    return ".".join(path) + f": {error.message}"
