"""The provider contract, kept by functions in each of the places they can run."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from afoot.core.ports import Provider
from afoot.errors import ToolError
from afoot.providers.functions.context import Context
from afoot.providers.functions.tool import FunctionProvider, tool
from tests.providers.provider_contract import *  # noqa: F403

SURE = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}


async def echo(text: str) -> str:
    return text


async def count(n: int, ctx: Context) -> str:
    for step in range(1, n + 1):
        ctx.report(step, n)
    return str(n)


async def crash() -> None:
    raise ValueError("boom")


async def missing() -> None:
    raise ToolError.not_found("no such thing")


async def hang(ctx: Context) -> None:
    ctx.report()
    await asyncio.Event().wait()


async def confirm(ctx: Context) -> str:
    return "yes" if (await ctx.ask("sure?", SURE)).content["sure"] else "no"


def sync_echo(text: str) -> str:
    return text


def sync_count(n: int, ctx: Context) -> str:
    for step in range(1, n + 1):
        ctx.report(step, n)
    return str(n)


def sync_crash() -> None:
    raise ValueError("boom")


def sync_missing() -> None:
    raise ToolError.not_found("no such thing")


def sync_hang(ctx: Context) -> None:
    ctx.report()
    while not ctx.cancelled:
        threading.Event().wait(0.01)


def sync_confirm(ctx: Context) -> str:
    return "yes" if ctx.ask("sure?", SURE).content["sure"] else "no"


ASYNC: list[Callable[..., Any]] = [echo, count, crash, missing, hang, confirm]
SYNC: list[Callable[..., Any]] = [sync_echo, sync_count, sync_crash, sync_missing, sync_hang, sync_confirm]


def _copy(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Another function object with the same code: a tool is one function."""
    made = type(function)(function.__code__, function.__globals__, function.__name__)
    made.__annotations__ = function.__annotations__
    return tool(name=function.__name__.removeprefix("sync_"), **options)(made)


@pytest.fixture(params=["on the loop", "in threads", "on own loops"])
def provider(request: pytest.FixtureRequest) -> Iterator[Callable[[], Provider]]:
    made: list[FunctionProvider] = []
    functions = SYNC if request.param == "in threads" else ASYNC
    options = {"own_loop": True} if request.param == "on own loops" else {}

    def make() -> Provider:
        made.append(FunctionProvider([_copy(function, **options) for function in functions]))
        return made[-1]

    yield make
    for one in made:
        one.close()
