"""`serve` and `serve_async` serve tools from a Python program, as `afoot serve` does from a shell."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from afoot.config.settings import load_settings
from afoot.config.state_folder import GatewayAddress
from afoot.gateway import Target, app
from afoot.gateway.reload import ConfigSource
from afoot.serve.gateway_state import GatewayState

OnStart = Callable[[str], object]  # gets the address of MCP


def serve(
    *targets: Target,
    config: str | Path | None = None,
    stdio: bool = False,
    reload: bool = False,
    on_start: OnStart | None = None,
    **settings: Any,
) -> None:
    """Serve tools over MCP until a signal comes; blocks, and needs the main thread.

    Settings are those of afoot.toml, such as `http="127.0.0.1:0"`; the file is `config`, or the nearest one.
    `on_start` gets the address. Raises CallerError, StoreError.
    """
    app.run(_plan(targets, config, stdio, reload, settings), _call_on_start(on_start))


async def serve_async(
    *targets: Target,
    config: str | Path | None = None,
    on_start: OnStart | None = None,
    **settings: Any,
) -> None:
    """Serve tools over MCP until the task is cancelled: calls then have `drain_s` to end. No signal is used.

    Raises CallerError, StoreError.
    """
    told = asyncio.Event()
    plan = _plan(targets, config, False, False, settings)
    serving = asyncio.create_task(app.serve_until(plan, _call_on_start(on_start), told))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        told.set()
        await asyncio.wait([serving])
        raise


def _plan(
    targets: tuple[Target, ...],
    config: str | Path | None,
    stdio: bool,
    reload: bool,
    settings: dict[str, Any],
) -> app.ServePlan:
    loaded = load_settings(None if config is None else Path(config), settings)
    source = ConfigSource(loaded.file, settings)
    return app.ServePlan(
        loaded.settings, targets or tuple(loaded.settings.targets), stdio, reload, source=source
    )


def _call_on_start(on_start: OnStart | None) -> app.Started:
    def started(address: GatewayAddress, state: GatewayState) -> None:
        if on_start is not None:
            on_start(address.mcp)
        else:
            print(f"afoot serves MCP at {address.mcp}", file=sys.stderr, flush=True)

    return started
