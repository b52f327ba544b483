"""Tools that call tools, for the tests of trees."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Raw

from afoot.core.facts import Result
from afoot.core.ports import Run
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import LiveCall
from tests.engine.fake_engine import Bench, Body, offering

NOTHING = Raw(b"{}")


def calling(*tools: str, weights: tuple[float, ...] = (), at_once: bool = False) -> Body:
    """A tool that calls these, one after the other or all at once."""

    async def body(run: Run) -> str:
        wants = [(tool, weights[n] if weights else 1.0) for n, tool in enumerate(tools)]
        if at_once:
            await asyncio.gather(*(run.call(tool, NOTHING, weight) for tool, weight in wants))
        else:
            for tool, weight in wants:
                await run.call(tool, NOTHING, weight)
        return "done"

    return body


def counting(to: int, every_s: float = 1.0, *, total: bool = True) -> Body:
    """A tool that counts."""

    async def body(run: Run) -> str:
        for n in range(1, to + 1):
            await asyncio.sleep(every_s)
            run.report(n, to if total else None, f"step {n}")
        return "done"

    return body


@asynccontextmanager
async def forest(**bodies: Body | tuple[Body, dict[str, Any]]) -> AsyncIterator[Engine]:
    """An engine with these tools; at its end nothing may be left in it."""
    bench = Bench()
    for name, body in bodies.items():
        made, options = body if isinstance(body, tuple) else (body, {})
        bench.add(made, name, **options)
    async with offering(bench) as engine:
        yield engine


def root(engine: Engine, tool: str = "root", **options: Any) -> LiveCall:
    """A call of this tool."""
    return engine.submit(Submission(tool, **options))


def child(engine: Engine, tool: str = "child") -> LiveCall:
    """The newest living call of a tool."""
    return [live for live in engine.calls() if live.tool.name == tool][-1]


async def after(run: Run, tool: str, error: list[BaseException]) -> Result | None:
    """Call a tool and keep what it raises."""
    try:
        return await run.call(tool, NOTHING, 1.0)
    except Exception as raised:
        error.append(raised)
        return None


def told(live: LiveCall) -> str:
    """How it ended."""
    assert live.call.end is not None
    return live.call.end.outcome
