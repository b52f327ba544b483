"""`App`: the lifespan of a file of tools."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from afoot.providers.functions.app import App


async def plain() -> AsyncIterator[dict[str, int]]:
    yield {"number": 7}


@pytest.mark.parametrize("lifespan", [plain, asynccontextmanager(plain)], ids=["plain", "decorated"])
async def test_a_lifespan_is_a_context_manager_or_a_generator(lifespan: object) -> None:
    """F2: the decorator may be forgotten."""
    app = App(lifespan)  # pyrefly: ignore[bad-argument-type]
    assert app.lifespan is not None
    async with app.lifespan() as state:
        assert state == {"number": 7}
