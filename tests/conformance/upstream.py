"""An `mcp` SDK server for the official conformance suite to find behind the gateway: all but tools here."""

import base64
import json
import sys
from typing import Any, Final

import uvicorn
from mcp.server.mcpserver import Context, MCPServer, UserMessage
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    PromptReference,
    ResourceTemplateReference,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)

from tests.conformance.upstream_tools import MODERN, PNG, add_tools

WATCHED: Final = "test://watched-resource"
CONTEXT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"context": {"type": "string"}},
    "required": ["context"],
}

server = MCPServer("everything", version="1.0.0")


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture."""
    return base64.b64decode(PNG)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template_data(id: str) -> str:
    """Whatever the URI says."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.resource(WATCHED, mime_type="text/plain")
def watched() -> str:
    """What `test_trigger_resource_change` tells of."""
    return "Watched."


@server.prompt()
def test_simple_prompt() -> list[UserMessage]:
    """One message."""
    return [UserMessage(content=TextContent(text="This is a simple prompt for testing."))]


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> list[UserMessage]:
    """Two arguments."""
    return [UserMessage(content=TextContent(text=f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
    """A document, and a request."""
    text = "Embedded resource content for testing."
    document = TextResourceContents(uri=resourceUri, mime_type="text/plain", text=text)
    return [
        UserMessage(content=EmbeddedResource(resource=document)),
        UserMessage(content=TextContent(text="Please process the embedded resource above.")),
    ]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """A picture, and a request."""
    return [
        UserMessage(content=ImageContent(data=PNG, mime_type="image/png")),
        UserMessage(content=TextContent(text="Please analyze the image above.")),
    ]


@server.prompt()
async def test_input_required_result_prompt(ctx: Context) -> list[UserMessage] | InputRequiredResult:
    """Asks for its context before it answers, in the way of the era."""
    form = ElicitRequestFormParams(message="What context?", requested_schema=CONTEXT)
    if ctx.protocol_version != MODERN:
        given: object = await ctx.session.elicit_form(form.message, CONTEXT, ctx.request_id)
    else:
        given = (ctx.input_responses or {}).get("user_context")
        if given is None:
            asked = {"user_context": ElicitRequest(params=form)}
            return InputRequiredResult(input_requests=asked, request_state="asked-for-context")
    return [UserMessage(content=TextContent(text=f"Prompt with context: {given}"))]


@server.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion:
    """A few words that begin so."""
    words = ["paris", "park", "party", "test", "testing"]
    values = [word for word in words if word.startswith(argument.value)]
    return Completion(values=values, total=len(values), has_more=False)


@server.tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Changes the list of prompts, by one more or less, and tells of it."""
    if any(prompt.name == "extra" for prompt in await server.list_prompts()):
        server.remove_prompt("extra")
    else:
        server.prompt("extra", description="One more.")(lambda: "more")
    if ctx.protocol_version == MODERN:
        await ctx.notify_prompts_changed()
    else:
        await ctx.session.send_prompt_list_changed()
    return "changed"


@server.tool()
async def test_trigger_resource_change(ctx: Context) -> str:
    """Tells that the watched resource is another one now."""
    if ctx.protocol_version == MODERN:
        await ctx.notify_resource_updated(WATCHED)
    else:
        await ctx.session.send_resource_updated(WATCHED)
    return "changed"


async def taken(_ctx: object, _params: SubscribeRequestParams | UnsubscribeRequestParams) -> EmptyResult:
    """The handshake era's subscriptions: everybody is told everything anyway."""
    return EmptyResult()


def main(port: str = "", tools: str = "") -> None:
    """Serve on stdio, or on this port; `tools`: with the suite's own tools as well."""
    low = server._lowlevel_server
    low.add_request_handler("resources/subscribe", SubscribeRequestParams, taken)
    low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, taken)
    if tools:
        add_tools(server)
    if port:
        uvicorn.run(server.streamable_http_app(), port=int(port), log_level="warning")
    else:
        server.run("stdio")


if __name__ == "__main__":
    main(*sys.argv[1:])
