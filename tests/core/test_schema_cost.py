"""The cost of schemas of strangers: small for honest ones, and over the bound where steps multiply."""

from typing import Any

import pytest

from afoot.core.schema_cost import MAX_STEPS, UNBOUNDED, schema_cost


def doubling(steps: int, word: str = "anyOf") -> dict[str, Any]:
    """A small schema each part of which refers to the next one twice."""
    parts: dict[str, Any] = {
        f"a{n}": {word: [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]} for n in range(steps)
    }
    parts[f"a{steps}"] = {"required": ["x"]}
    return {"$ref": "#/$defs/a0", "$defs": parts}


def nested(depth: int) -> object:
    """A value that is so deep."""
    value: object = {}
    for _ in range(depth):
        value = {"n": value}
    return value


@pytest.mark.parametrize("word", ["anyOf", "allOf"])
def test_a_small_schema_whose_parts_double_is_over_the_bound(word: str) -> None:
    """E4: also below a property that has the name of a keyword."""
    assert schema_cost(doubling(3, word)).allows({})
    bomb = doubling(40, word)
    assert schema_cost(bomb).size > MAX_STEPS and not schema_cost(bomb).allows({})
    hidden = {"properties": {"definitions": bomb, "$defs": bomb}, "$defs": bomb["$defs"]}
    assert not schema_cost(hidden).allows({})


def test_a_tree_is_checked_however_deep_and_a_branching_one_is_not() -> None:
    """E4: a reference back up is one more step for each level, unless there are several."""
    tree = {"properties": {"n": {"$ref": "#"}}}
    assert schema_cost(tree).allows(nested(200))
    twice = {"anyOf": [{"properties": {"n": {"$ref": "#"}}}, {"properties": {"n": {"$ref": "#"}}}]}
    assert schema_cost(twice).allows(nested(3)) and not schema_cost(twice).allows(nested(30))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#anchor"},
        {"$ref": "https://evil.example/schema"},
        {"$ref": "#/$defs/none"},
        {"properties": {"a": {"$id": "https://evil.example/x", "$ref": "#/$defs/a"}}},
    ],
)
def test_a_reference_that_cannot_be_followed_counts_as_unbounded(schema: object) -> None:
    """E4: nobody can tell how much is behind it."""
    assert schema_cost(schema) == UNBOUNDED


def test_an_ordinary_schema_is_cheap() -> None:
    """E4: a hundred properties that share a definition, as generators write them."""
    item = {"type": "object", "properties": {"id": {"type": "integer"}}}
    shared = {f"p{n}": {"$ref": "#/$defs/item"} for n in range(100)}
    assert schema_cost({"properties": shared, "$defs": {"item": item}}).size < 1000
