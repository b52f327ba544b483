"""Tools that check their arguments in each of the ways that there are."""

from typing import Any

from afoot import tool

NUMBERS = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"type": "integer"}}, "times": {"type": "integer"}},
}


@tool(read_only=True)
async def sum_up(numbers: list[int]) -> int:
    """Adds."""
    return sum(numbers)


@tool(read_only=True, input_schema=NUMBERS)
async def by_schema(numbers: Any = (), times: int = 1) -> int:
    """Adds, by a schema of its own."""
    return sum(numbers) * times
