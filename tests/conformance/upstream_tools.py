"""The suite's tools on an `mcp` SDK server, so that they are called through the gateway."""

import json
from typing import Any, Final

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    AudioContent,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)

MODERN: Final = "2026-07-28"
PNG: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV: Final = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA=="
STEP_S: Final = 0.06

Answer = CallToolResult | InputRequiredResult
Schema = dict[str, Any]


def text(words: str) -> CallToolResult:
    """A result of one text."""
    return CallToolResult(content=[TextContent(text=words)])


def document(uri: str, mime: str, words: str) -> EmbeddedResource:
    """A document inside a result."""
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime, text=words))


def form(fields: Schema, *required: str) -> Schema:
    """The schema of a form."""
    return {"type": "object", "properties": fields, "required": list(required)}


NAME: Final = form({"name": {"type": "string"}}, "name")
COLOR: Final = form({"color": {"type": "string"}}, "color")
CONFIRM: Final = form({"ok": {"type": "boolean"}}, "ok")


def question(message: str, schema: Schema) -> ElicitRequest:
    """A form, in the words of 2026-07-28."""
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str, tokens: int) -> CreateMessageRequest:
    """A question to a model."""
    message = SamplingMessage(role="user", content=TextContent(text=prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=tokens))


async def ask(ctx: Context, message: str, schema: Schema) -> Any:
    """A form's answer, or the round that asks for it: whichever this era has."""
    if ctx.protocol_version != MODERN:
        return await ctx.session.elicit_form(message, schema, ctx.request_id)
    given = (ctx.input_responses or {}).get("answer")
    return given or InputRequiredResult(input_requests={"answer": question(message, schema)})


def missing(ctx: Context, state: str, **asked: Any) -> InputRequiredResult | None:
    """The round that asks for what has not been answered yet."""
    given = ctx.input_responses or {}
    open_ = {key: one for key, one in asked.items() if key not in given}
    return InputRequiredResult(input_requests=open_, request_state=state) if open_ else None


async def test_simple_text() -> CallToolResult:
    """Answers with one text."""
    return text("This is a simple text response for testing.")


async def test_image_content() -> CallToolResult:
    """Answers with a picture."""
    return CallToolResult(content=[ImageContent(data=PNG, mime_type="image/png")])


async def test_audio_content() -> CallToolResult:
    """Answers with a sound."""
    return CallToolResult(content=[AudioContent(data=WAV, mime_type="audio/wav")])


async def test_embedded_resource() -> CallToolResult:
    """Answers with a document."""
    words = "This is an embedded resource content."
    return CallToolResult(content=[document("test://embedded-resource", "text/plain", words)])


async def test_multiple_content_types() -> CallToolResult:
    """Answers with a text, a picture and a document."""
    data = json.dumps({"test": "data", "value": 123})
    return CallToolResult(
        content=[
            TextContent(text="Multiple content types test:"),
            ImageContent(data=PNG, mime_type="image/png"),
            document("test://mixed-content-resource", "application/json", data),
        ]
    )


async def test_error_handling() -> CallToolResult:
    """Fails."""
    raise ToolError("This tool intentionally returns an error for testing")


async def test_tool_with_progress(ctx: Context) -> CallToolResult:
    """Reports three times."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"Completed step {done} of 100")
        await anyio.sleep(STEP_S)
    return text("reported three times")


async def test_tool_with_logging(ctx: Context) -> CallToolResult:
    """Writes three lines to the log."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", line, related_request_id=ctx.request_id)
        await anyio.sleep(STEP_S)
    return text("logged three times")


async def test_sampling(prompt: str, ctx: Context) -> Answer:
    """Asks the caller's model."""
    asked = sampling(prompt, 100)
    if ctx.protocol_version == MODERN:
        if (round_ := missing(ctx, "sampling", model=asked)) is not None:
            return round_
        return text(f"LLM response: {(ctx.input_responses or {})['model']}")
    said = await ctx.session.create_message(
        asked.params.messages, max_tokens=100, related_request_id=ctx.request_id
    )
    return text(f"LLM response: {said.content}")


async def test_elicitation(message: str, ctx: Context) -> Answer:
    """Asks the person for a name and an address."""
    fields = {"username": {"type": "string"}, "email": {"type": "string"}}
    given = await ask(ctx, message, form(fields, "username", "email"))
    return given if isinstance(given, InputRequiredResult) else text(f"User response: {given.content}")


async def test_elicitation_sep1034_defaults(ctx: Context) -> Answer:
    """Asks with a default for every kind of field."""
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    given = await ask(ctx, "Please review", form(fields))
    return given if isinstance(given, InputRequiredResult) else text(f"Completed: {given.content}")


async def test_elicitation_sep1330_enums(ctx: Context) -> Answer:
    """Asks with every kind of choice."""
    plain, titled = ["a", "b", "c"], [{"const": "v1", "title": "First"}, {"const": "v2", "title": "Second"}]
    fields = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    given = await ask(ctx, "Please select", form(fields))
    return given if isinstance(given, InputRequiredResult) else text(f"Completed: {given.content}")


async def test_input_required_result_elicitation(ctx: Context) -> Answer:
    """Asks for a name; what is no form's answer is not taken for one."""
    round_ = missing(ctx, "name", user_name=question("What is your name?", NAME))
    if round_ is not None:
        return round_
    given = (ctx.input_responses or {})["user_name"]
    content = given.content if isinstance(given, ElicitResult) else None
    return text(f"Hello, {(content or {}).get('name')}!")


async def test_input_required_result_sampling(ctx: Context) -> Answer:
    """Asks the caller's model for a capital."""
    asked = sampling("What is the capital of France?", 100)
    return missing(ctx, "capital", capital_question=asked) or text("asked")


async def test_input_required_result_list_roots(ctx: Context) -> Answer:
    """Asks for the caller's folders."""
    return missing(ctx, "roots", client_roots=ListRootsRequest()) or text("listed")


async def test_input_required_result_request_state(ctx: Context) -> Answer:
    """Asks for a confirmation, and wants its state back."""
    round_ = missing(ctx, "state", confirm=question("Please confirm", CONFIRM))
    return round_ or text("state-ok" if ctx.request_state == "state" else "state lost")


async def test_input_required_result_multiple_inputs(ctx: Context) -> Answer:
    """Asks the person, the model and the client at once."""
    asked = sampling("Generate a greeting", 50)
    name = question("What is your name?", NAME)
    return missing(ctx, "all", user_name=name, greeting=asked, roots=ListRootsRequest()) or text("all three")


async def test_input_required_result_multi_round(ctx: Context) -> Answer:
    """Asks twice, one after the other."""
    if ctx.request_state != "second":
        round_ = missing(ctx, "first", step1=question("Step 1: What is your name?", NAME))
        if round_ is not None:
            return round_
        asked = question("Step 2: What is your favorite color?", COLOR)
        return InputRequiredResult(input_requests={"step2": asked}, request_state="second")
    return text("both")


async def test_input_required_result_tampered_state(ctx: Context) -> Answer:
    """Asks for a confirmation whose state the suite falsifies."""
    return missing(ctx, "confirm", confirm=question("Please confirm", CONFIRM)) or text("confirmed")


async def test_input_required_result_capabilities(ctx: Context) -> Answer:
    """Asks the person and the model; a caller is only to be asked what it declared."""
    name = question("What is your name?", NAME)
    return missing(ctx, "both", name=name, greeting=sampling("Generate a greeting", 50)) or text("both")


async def test_streaming_elicitation(ctx: Context) -> Answer:
    """Reports, then asks."""
    await ctx.report_progress(0, 1, "about to ask")
    given = await ask(ctx, "Go on?", form({"ok": {"type": "boolean"}}))
    return given if isinstance(given, InputRequiredResult) else text(f"answered: {given.action}")


async def test_logging_tool(ctx: Context) -> CallToolResult:
    """Writes one line to the log, for a caller that may not have asked for logs."""
    await ctx.session.send_log_message("info", "only for those who asked", related_request_id=ctx.request_id)
    return text("logged once")


async def test_trigger_tool_change(ctx: Context) -> CallToolResult:
    """Changes the list of tools, by one more or less, and tells of it."""
    server = ctx.mcp_server
    if any(tool.name == "extra" for tool in await server.list_tools()):
        server.remove_tool("extra")
    else:
        server.add_tool(test_simple_text, name="extra", description="One more.")
    if ctx.protocol_version == MODERN:
        await ctx.notify_tools_changed()
    else:
        await ctx.session.send_tool_list_changed()
    return text("changed")


def add_tools(server: MCPServer) -> None:
    """Offer every tool of this file."""
    for name, tool in list(globals().items()):
        if name.startswith("test_"):
            server.add_tool(tool)
