"""A server of the `mcp` SDK that uses its client in every way; it speaks both eras.

Run as a module: without arguments it speaks on stdio, with a port it serves `/mcp` there.
"""

import asyncio
import sys
import warnings

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

FORM = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
LATER_S = 0.3
server = MCPServer("features")
later: set[asyncio.Task[None]] = set()
begun: list[str] = []  # the tags of `paint`


class Colour(BaseModel):
    """The form of `elicit`."""

    colour: str


@server.tool()
async def elicit(ctx: Context) -> str:
    """Asks the person in the middle of the call."""
    answer = await ctx.elicit("which colour?", Colour)
    return answer.data.colour if answer.action == "accept" else answer.action


@server.tool()
async def sample(ctx: Context) -> str:
    """Asks the model in the middle of the call."""
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="capital?"))
    answer = await ctx.session.create_message([message], max_tokens=9)
    return answer.content.text if isinstance(answer.content, types.TextContent) else "?"


@server.tool()
async def roots(ctx: Context) -> str:
    """Asks for the client's folders in the middle of the call."""
    return str((await ctx.session.list_roots()).roots[0].uri)


@server.tool()
async def remember(word: str, ctx: Context) -> str:
    """Keeps a word in the state of the connection."""
    ctx.session._connection.state["word"] = word
    return "kept"


@server.tool()
async def recall(ctx: Context) -> str:
    """Says the word that was kept."""
    return str(ctx.session._connection.state.get("word"))


@server.tool()
async def log(ctx: Context) -> str:
    """Logs during the call, and once more after it."""
    await ctx.info("during the call")

    async def after() -> None:
        await asyncio.sleep(LATER_S)
        await ctx.session.send_log_message("info", "after the call")

    task = asyncio.create_task(after())
    later.add(task)
    task.add_done_callback(later.discard)
    return "logged"


@server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
async def rounds(ctx: Context) -> str | types.InputRequiredResult:
    """Asks in a round by itself, which only 2026-07-28 has."""
    answer = (ctx.input_responses or {}).get("colour")
    if answer is not None:
        assert isinstance(answer, types.ElicitResult) and answer.content is not None
        return str(answer.content["colour"])
    params = types.ElicitRequestFormParams(message="which colour?", requested_schema=FORM)
    return types.InputRequiredResult(input_requests={"colour": types.ElicitRequest(params=params)})


@server.tool()
async def paint(tag: str, ctx: Context) -> str | types.InputRequiredResult:
    """Does something for which nobody vouches, before it asks as `rounds` does."""
    answer = await rounds(ctx)
    if isinstance(answer, str):
        return f"{answer} after {begun.count(tag)}"
    begun.append(tag)
    return answer


@server.prompt()
async def verse(ctx: Context) -> str | types.InputRequiredResult:
    """Asks in a round by itself, as `rounds` does."""
    return await rounds(ctx)


@server.prompt()
async def song(ctx: Context) -> str | types.InputRequiredResult:
    """Asks the person in the way of each era."""
    if ctx.protocol_version == "2026-07-28":
        return await rounds(ctx)
    answer = await ctx.elicit("which colour?", Colour)
    return answer.data.colour if answer.action == "accept" else answer.action


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of what 2026-07-28 deprecates
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()
