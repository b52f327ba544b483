"""`check_arguments` checks arguments against the JSON schema of a tool that is not ours (E4)."""

from functools import lru_cache
from typing import Any

import jsonschema_rs
import msgspec
from msgspec import Raw

from afoot.core.schema_cost import MAX_STEPS, UNBOUNDED, SchemaCost, schema_cost
from afoot.engine.json_schema import find_misfits
from afoot.errors import ToolError
from afoot.providers.functions import schema as schemas


def check_arguments(schema: bytes, arguments: Raw) -> None:
    """Raise ToolError.validation, which names the fields, if the arguments do not fit the schema (E4)."""
    validator, cost = _validator(schema)
    try:
        given = msgspec.json.decode(arguments or b"{}", type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ToolError.validation(f"arguments: {error}") from None
    if validator is None or not cost.allows(given) or validator.is_valid(given):
        return
    # Models like to send null for arguments that they leave out; a required one is missing all the same.
    said = {name: value for name, value in given.items() if value is not None}
    try:
        problems = [_problem(error) for error in find_misfits(validator, said, len(arguments))]
    except ValueError:
        problems = [schemas.TOO_DEEP]
    if problems:
        raise ToolError.validation(schemas.join_problems(problems))


def fits_schema(schema: bytes, value: object) -> bool:
    """Whether a value fits; with a schema that cannot be used every value does."""
    validator, cost = _validator(schema)
    return validator is None or not cost.allows(value) or validator.is_valid(value)


@lru_cache(maxsize=2048)
def _validator(schema: bytes) -> tuple[jsonschema_rs.Validator | None, SchemaCost]:
    """The validator of a schema, and what it costs. Nothing is fetched.

    None for a schema that cannot be used, or takes too many steps: then the tool itself must check.
    """
    try:
        decoded = msgspec.json.decode(schema)
        cost = schema_cost(decoded)
        if cost.size > MAX_STEPS:
            return None, cost
        return jsonschema_rs.validator_for(decoded, mask="the value", offline=True), cost
    except Exception:  # schemas come from anybody, and the library raises many things
        return None, UNBOUNDED


def _problem(error: jsonschema_rs.ValidationError) -> str:
    path = ["arguments", *map(str, error.instance_path)]
    missing = getattr(error.kind, "property", None)
    if isinstance(missing, str):
        return ".".join([*path, missing]) + ": missing"
    return ".".join(path) + f": {error.message}"
