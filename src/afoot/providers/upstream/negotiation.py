"""Which era a server is spoken to in: asked of the server, or pinned by the configuration."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace

from afoot.errors import ToolError
from afoot.providers.upstream.carrier import Order
from afoot.providers.upstream.connection import Connection
from afoot.wire import client, client_reading, mcp, mcp_2025
from afoot.wire.client_reading import Greeting
from afoot.wire.jsonrpc import Fault

PROBE_S: Final = 5.0  # a server of the handshake era may never answer what it does not know
HTTP_PROBES: Final = 3  # that long over HTTP, where it may have to wake up first


async def negotiate(connection: Connection, era: str, probe_s: float = PROBE_S) -> None:
    """Settle the version and learn what the server offers; raises Fault, ToolError, RunnerDied."""
    if era == client.MODERN:
        found = await _discover(connection)
        if found is None:
            raise ToolError.unavailable(f"server {connection.record.server} does not speak {era}")
        _adopt(connection, found, client.MODERN)
    elif era in mcp_2025.VERSIONS:
        await _shake(connection, await _initialize(connection, era))
    elif connection.carrier.has_streams:
        await _ask(connection, HTTP_PROBES * probe_s)
    else:
        await _ask_on_a_pipe(connection, probe_s)


async def _ask(connection: Connection, probe_s: float) -> None:
    """Over HTTP a request stands alone: one that was given up leaves no trace, and may be made again."""
    found, is_late = None, False
    try:
        async with asyncio.timeout(probe_s):
            found = await _probe(connection)
    except TimeoutError:
        is_late = True
    try:
        greeting = None if found else await _initialize(connection, client.HANDSHAKE)
    except (Fault, ToolError):
        found, greeting = await _discover(connection) if is_late else None, None
        if found is None:
            raise
    if found is not None:
        _adopt(connection, found, client.MODERN)
    elif greeting is not None:
        await _shake(connection, greeting)


async def _ask_on_a_pipe(connection: Connection, probe_s: float) -> None:
    """The probe may stay without an answer: then both are asked, and the first that says yes counts."""
    probe = _task(_probe(connection))
    hello: asyncio.Task[Greeting] | None = None
    try:
        await asyncio.wait({probe}, timeout=probe_s)
        if not probe.done() or probe.result() is None:
            hello = _task(_initialize(connection, client.HANDSHAKE))
            await asyncio.wait({probe, hello} if not probe.done() else {hello}, return_when="FIRST_COMPLETED")
            if not hello.done() and probe.result() is None:
                await asyncio.wait({hello})
        if hello is not None and hello.done() and (greeting := await _greeted(connection, hello)):
            await _shake(connection, greeting)
        else:
            # Its answer to the probe came late, or it refused the handshake because the probe had settled it.
            found = await (probe if not hello or not hello.done() else _discover(connection))
            if found is None:
                raise ToolError.unavailable(f"server {connection.record.server} speaks no version of ours")
            _adopt(connection, found, client.MODERN)
    finally:
        probe.cancel()
        if hello is not None:
            hello.cancel()


async def _greeted(connection: Connection, hello: "asyncio.Task[Greeting]") -> Greeting | None:
    """The answer to the handshake; None if the server says that it is of the other era."""
    try:
        return await hello
    except Fault as fault:
        if fault.code != mcp.UNSUPPORTED_VERSION:
            raise
        connection.record.say("it refuses the handshake, and is asked for its versions again")
        return None


async def _probe(connection: Connection, is_again: bool = False) -> Greeting | None:
    """What the server says of 2026-07-28; None for anything but a clear yes. Raises if it needs a login."""
    try:
        return await _discover(connection)
    except Fault as fault:
        if fault.code != mcp.UNSUPPORTED_VERSION or not isinstance(fault.data, dict):
            return None
        supported = {str(version) for version in fault.data.get("supported") or ()}
        if client.MODERN in supported and not is_again:
            return await _probe(connection, is_again=True)
        if supported and not supported & {*mcp_2025.VERSIONS, client.MODERN}:
            raise
    except ToolError as error:
        if error.category == "auth":
            raise
    return None


async def _discover(connection: Connection) -> Greeting | None:
    connection.speak(replace(connection.tongue, version=client.MODERN))
    found = client_reading.greeting(await connection.request(Order("server/discover")))
    return found if found is not None and client.MODERN in found.versions else None


async def _initialize(connection: Connection, version: str) -> Greeting:
    connection.speak(replace(connection.tongue, version=version))
    found = client_reading.greeting(await connection.request(Order("initialize")))
    if found is None or found.version not in mcp_2025.VERSIONS:
        spoken = found.version if found else "nothing that could be read"
        raise ToolError.unavailable(f"server {connection.record.server} answered initialize with {spoken!r}")
    return found


async def _shake(connection: Connection, found: Greeting) -> None:
    _adopt(connection, found, found.version)
    await connection.carrier.tell(client.notice("notifications/initialized"))
    connection.carrier.listen()


def _adopt(connection: Connection, found: Greeting, version: str) -> None:
    connection.speak(replace(connection.tongue, version=version))
    connection.greeted = asyncio.get_running_loop().time()
    connection.capabilities, connection.info = found.capabilities, found.server
    connection.instructions = found.instructions or ""


def _task(work: "Coroutine[Any, Any, Any]") -> "asyncio.Task[Any]":
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_looked_at)
    return task


def _looked_at(task: "asyncio.Task[Any]") -> None:
    with suppress(asyncio.CancelledError):
        task.exception()
