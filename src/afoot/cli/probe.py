"""A gateway of its own with one tool, called for real in both eras: progress, result, cancel."""

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

from afoot.bridge.http import Answer, Broken, Unreachable, target
from afoot.bridge.link import PREFIX, Identity, Link
from afoot.bridge.session import Session
from afoot.cli.client import Client
from afoot.cli.ending import Stop
from afoot.cli.finding import Finding, fail, ok
from afoot.wire import jsonrpc, mcp, mcp_2025

START_S = 30.0
CALL_S = 15.0
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
LONG = 10_000
Post = Callable[[dict[str, Any]], Awaitable[Answer]]


class Wrong(Exception):
    """What did not go as it should."""


async def probe() -> list[Finding]:
    """One line an era."""
    fix = "this gateway is broken; tell its authors what `afoot doctor --json` prints"
    try:
        with tempfile.TemporaryDirectory(prefix="afoot-doctor-") as folder:
            async with _gateway(Path(folder)) as address:
                link = Link(
                    target(address["mcp"]), Identity(f"connect-{os.urandom(16).hex()}", address["token"])
                )
                client = Client(address["mcp"], address["token"])
                trials = {"2026-07-28": _modern(link, client), "handshake era": _handshake(link, client)}
                return [await _tried(f"call, {era}", trial, fix) for era, trial in trials.items()]
    except (Wrong, OSError) as error:
        return [fail("call", f"no gateway could be started: {error}", fix)]


async def _tried(check: str, trial: Awaitable[None], fix: str) -> Finding:
    try:
        async with asyncio.timeout(CALL_S):
            await trial
    except TimeoutError:
        return fail(check, f"not over within {CALL_S:g} s", fix)
    except (Wrong, Broken, Unreachable, Stop) as error:
        return fail(check, str(error), fix)
    return ok(check, "progress, result and cancel arrive")


async def _modern(link: Link, client: Client) -> None:
    async def post(message: dict[str, Any]) -> Answer:
        about: dict[str, object] = {
            f"{PREFIX}protocolVersion": mcp.VERSION,
            f"{PREFIX}clientCapabilities": {},
        }
        message["params"]["_meta"] |= about
        return await link.post(json.encode(message), method="tools/call", name="probe")

    await _counted(post)
    answer = await post(_call(2, LONG))
    call = await _begun(answer)
    answer.close()
    await _cancelled(client, call)


async def _handshake(link: Link, client: Client) -> None:
    session = Session()
    hello: dict[str, object] = {
        "protocolVersion": mcp_2025.LATEST,
        "capabilities": {},
        "clientInfo": {"name": "doctor", "version": "1"},
    }
    line = json.encode({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    session.heard(line, jsonrpc.read(line))
    await session.renew(link)

    async def post(message: dict[str, Any]) -> Answer:
        return await session.post(link, json.encode(message))

    await _counted(post)
    answer = await post(_call(2, LONG))
    call = await _begun(answer)
    cancel = {"requestId": 2, "reason": "the doctor has seen enough"}
    (await post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})).close()
    await _cancelled(client, call)
    answer.close()


async def _counted(post: Post) -> None:
    """A short call: every report, then the result."""
    answer = await post(_call(1, 3))
    frames = [json.decode(frame) async for many in answer.messages() for frame in many]
    answer.close()
    numbers = [frame["params"]["progress"] for frame in frames[:-1] if "params" in frame]
    if numbers != [1, 2, 3]:
        raise Wrong(f"progress 1, 2, 3 was reported, and {numbers} came")
    if frames[-1].get("result", {}).get("content") != [{"type": "text", "text": "probed"}]:
        raise Wrong(f"a wrong result came: {str(frames[-1])[:200]}")


async def _begun(answer: Answer) -> str:
    """The id of a call, once it has reported."""
    async for frames in answer.messages():
        meta = json.decode(frames[0]).get("params", {}).get("_meta", {})
        return str(meta.get("dev.afoot/call", ""))
    raise Wrong("a long call ended at once")


async def _cancelled(client: Client, call: str) -> None:
    while True:
        told = await asyncio.to_thread(client.get, f"/api/calls/{call}")
        if told["state"] == "finished":
            break
        await asyncio.sleep(0.05)
    if told["outcome"] != "cancelled":
        raise Wrong(f"a call that was cancelled ended as {told['outcome']}")


def _call(id: int, n: int) -> dict[str, Any]:
    params = {"name": "probe", "arguments": {"n": n}, "_meta": {"progressToken": id}}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


@asynccontextmanager
async def _gateway(folder: Path) -> AsyncIterator[dict[str, Any]]:
    """A gateway with the probe alone, in a process and a folder of its own."""
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
        yield await _address(process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _address(process: Process) -> dict[str, Any]:
    assert process.stdout is not None and process.stderr is not None
    async with asyncio.timeout(START_S):
        first = await process.stdout.readline()
        if first:
            found: dict[str, Any] = json.decode(first)
            return found
        said = (await process.stderr.read()).decode("utf-8", "replace").strip().split("\n")
    raise Wrong(said[-1].removeprefix("afoot: ") or "it said nothing")
