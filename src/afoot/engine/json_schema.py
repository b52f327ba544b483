"""`find_misfits` finds where a value does not fit a JSON schema, within a short, bounded time."""

import jsonschema_rs

# jsonschema_rs makes all errors before it gives the first one, and each takes 12 us: a megabyte of wrong
# items kept everybody waiting for 2.5 s. Of a larger value, only the first misfit is looked for.
LARGE_BYTES = 16 * 1024


def find_misfits(
    validator: jsonschema_rs.Validator, value: object, size: int
) -> list[jsonschema_rs.ValidationError]:
    """The places where a value of so many bytes does not fit; of a large value the first one alone.

    Raises ValueError for a value that is nested too deep to be described.
    """
    if size <= LARGE_BYTES:
        return list(validator.iter_errors(value))
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as misfit:
        return [misfit]
    return []
