"""`check_calls` starts a gateway with one tool and calls it in both MCP eras: progress, result, cancel.

The gateway runs in a process and a folder of its own, without the person's settings.
"""

import asyncio
import os
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import json

from afoot.bridge.connection import META_PREFIX, BridgeIdentity, GatewayConnection
from afoot.bridge.http import BrokenConnection, GatewayResponse, NotProved, Unreachable, parse_target
from afoot.bridge.session_2025 import BridgeSession2025
from afoot.cli.client import CliError, GatewayClient
from afoot.cli.doctor.findings import Finding, fail, ok
from afoot.wire import jsonrpc, mcp_2025, mcp_2026

START_S = 30.0  # the longest start of the gateway
CALL_S = 15.0  # the longest trial of one era
TOOL = '''"""A tool to try."""

import asyncio

import afoot
from afoot import Context


@afoot.tool(read_only=True)
async def probe(n: int, ctx: Context) -> str:
    """Report n times, ten times a second."""
    for number in range(1, n + 1):
        ctx.report(number, n)
        await asyncio.sleep(0.1)
    return "probed"
'''
LONG_CALL_REPORTS = 10_000  # of the call that is cancelled
PostMessage = Callable[[dict[str, Any]], Awaitable[GatewayResponse]]


class ProbeError(Exception):
    """A gateway or a call did not behave as it should."""


async def check_calls() -> list[Finding]:
    """One finding per MCP era."""
    fix = "this gateway is broken; tell its authors what `afoot doctor --json` prints"
    try:
        with tempfile.TemporaryDirectory(prefix="afoot-doctor-") as folder:
            async with _probe_gateway(Path(folder)) as address:
                connection = GatewayConnection(
                    parse_target(address["mcp"]),
                    BridgeIdentity(f"connect-{os.urandom(16).hex()}", address["token"]),
                )
                client = GatewayClient(address["mcp"], address["token"])
                trials = {
                    "2026-07-28": _call_2026(connection, client),
                    "handshake era": _call_2025(connection, client),
                }
                return [await _run_trial(f"call, {era}", trial, fix) for era, trial in trials.items()]
    except (ProbeError, OSError) as error:
        return [fail("call", f"no gateway could be started: {error}", fix)]


async def _run_trial(check: str, trial: Awaitable[None], fix: str) -> Finding:
    try:
        async with asyncio.timeout(CALL_S):
            await trial
    except TimeoutError:
        return fail(check, f"not over within {CALL_S:g} s", fix)
    except (ProbeError, BrokenConnection, NotProved, Unreachable, CliError) as error:
        return fail(check, str(error), fix)
    return ok(check, "progress, result and cancel arrive")


async def _call_2026(connection: GatewayConnection, client: GatewayClient) -> None:
    async def post(message: dict[str, Any]) -> GatewayResponse:
        about: dict[str, object] = {
            f"{META_PREFIX}protocolVersion": mcp_2026.VERSION,
            f"{META_PREFIX}clientCapabilities": {},
        }
        message["params"]["_meta"] |= about
        return await connection.post(json.encode(message), method="tools/call", name="probe")

    await _check_short_call(post)
    answer = await post(_call_request(2, LONG_CALL_REPORTS))
    call = await _wait_for_report(answer)
    answer.close()
    await _wait_until_cancelled(client, call)


async def _call_2025(connection: GatewayConnection, client: GatewayClient) -> None:
    session = BridgeSession2025()
    hello: dict[str, object] = {
        "protocolVersion": mcp_2025.LATEST,
        "capabilities": {},
        "clientInfo": {"name": "doctor", "version": "1"},
    }
    line = json.encode({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    session.remember(line, jsonrpc.read(line))
    await session.renew(connection)

    async def post(message: dict[str, Any]) -> GatewayResponse:
        return await session.post(connection, json.encode(message))

    await _check_short_call(post)
    answer = await post(_call_request(2, LONG_CALL_REPORTS))
    call = await _wait_for_report(answer)
    cancel = {"requestId": 2, "reason": "the doctor has seen enough"}
    (await post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})).close()
    await _wait_until_cancelled(client, call)
    answer.close()


async def _check_short_call(post: PostMessage) -> None:
    """Make a short call and check that all reports and the result arrive."""
    answer = await post(_call_request(1, 3))
    frames = [json.decode(frame) async for many in answer.messages() for frame in many]
    answer.close()
    numbers = [frame["params"]["progress"] for frame in frames[:-1] if "params" in frame]
    if numbers != [1, 2, 3]:
        raise ProbeError(f"progress 1, 2, 3 was reported, and {numbers} came")
    if frames[-1].get("result", {}).get("content") != [{"type": "text", "text": "probed"}]:
        raise ProbeError(f"a wrong result came: {str(frames[-1])[:200]}")


async def _wait_for_report(answer: GatewayResponse) -> str:
    """The id of a call, after its first report."""
    async for frames in answer.messages():
        meta = json.decode(frames[0]).get("params", {}).get("_meta", {})
        return str(meta.get("dev.afoot/call", ""))
    raise ProbeError("a long call ended at once")


async def _wait_until_cancelled(client: GatewayClient, call: str) -> None:
    while True:
        reply = await asyncio.to_thread(client.get, f"/api/calls/{call}")
        if reply["state"] == "finished":
            break
        await asyncio.sleep(0.05)
    if reply["outcome"] != "cancelled":
        raise ProbeError(f"a call that was cancelled ended as {reply['outcome']}")


def _call_request(id: int, n: int) -> dict[str, Any]:
    params = {"name": "probe", "arguments": {"n": n}, "_meta": {"progressToken": id}}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


@asynccontextmanager
async def _probe_gateway(folder: Path) -> AsyncIterator[dict[str, Any]]:
    """A gateway with only the probe tool, in a process and a folder of its own."""
    tool, config = folder / "probe.py", folder / "afoot.toml"
    tool.write_text(TOOL)
    config.write_text("drain_s = 0\n")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AFOOT_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "afoot", "serve", str(tool), "--http", "127.0.0.1:0", "--json",
        env={**kept, "AFOOT_HOME": str(folder / "home"), "AFOOT_CONFIG": str(config)},
        stdin=DEVNULL, stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    try:
        yield await _read_address(process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _read_address(process: Process) -> dict[str, Any]:
    assert process.stdout is not None and process.stderr is not None
    async with asyncio.timeout(START_S):
        first = await process.stdout.readline()
        if first:
            found: dict[str, Any] = json.decode(first)
            return found
        said = (await process.stderr.read()).decode("utf-8", "replace").strip().split("\n")
    raise ProbeError(said[-1].removeprefix("afoot: ") or "it said nothing")
