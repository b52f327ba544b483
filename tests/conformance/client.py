"""What the official suite runs as a client: a gateway in front of the suite's server, and its user."""

import asyncio
import json
import os
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from msgspec import Raw

from afoot.config.settings import Server, Settings
from afoot.core.facts import Asked, Question
from afoot.core.ports import Tool
from afoot.errors import AfootError
from afoot.gateway import MEMORY, Gateway
from afoot.providers.upstream.managed_server import ManagedServer
from afoot.wire.jsonrpc import Fault

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.conformance.client_auth import DOCUMENT, LOGINS, admitted

NAME: Final = "suite"
OPEN_S: Final = 20.0
LATEST: Final = "2026-07-28"
# What stands for a value of each kind, where the suite does not say which it wants.
VALUES: Final[dict[str, object]] = {
    "string": "text", "integer": 3, "number": 4, "boolean": True, "array": [], "object": {}, "null": None,
}  # fmt: skip


async def main(url: str) -> int:
    """Do with the suite's server whatever can be done with one; 0 if every call came to an end."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    settings = Settings(store=MEMORY, servers={NAME: server(url, context)}, unanswerable="wait")
    async with Gateway(settings=settings) as gateway:
        await gateway.servers.wait_until_opened(OPEN_S)
        listed = gateway.servers.get(NAME)
        await admitted(gateway, listed)
        print(
            "tools:",
            [tool.name for tool in gateway.tools()],
            listed.state,
            listed.error,
            listed.connection.era,
        )
        wanted = context.get("toolCalls") or [
            {"name": tool.name, "arguments": arguments(gateway, tool)} for tool in gateway.tools()
        ]
        ended = [await allowed(gateway, one["name"], one.get("arguments", {})) for one in wanted]
        await look(listed)
    return 0 if listed.connection.era and all(ended) else 1


def server(url: str, context: dict[str, Any]) -> Server:
    """The suite's server as a configuration names one; what it wants of OAuth is in the context.

    The suite judges each message by the version that it tells. A server of both eras would get the handshake.
    """
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
    return Server(
        url=url,
        era=version if version == LATEST else "auto",
        auth="oauth" if scenario.startswith("auth/") else "",
        client_id=DOCUMENT if scenario == "auth/basic-cimd" else context.get("client_id", ""),
        client_secret=context.get("client_secret", ""),
    )


def arguments(gateway: Gateway, tool: Tool) -> dict[str, object]:
    """Arguments that fit the tool; a tool that wants a schema gets the first other tool's, as it is."""
    schema = json.loads(bytes(tool.definition))["inputSchema"]
    others = [one for one in gateway.tools() if one.name != tool.name]
    found: dict[str, object] = {}
    for name, field in schema.get("properties", {}).items():
        if name == "schema" and others:
            found[name] = json.loads(bytes(others[0].definition))["inputSchema"]
        elif name in schema.get("required", ()):
            found[name] = field.get("const", VALUES.get(field.get("type", "string"), "text"))
    return found


async def allowed(gateway: Gateway, tool: str, arguments: dict[str, object]) -> bool:
    """Call a tool, again after a login if it needs one; True if it succeeded."""
    for _ in range(LOGINS):
        if await call(gateway, tool, arguments):
            return True
        listed = gateway.servers.get(NAME)
        if listed.login != "needed" or not await admitted(gateway, listed):
            return False
    return False


async def call(gateway: Gateway, tool: str, arguments: dict[str, object]) -> bool:
    """Call a tool, and accept whatever it asks with its defaults; True if it succeeded."""
    call_id = gateway.submit(tool, arguments)
    async for fact in gateway.follow(call_id):
        if isinstance(fact, Asked):
            gateway.answer(fact.question.id, accepted(fact.question))
    ended = await gateway.result(call_id)
    assert ended.end is not None
    print(tool, ended.end.outcome, ended.end.failure and ended.end.failure.message)
    return ended.end.outcome == "ok"


def accepted(question: Question) -> object:
    """The answer of somebody who presses Enter."""
    if question.kind == "roots":
        return [{"uri": "file:///", "name": "everything"}]
    if question.kind == "sample":
        content = {"type": "text", "text": "hello"}
        return {"role": "assistant", "content": content, "model": "m", "stopReason": "endTurn"}
    schema = json.loads(bytes(question.body or Raw(b"{}"))) if question.kind == "form" else {}
    fields = schema.get("properties", {}).items()
    return {name: one.get("default", VALUES.get(one.get("type", "string"))) for name, one in fields}


async def look(listed: ManagedServer) -> None:
    """Read and get everything that is there besides tools."""
    for resource in listed.resources:
        await ask(listed, "resources/read", {"uri": resource["uri"]})
    for prompt in listed.prompts:
        given = {one["name"]: "text" for one in prompt.get("arguments", ())}
        await ask(listed, "prompts/get", {"name": prompt["name"], "arguments": given})


async def ask(listed: ManagedServer, method: str, params: dict[str, Any]) -> None:
    """Ask for one thing; a refusal is an answer too."""
    try:
        print(method, await listed.request(method, params))
    except (AfootError, Fault) as error:
        print(method, "failed:", error)


if __name__ == "__main__":
    warnings.simplefilter("error")
    with TemporaryDirectory() as home:  # logins are kept there, and the suite runs several of us at once
        os.environ["AFOOT_HOME"] = home
        sys.exit(asyncio.run(main(sys.argv[-1])))
