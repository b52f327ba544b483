"""Arguments against a schema that is not ours."""

import pytest
from msgspec import Raw

from afoot.errors import ToolError
from afoot.providers.arguments import check_arguments

SCHEMA = b'{"type":"object","properties":{"name":{"type":"string"}}}'


@pytest.mark.parametrize("depth", [1, 300, 900, 5000])
def test_arguments_that_do_not_fit_are_refused_however_deep_they_are(depth: int) -> None:
    """E4, S8: the library does not describe a deep value; found by the fuzzer's rule."""
    with pytest.raises(ToolError, match="arguments") as caught:
        check_arguments(SCHEMA, Raw(b'{"name":' + b"[" * depth + b"]" * depth + b"}"))
    assert caught.value.category == "validation"
